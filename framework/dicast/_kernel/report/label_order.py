"""Figures of the labels of a run's document, in the order of the summary."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from math import inf
from typing import Any

from ..values import ALL_METRICS
from ..values.passes import shown_label

Document = Mapping[str, Any]


def ordered_labels(done: Document) -> dict[str, Document]:
    """Return the figures of each label and single metric of the document *done*: the labels of the gate first, then the lowest first.

    Labels on a raw scale follow, as their values cannot be compared with the others; labels of other tools come last.
    """
    clauses = (done["gate"] or {}).get("clauses", ())  # documents of older versions have none
    gated = [*dict.fromkeys(clause["on"] for clause in clauses if clause["on"] is not None)]
    recorded = done.get("recorded", {})  # documents of older versions have none

    def rank(item: tuple[str, Document]) -> tuple[int, float]:
        label, figures = item
        if label in gated:
            return 0, gated.index(label)
        value = figures["mean"] if figures.get("passes") is None else figures.get("pass_rate")
        group = 3 if label in recorded else 2 if figures.get("scale") == "raw" else 1
        return group, -inf if value is None else value

    return dict(sorted([*_figures(done, gated), *recorded.items()], key=rank))


def named_labels(done: Document) -> dict[str, Document]:
    """Return :func:`ordered_labels`; all metrics together have the name of the only metric, as in JUnit and comparisons, if both have the same figures."""
    return {shown_label(done, label): row for label, row in ordered_labels(done).items()}


def _figures(done: Document, gated: Container[str]) -> Iterator[tuple[str, Document]]:
    """Yield each label with its figures. A single metric has the figures of all metrics together, which have an interval of the mean too."""
    labels, metrics = dict(done["labels"]), dict(done["metrics"])
    if len(metrics) == 1 and ALL_METRICS in labels:
        ((name, figures),) = metrics.items()
        is_same = figures["mean"] == labels[ALL_METRICS]["mean"]
        if is_same and ALL_METRICS not in gated:
            metrics = {name: {**labels.pop(ALL_METRICS), **figures}}
        elif is_same and name not in gated and figures.get("passes") == labels[ALL_METRICS].get("passes"):
            metrics = {}
    yield from {**metrics, **labels}.items()
