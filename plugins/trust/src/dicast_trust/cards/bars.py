"""Bars that a judge has to reach before its scores may decide a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

LEAST_LABELS, LEAST_CLASS, LEAST_CANARIES = 100, 10, 60
KAPPA, FLIPS, CONSISTENCY, FAILURES, MOVED = 0.40, 0.30, 0.80, 0.05, 0


@attrs.frozen
class Bar:
    """Rule for a figure: the *value*, described by the field ``what``, is at ``least`` or at ``most`` the *line*.

    *value* is None if it is not known, for the *reason*. A missed bar that is not *decisive*, such as the number of labels, decides nothing.
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
        """Return whether the bar is reached; None if the value is not known, or the missed bar is not decisive."""
        if self.value is None:
            return None
        reached = self.value >= self.line if self.at == "least" else self.value <= self.line
        return True if reached else False if self.decisive else None

    def document(self) -> dict[str, Any]:
        """Return the bar as JSON data of the card."""
        document = attrs.asdict(self, filter=attrs.filters.exclude("decisive"))
        return {**document, "passed": self.passed, "reason": None if self.passed else self.why}

    @property
    def why(self) -> str:
        """Reason why the bar is not reached, in words."""
        if self.value is None:
            return f"{self.what} is not known: {self.reason or 'there is no evidence'}"
        value, line = (
            f"{number:g}" if number == int(number) else f"{number:.2f}" for number in (self.value, self.line)
        )
        if value == line:
            value, line = f"{self.value:.4f}", f"{self.line:g}"
        return f"{self.what} is {value}, and has to be at {self.at} {line} to gate"


def bars(figures: Mapping[str, Any], unknown: Mapping[str, str], *, is_pairwise: bool, asks_model: bool) -> list[Bar]:
    """Return the bars of a judge with these *figures*; *unknown* has the reasons of null figures."""
    labels, kappa, consistency = figures["labels"], figures["kappa"], figures["self_consistency"]["low"]
    consistency = None if "self_consistency" in unknown else consistency
    result = [
        Bar("min_labels", "the number of labels", labels["n"], LEAST_LABELS, "least", decisive=False),
        Bar("min_class", "the number of labels in the rarer class", labels["least_class"], LEAST_CLASS, "least", decisive=False),
        Bar("min_kappa", "the lower bound of kappa (agreement beyond chance)", kappa["low"], KAPPA, "least", unknown.get("kappa")),
        Bar("min_consistency", "the lower bound of self-consistency", consistency, CONSISTENCY, "least", unknown.get("self_consistency")),
        Bar("max_failures", "the upper bound of the share of failures", figures["failures"]["high"], FAILURES, "most", unknown.get("failures")),
    ]  # fmt: skip
    if is_pairwise:
        flips = figures["order_flips"]["high"]
        result.append(Bar("max_flips", "the upper bound of the share of flips", flips, FLIPS, "most", unknown.get("order_flips")))  # fmt: skip
    if asks_model:
        tried, reason = figures["injection"], unknown.get("injection")
        moved = tried["moved"] if tried["tried"] else None
        result += [
            Bar("max_moved", "the number of canaries that moved a verdict", moved, MOVED, "most", reason),
            Bar("min_canaries", "the number of canaries tried", tried["tried"] or None, LEAST_CANARIES, "least", reason, decisive=False),
        ]  # fmt: skip
    drift = figures["drift"]
    crossed = None if drift["crossed"] is None else float(drift["crossed"])
    return [*result, Bar("no_drift", "drift", crossed, 0, "most", unknown.get("drift"))]


def can_gate(results: Sequence[Bar]) -> tuple[bool | None, list[str]]:
    """Return whether the judge may decide a gate, and the reasons against it.

    None if labels are too few, or no bar is missed and some value is not known.
    """
    answers = {bar.rule: bar.passed for bar in results}
    reasons = [bar.why for bar in sorted(results, key=lambda bar: bar.passed is not False) if bar.passed is not True]
    if answers["min_labels"] is None or answers["min_class"] is None:
        return None, reasons
    return (False if False in answers.values() else None if None in answers.values() else True), reasons
