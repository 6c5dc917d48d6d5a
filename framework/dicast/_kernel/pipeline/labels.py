"""The labels of a pipeline file: which there are, and which of them the run's score is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..plan.clauses import Gate
from ..plan.sections import METRICS, Pipeline, Slot

RECORDED = "recorded/"
"""The prefix of labels whose scores another tool recorded; they never count."""

_SCORES = "scores"


def file_labels(metrics: Iterable[Slot], judges: Iterable[Slot], criteria: Iterable[str]) -> tuple[str, ...]:
    """Return the labels that a file declares: all metrics together, each judge, each criterion of its task."""
    named = [METRICS for _ in [*metrics][:1]]
    named += [slot.label for slot in judges if not slot.label.startswith(RECORDED)]
    return tuple(dict.fromkeys([*named, *criteria]))


def pipeline_labels(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the labels of *pipeline*."""
    return file_labels(pipeline.metrics, pipeline.judges, pipeline.criteria)


def scored_criteria(criteria: Sequence[str], extractors: Iterable[Any]) -> tuple[str, ...]:
    """Return the *criteria* that the task names for which one of the *extractors* writes a score."""
    places = {place for one in extractors for place in one.writes}
    return tuple(name for name in criteria if _SCORES in places or f"{_SCORES}.{name}" in places)


def score_label(gate: Gate, labels: Sequence[str]) -> str | None:
    """Return the label that the run's score is about: the only one, or of several the first clause's ``on``; else None."""
    if len(labels) == 1:
        return labels[0]
    return gate.clauses[0].on if gate.clauses else None


def recorded_score_label(started: Mapping[str, Any]) -> str | None:
    """Return the label of the score of a run whose ``run.started`` had the payload *started*; older payloads have no ``score_label``."""
    if "score_label" in started:
        label: str | None = started["score_label"]
        return label
    counted = started.get("counted", ())
    return counted[0] if len(counted) == 1 else None


def recorded_labels(started: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels of the file of a run whose ``run.started`` had the payload *started*; older payloads have no ``labels``."""
    if "labels" in started:
        return tuple(started["labels"])
    gated = [label for label in started.get("gated", ()) if label not in started["metrics"]]
    named = [METRICS] if started["metrics"] else []
    return tuple(dict.fromkeys([*named, *started["judges"], *gated]))
