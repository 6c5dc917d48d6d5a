"""Key ``require_card`` of a gate: a judge card decides whether the judge's scores count."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import orjson

from dicast import Within
from dicast.toolkit.files import MAX_DATA_BYTES, UnreadableFile, read_bytes

from .identity import Card, card_digest, label_fingerprint, models_of

if TYPE_CHECKING:
    from dicast.reporting import Clause, Finding, GatedFile, GatedRun

_NOT_NEGATIVE, _SHARE = Within(0, inf, "0 or more"), Within(0, 1, "a number from 0 to 1")
BARS = (
    *("min_labels", "min_class", "min_kappa", "max_flips", "min_consistency", "max_moved", "min_canaries"),
    "max_failures",
)
"""The bars of a card whose lines a clause may replace."""


@attrs.frozen
class RequireCard:
    """Requires a judge card that allows the judge to gate; the lines of the clause replace the lines of the card.

    :param require_card: the card of the judge, a file of ``dicast doctor``. The gate is undecided if the card is missing, is of another judge, or does not allow
        the judge to gate. The lines below replace the card's lines.
    :param min_labels: the least number of labels; by default the card's line, 100.
    :param min_class: the least number of labels that pass, and that fail; 10.
    :param min_kappa: the least lower bound of kappa; .40.
    :param max_flips: the greatest upper bound of the share of pairs whose winner changes with the order; .30.
    :param min_consistency: the least lower bound of the share of equal verdicts in a repetition; .80.
    :param max_moved: the greatest number of canaries that move a verdict; 0.
    :param min_canaries: the least number of canaries tried; 60.
    :param max_failures: the greatest upper bound of the share of failures; .05.
    """

    require_card: Path | None = None
    min_labels: int | None = attrs.field(default=None, validator=_NOT_NEGATIVE)
    min_class: int | None = attrs.field(default=None, validator=_NOT_NEGATIVE)
    min_kappa: float | None = attrs.field(default=None, validator=Within(-1, 1, "a number from -1 to 1"))
    max_flips: float | None = attrs.field(default=None, validator=_SHARE)
    min_consistency: float | None = attrs.field(default=None, validator=_SHARE)
    max_moved: int | None = attrs.field(default=None, validator=_NOT_NEGATIVE)
    min_canaries: int | None = attrs.field(default=None, validator=_NOT_NEGATIVE)
    max_failures: float | None = attrs.field(default=None, validator=_SHARE)

    @property
    def label_key(self) -> str | None:
        """``require_card``: a card is about one label."""
        return None if self.require_card is None else "require_card"

    def lines(self) -> dict[str, float]:
        """Return the lines of the clause, by the name of the bar."""
        return {name: line for name in BARS if (line := getattr(self, name)) is not None}

    def faults(self, clause: Clause, file: GatedFile) -> Iterator[tuple[str, str]]:
        """Yield the first line of a clause without a card."""
        for bar in [] if self.require_card is not None else [*self.lines()][:1]:
            yield bar, f"{bar} is a bar of a judge card: name the card with require_card: FILE"

    def decide(self, findings: Sequence[Finding], run: GatedRun) -> Sequence[Finding]:
        """Return *findings* and the finding about the card: passed, or undecided with the reason."""
        if self.require_card is None:
            return findings
        reason = self.refusal(self.require_card, run)
        value, passed = ("can gate", True) if reason is None else (None, None)
        rule, line = "require_card", str(self.require_card)
        finding = attrs.evolve(
            findings[0], rule=rule, line=line, value=value, passed=passed, reason=reason or "", low=None, high=None
        )
        return [*findings, finding]

    def refusal(self, path: Path, run: GatedRun) -> str | None:
        """Return the reason why the card at *path* does not allow the run's label to gate; None if it does."""
        card, label = _read(path), run.on
        if isinstance(card, str):
            return card
        judges = [judge for judge in card["judges"] if judge.get("label") == label]
        if not judges:
            card_names = ", ".join(str(judge.get("label")) for judge in card["judges"])
            return f"the card {path} is for {card_names or 'no judge'}, not {label}"
        (judge, *_) = judges
        if judge.get("fingerprint") != label_fingerprint(run.fingerprints, label):
            return f"the card {path} is for another {label}: its options, prompt, rubric or version have changed; run dicast doctor again"
        recorded, current = judge.get("models") or {}, models_of(run.models, label, run.fingerprints)
        for asking, names in current.items():
            if unknown := [name for name in names if name not in recorded.get(asking, [])]:
                card_names = ", ".join(recorded.get(asking, [])) or "no model"
                return f"the card {path} is for {card_names}, but {', '.join(unknown)} answered {asking}; run dicast doctor again"
        return self._missed_bars(path, judge)

    def _missed_bars(self, path: Path, judge: Card) -> str | None:
        """Return the reason why *judge* does not reach every bar, by the clause's lines, else by the card's; None if it does."""
        lines = self.lines()
        if not lines and judge.get("can_gate") is True:
            return None
        missed = [reason for bar in _bars(judge.get("bars")) if (reason := _missed(bar, lines))]
        return f"according to the card {path}, {judge['label']} cannot gate: {'; '.join(missed)}" if missed else None


def _read(path: Path) -> dict[str, Any] | str:
    """Return the card at *path*, or the reason why there is none."""
    try:
        card: Any = orjson.loads(read_bytes(path, MAX_DATA_BYTES))
    except UnreadableFile as error:
        return f"the card {path} cannot be read: {error.strerror}"
    except OSError:
        return f"there is no card at {path}; write one with dicast doctor FILE --gold GOLD --out {path}"
    except orjson.JSONDecodeError as error:
        return f"the card {path} is not JSON: {error}; run dicast doctor again"
    judges = card.get("judges") if isinstance(card, dict) else None
    if not isinstance(judges, list) or not all(isinstance(judge, dict) for judge in judges):
        return f"{path} is not a judge card; write one with dicast doctor FILE --gold GOLD --out {path}"
    if card.get("digest") != card_digest(card):
        return f"the card {path} was edited after dicast doctor wrote it: its digest does not match; run dicast doctor again"
    document: dict[str, Any] = card
    return document


def _missed(bar: Card, lines: Mapping[str, float]) -> str | None:
    name, value = str(bar.get("rule")), bar.get("value")
    line = lines.get(name, bar.get("line"))
    if not isinstance(value, int | float) or not isinstance(line, int | float):
        is_passed = bar.get("passed") is True and name not in lines
        return None if is_passed else str(bar.get("reason") or f"{name} is unknown")
    if value >= line if bar.get("at") == "least" else value <= line:
        return None
    return f"{bar.get('what', name)} is {value:.4g}, and {name} is {line:g}"


def _bars(bars: object) -> Sequence[Card]:
    return [bar for bar in bars if isinstance(bar, dict)] if isinstance(bars, list) else []
