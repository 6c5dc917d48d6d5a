"""What a judge has to reach before its scores may decide a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

LEAST_LABELS, LEAST_CLASS, LEAST_CANARIES = 100, 10, 60
KAPPA, FLIPS, CONSISTENCY, FAILURES, MOVED = 0.40, 0.30, 0.80, 0.05, 0


@attrs.frozen
class Bar:
    """One rule: the *value* of *what* is at ``least`` or at ``most`` the *line*.

    *value* is None where it is not known, for the *reason*. Without enough labels, which is *decisive* false, nothing is decided.
    """

    rule: str
    what: str
    value: float | None
    line: float
    at: str
    reason: str | None = None
    decisive: bool = True

    @property
    def passed(self) -> bool | None:
        """Whether it is reached; None where that is not known, or where what is missing decides nothing."""
        if self.value is None:
            return None
        reached = self.value >= self.line if self.at == "least" else self.value <= self.line
        return True if reached else False if self.decisive else None

    def document(self) -> dict[str, Any]:
        """As the card has it."""
        told = attrs.asdict(self, filter=attrs.filters.exclude("decisive"))
        return {**told, "passed": self.passed, "reason": None if self.passed else self.why}

    @property
    def why(self) -> str:
        """Why it is not reached, in words."""
        if self.value is None:
            return f"{self.what} is not known: {self.reason or 'nothing tells it'}"
        shown, side = (f"{one:g}" if one == int(one) else f"{one:.2f}" for one in (self.value, self.line))
        if shown == side:
            shown, side = f"{self.value:.4f}", f"{self.line:g}"
        return f"{self.what} is {shown}, and {side} is the {self.at} to gate"


def bars(figures: Mapping[str, Any], unknown: Mapping[str, str], *, pairwise: bool, asks_model: bool) -> list[Bar]:
    """The bars of a judge with these *figures*; *unknown* says why some are null."""
    labels, kappa, again = figures["labels"], figures["kappa"], figures["self_consistency"]["low"]
    again = None if "self_consistency" in unknown else again
    found = [
        Bar("min_labels", "the number of labels", labels["n"], LEAST_LABELS, "least", decisive=False),
        Bar("min_class", "the number of labels in the rarer class", labels["least_class"], LEAST_CLASS, "least", decisive=False),
        Bar("min_kappa", "the lower bound of kappa (agreement beyond chance)", kappa["low"], KAPPA, "least", unknown.get("kappa")),
        Bar("min_consistency", "the lower bound of self-consistency", again, CONSISTENCY, "least", unknown.get("self_consistency")),
        Bar("max_failures", "the upper bound of the share of failures", figures["failures"]["high"], FAILURES, "most", unknown.get("failures")),
    ]  # fmt: skip
    if pairwise:
        flips = figures["order_flips"]["high"]
        found.append(Bar("max_flips", "the upper bound of the share of flips", flips, FLIPS, "most", unknown.get("order_flips")))  # fmt: skip
    if asks_model:
        tried, why = figures["injection"], unknown.get("injection")
        moved = tried["moved"] if tried["tried"] else None
        found += [
            Bar("max_moved", "the number of canaries that moved a verdict", moved, MOVED, "most", why),
            Bar("min_canaries", "the number of canaries tried", tried["tried"] or None, LEAST_CANARIES, "least", why, decisive=False),
        ]  # fmt: skip
    drift = figures["drift"]
    crossed = None if drift["crossed"] is None else float(drift["crossed"])
    return [*found, Bar("no_drift", "drift", crossed, 0, "most", unknown.get("drift"))]


def can_gate(found: Sequence[Bar]) -> tuple[bool | None, list[str]]:
    """Whether the judge may decide a gate, and why not: null where labels are too few, or nothing fails and something is not known."""
    answers = {bar.rule: bar.passed for bar in found}
    reasons = [bar.why for bar in sorted(found, key=lambda bar: bar.passed is not False) if bar.passed is not True]
    if answers["min_labels"] is None or answers["min_class"] is None:
        return None, reasons
    return (False if False in answers.values() else None if None in answers.values() else True), reasons
