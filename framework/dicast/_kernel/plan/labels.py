"""Labels of a pipeline file, and the label of the run's score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .clauses import Gate
from .sections import METRICS, Pipeline, Slot

_SCORES = "scores"


def file_labels(metrics: Iterable[Slot], judges: Iterable[Slot], criteria: Iterable[str]) -> tuple[str, ...]:
    """Return the labels that a file declares: all metrics together, each judge, each criterion of its task."""
    labels = [METRICS for _ in [*metrics][:1]]
    labels += [slot.label for slot in judges]
    return tuple(dict.fromkeys([*labels, *criteria]))


def pipeline_labels(pipeline: Pipeline) -> tuple[str, ...]:
    """Return the labels of *pipeline*."""
    return file_labels(pipeline.metrics, pipeline.judges, pipeline.criteria)


def scored_criteria(criteria: Sequence[str], extractors: Iterable[Any]) -> tuple[str, ...]:
    """Return the *criteria* of the task for which one of the *extractors* writes a score."""
    places = {place for extractor in extractors for place in extractor.writes}
    return tuple(name for name in criteria if _SCORES in places or f"{_SCORES}.{name}" in places)


def score_label(gate: Gate, labels: Sequence[str]) -> str | None:
    """Return the label of the run's score: the only label, or among several the first clause's ``on``; else None."""
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
    labels = [METRICS] if started["metrics"] else []
    return tuple(dict.fromkeys([*labels, *started["judges"], *gated]))
