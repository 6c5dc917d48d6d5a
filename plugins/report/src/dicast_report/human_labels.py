"""Agreement of a judge with people, by the judge's confidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from dicast import ALL_METRICS, Query
from dicast.reading import Gold, LabeledOutputs, decides, from_event, place_of_label, retracted_labels
from dicast.reporting import value_of
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.intervals import wilson

from .marking import Marking, is_number
from .subjects import Read, SubjectResults

BINS = 10
_HALF = 0.5
"""Least passing value of a label without a line."""
LABEL_GIVEN = "label.given"


@attrs.frozen
class _Ledger:
    """A ledger with its method ``read`` only."""

    read: Read


def human_labels(read: Read, run_id: str) -> LabeledOutputs:
    """Return the newest label of each output, for the verdicts of a run. A label that decides between others takes precedence."""
    labels: dict[tuple[str, str, str | None, str | None], GoldLabel] = {}
    retracted = retracted_labels(_Ledger(read))
    for entry in read(Query(types=(LABEL_GIVEN,))):
        if is_number(entry.event.payload.get("score")) and place_of_label(entry.event) not in retracted:
            label = from_event(entry.event)
            key = label.kind, label.subject_id, label.output_digest, None
            if decides(label) or key not in labels or not decides(labels[key]):
                labels[key] = label
    ledger: Any = _Ledger(read)
    return LabeledOutputs.of(ledger, Gold(labels), run_id=run_id)


@attrs.define
class Reliability:
    """Counter of a run's outputs that a person labeled, by judge and tenth of the judge's confidence."""

    marking: Marking
    labels: LabeledOutputs
    run_id: str
    _bins: dict[str, list[list[float]]] = attrs.field(factory=dict)

    def add(self, subject: SubjectResults) -> None:
        """Count a subject if it has a label."""
        label_of_output = self.labels.label(self.run_id, subject.kind, subject.id)
        gold = _from_people(subject) if label_of_output is None else label_of_output.score
        if gold is None:
            return
        for label, result in subject.results.items():
            if "failure_mode" not in result and result.get("judge_kind") != "human":
                line, confidence = self.marking.line(label), result["confidence"]
                line = _HALF if line is None else line
                value = value_of(result)
                agrees = value is not None and (value >= line) == (gold >= line)
                tenth = self._bins.setdefault(label, [[0, 0, 0.0] for _ in range(BINS)])[
                    min(BINS - 1, int(confidence * BINS))
                ]
                tenth[0] += 1
                tenth[1] += agrees
                tenth[2] += confidence

    def json(self) -> list[dict[str, Any]]:
        """Return each judge with labels for its verdicts, for the page. The combined verdict of metrics is left out next to other judges."""
        judges = [label for label in self._bins if label != ALL_METRICS] or list(self._bins)
        return [self._json(label, self._bins[label]) for label in judges]

    def _json(self, label: str, bins: list[list[float]]) -> dict[str, Any]:
        n, agree = sum(tenth[0] for tenth in bins), sum(tenth[1] for tenth in bins)
        return {"label": label, "n": n, "agree": agree / n, "bins": [*_bin_documents(bins)]}


def _bin_documents(bins: Iterable[list[float]]) -> Iterator[dict[str, float]]:
    for count, agree, confidence in bins:
        if count:
            low, high = wilson(agree / count, count)
            yield {"confidence": confidence / count, "agree": agree / count, "n": count, "ci_low": low, "ci_high": high}


def _from_people(subject: SubjectResults) -> float | None:
    return next(
        (
            result["score"]
            for result in subject.results.values()
            if result.get("judge_kind") == "human" and "score" in result
        ),
        None,
    )
