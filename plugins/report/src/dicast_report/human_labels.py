"""How often a judge agrees with people, by its own confidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import sqrt
from typing import Any

import attrs

from dicast import Query
from dicast.reading import Gold, LabeledOutputs, decides, from_event
from dicast.reporting import value_of
from dicast.toolkit.gold import GoldLabel

from .marking import METRICS, Marking, is_number
from .told import Read, Told

BINS = 10
_HALF = 0.5
"""The side of the scale that counts as passing where a label has no line of its own."""
GIVEN = "label.given"
Z_95 = 1.959963984540054
"""The 97.5 % quantile of the standard normal distribution."""


@attrs.frozen
class _Ledger:
    """A ledger of which only the reading is known."""

    read: Read


def human_labels(read: Read, run_id: str) -> LabeledOutputs:
    """Return the newest label of each output, for the verdicts of a run; a label that decides between others counts before them."""
    found: dict[tuple[str, str, str | None, str | None], GoldLabel] = {}
    for entry in read(Query(types=(GIVEN,))):
        if is_number(entry.event.payload.get("score")):
            label = from_event(entry.event)
            key = label.kind, label.subject_id, label.output_digest, None
            if decides(label) or key not in found or not decides(found[key]):
                found[key] = label
    ledger: Any = _Ledger(read)
    return LabeledOutputs.of(ledger, Gold(found), run_id=run_id)


@attrs.define
class Reliability:
    """Counts, for each judge, the outputs of a run that a person has labeled, by the judge's confidence in tenths."""

    marking: Marking
    labels: LabeledOutputs
    run_id: str
    _bins: dict[str, list[list[float]]] = attrs.field(factory=dict)

    def add(self, told: Told) -> None:
        """Count a subject, where it has a label."""
        given = self.labels.label(self.run_id, told.kind, told.id)
        gold = _from_people(told) if given is None else given.score
        if gold is None:
            return
        for label, ended in told.ended.items():
            if "failure_mode" not in ended and ended.get("judge_kind") != "human":
                line, confidence = self.marking.line(label), ended["confidence"]
                line = _HALF if line is None else line
                value = value_of(ended)
                agrees = value is not None and (value >= line) == (gold >= line)
                tenth = self._bins.setdefault(label, [[0, 0, 0.0] for _ in range(BINS)])[
                    min(BINS - 1, int(confidence * BINS))
                ]
                tenth[0] += 1
                tenth[1] += agrees
                tenth[2] += confidence

    def json(self) -> list[dict[str, Any]]:
        """Each judge that has labels beside its verdicts, for the page; the verdict of all metrics together only where it is alone."""
        judges = [label for label in self._bins if label != METRICS] or list(self._bins)
        return [self._json(label, self._bins[label]) for label in judges]

    def _json(self, label: str, bins: list[list[float]]) -> dict[str, Any]:
        n, agree = sum(one[0] for one in bins), sum(one[1] for one in bins)
        return {"label": label, "n": n, "agree": agree / n, "bins": [*_shown(bins)]}


def _shown(bins: Iterable[list[float]]) -> Iterator[dict[str, float]]:
    for count, agree, confidence in bins:
        if count:
            low, high = wilson(agree / count, count)
            yield {"confidence": confidence / count, "agree": agree / count, "n": count, "ci_low": low, "ci_high": high}


def wilson(rate: float, n: float) -> tuple[float, float]:
    """The 95 % interval of a rate of *n* (E. B. Wilson, Journal of the American Statistical Association 22, 1927, 209-212)."""
    square = Z_95 * Z_95
    centre = (rate + square / (2 * n)) / (1 + square / n)
    half = Z_95 / (1 + square / n) * sqrt(rate * (1 - rate) / n + square / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _from_people(told: Told) -> float | None:
    return next(
        (ended["score"] for ended in told.ended.values() if ended.get("judge_kind") == "human" and "score" in ended),
        None,
    )
