"""``dicast run --metric-lines``: the figures of a run as METRIC lines, for loops that read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from math import fsum, isfinite
from typing import Any

from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED
from ..plan.labels import pipeline_labels, score_label
from ..plan.sections import METRICS, Pipeline
from ..values import Query
from ..values.errors import ConfigError, Problem
from ..values.names import nearest

_INVALID_IN_LABEL = re.compile(r"[^A-Za-z0-9_.µ]")
_INVALID_IN_DETAIL = re.compile(r"[^\w.]")  # names read from METRIC lines stay unchanged
SCORE = "score"

DETAILS = ("dimensions", "secondary_metrics")
"""Signals that hold named numbers: a judge's dimensions, and the secondary metrics of ``evaluator/metric_lines``."""

Figure = tuple[str, str, float]
"""A label, the name of one of its details, and the mean."""


@frozen
class RunLines:
    """The METRIC lines of a run; ``score`` is the mean of the label *primary*, by default of the run's score."""

    primary: str | None = None

    def check(self, pipeline: Pipeline) -> None:
        """Refuse a *primary* that is no label of *pipeline*, and a missing *primary* if the file has several labels.

        :raises ConfigError: listing the labels.
        """
        labels = pipeline_labels(pipeline)
        choices = list(dict.fromkeys((*labels, *(slot.label for slot in (*pipeline.metrics, *pipeline.judges)))))
        if self.primary is None and score_label(pipeline.gate, labels) is None and labels:
            message = (
                f"the file has several labels ({', '.join(labels)}): choose the label of METRIC score with --primary"
            )
            raise ConfigError(Problem(message, path="--primary"))
        if self.primary is not None and self.primary not in choices:
            message = f"--primary: no metric or judge has the label {self.primary!r}; choose from {', '.join(choices)}"
            raise ConfigError(Problem(message, value=self.primary, hint=nearest(self.primary, choices)))

    def text(self, document: Mapping[str, Any], details: Iterable[Figure] = ()) -> str:
        """Return the METRIC lines of the run's *document* and of the *details* of its labels, each with its newline.

        A figure without a mean has no line. If names repeat, the later ones become ``LABEL.name``.
        """
        lines, names = list[str](), set[str]()
        for name, label, mean in self._figures(document, details):
            unique = _unique_name(
                (_INVALID_IN_DETAIL if label else _INVALID_IN_LABEL).sub("_", name),
                _INVALID_IN_LABEL.sub("_", label),
                names,
            )
            names.add(unique)
            if mean is not None:  # a decimal without exponent: strict readers reject exponents
                lines.append(f"METRIC {unique}={Decimal(repr(mean)):f}\n")
        return "".join(lines)

    def _figures(
        self, document: Mapping[str, Any], details: Iterable[Figure]
    ) -> Iterator[tuple[str, str, float | None]]:
        sections = [document.get(section) or {} for section in ("labels", "metrics", "judges")]
        combined = {METRICS: sections[0][METRICS]} if METRICS in sections[0] else {}
        labels = combined | sections[1] | sections[2] | sections[0]
        score = document.get("score") if self.primary is None else labels.get(self.primary)
        yield SCORE, "", (score or {}).get("mean")
        for label, figures in labels.items():
            yield label, "", figures["mean"]
        for label, name, mean in details:
            yield name, label, mean


def detail_figures(ledger: Ledger, run_id: str) -> list[Figure]:
    """Return the means of the details of the run's verdicts, by label and name, in the order of their first occurrence."""
    seen, figures = set[tuple[object, ...]](), dict[str, dict[str, list[float]]]()
    entries = list[tuple[str, Mapping[str, Any]]]()
    for entry in ledger.read(Query(run_id, (EVAL_COMPLETED,), newest_first=True)):
        key = (entry.event.payload["judge"], entry.event.subject_kind, entry.event.subject_id)
        if (pairs := list(_details(entry.event.payload))) and key not in seen:
            seen.add(key)
            entries += pairs
    for label, numbers in reversed(entries):
        for name, value in numbers.items():
            if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
                figures.setdefault(label, {}).setdefault(str(name), []).append(value)
    return [
        (label, name, fsum(values) / len(values))
        for label, details in figures.items()
        for name, values in details.items()
    ]


def _details(payload: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the label and the numbers of each mapping of details, from a judge's verdict or from its metrics."""
    parts = [(str(payload["judge"]), payload.get("signals"))]
    parts += [(str(item["metric"]), item.get("signals")) for item in payload.get("scores") or ()]
    for label, signals in parts:
        for key in DETAILS:
            if isinstance(signals, Mapping) and isinstance(numbers := signals.get(key), Mapping):
                yield label, numbers


def _unique_name(name: str, label: str, names: set[str]) -> str:
    """Return *name*; if it is taken, prefix its *label*, or else append a number."""
    name = f"{label}.{name}" if name in names and label else name
    number, unique = 1, name
    while unique in names:
        number += 1
        unique = f"{name}_{number}"
    return unique
