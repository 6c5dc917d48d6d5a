"""Early stop for a metric that reaches a threshold."""

from __future__ import annotations

import logging
import operator
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Literal

import attrs

from dicast import ConfigError, Record, RunContext, Within

from ..numbers.values import parse_number
from ..scores.records import missing_metric_text, read_value

Comparison = Literal["gte", "gt", "lte", "lt"]
_COMPARE = {"gte": operator.ge, "gt": operator.gt, "lte": operator.le, "lt": operator.lt}


def check_metric(_instance: object, _attribute: attrs.Attribute[str], metric: str) -> None:
    """Validate the option *metric*, as an attrs validator.

    :raises ConfigError: if *metric* is empty.
    """
    if not metric.strip():
        raise ConfigError("metric is empty; write scores.LABEL, such as metric: scores.correct, or score")


COUNT = Within(1, inf, "a number of records, from 1")


def warn_metric_missing(name: str, metric: str, record: Record | None) -> None:
    """Warn that no record has a number at *metric*, if there is a *record* without one; the warning lists its metrics."""
    if record is not None:
        reason = missing_metric_text(metric, "a number", record)
        logging.getLogger(__name__).warning("stats/%s could not stop the run: %s", name, reason)


def _check_comparison(_instance: object, _attribute: attrs.Attribute[Comparison], comparison: Comparison) -> None:
    if comparison not in _COMPARE:
        raise ConfigError(f"unknown comparison {comparison!r}: choose one of {', '.join(_COMPARE)}")


@attrs.frozen
class Threshold:
    """Stops the run at the first record whose metric reaches the threshold.

    A record counts if its metric is a number; other records are ignored. If no record counts, a warning lists the metrics that they
    have. The reason is ``{metric, comparison, threshold, value, rows_observed, label}``: ``value`` is the value that stopped the run, and
    ``rows_observed`` the number of records that had counted by then.

    :param metric: the metric to observe, as a dotted path under a record's ``metrics``: ``scores.LABEL`` is the score of a metric, a judge or a
        criterion, such as ``scores.correct``; ``score`` is the run's score; an extractor's value has the path that it writes.
    :param threshold: the number to compare the metric with.
    :param comparison: stop if the metric is ``gte`` (at least), ``gt`` (more than), ``lte`` (at most) or ``lt`` (less than) the threshold.
    :param min_rows: how many records have to count before the run can stop.
    :param label: a free text that is copied into the reason.
    """

    name = "threshold"
    takes_weights = True  # the best score has no weight

    metric: str = attrs.field(validator=check_metric)
    threshold: float
    comparison: Comparison = attrs.field(default="gte", validator=_check_comparison)
    min_rows: int = attrs.field(default=1, validator=COUNT)
    label: str | None = None

    @property
    def needs_score(self) -> bool:
        """Return whether the metric is the run's score."""
        return self.metric == "score"

    @property
    def metric_options(self) -> Mapping[str, str]:
        """Return the path of the observed metric."""
        return {"metric": self.metric}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Watch]:
        """Yield the observer; at the end, warn if no record had the metric."""
        watch = Watch(self)
        yield watch
        warn_metric_missing(self.name, self.metric, None if watch.rows else watch.record_without_metric)


class Watch:
    """Observer of records; a reason to stop remains."""

    def __init__(self, options: Threshold) -> None:
        self._options = options
        self.rows = 0
        self.record_without_metric: Record | None = None
        self._reason: Mapping[str, object] | None = None

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Add a record; return the reason to stop the run, or None."""
        options = self._options
        metric = None if self._reason else read_value(record, options.metric)
        value = parse_number(metric)
        if value is not None or isinstance(metric, float):  # NaN counts, but never reaches the threshold
            self.rows += 1
        else:
            self.record_without_metric = record
        has_enough_rows = self.rows >= options.min_rows
        if value is not None and has_enough_rows and _COMPARE[options.comparison](value, options.threshold):
            self._reason = self._stop_reason(value)
        return self._reason

    def _stop_reason(self, value: float) -> Mapping[str, object]:
        options = self._options
        settings = {"metric": options.metric, "comparison": options.comparison, "threshold": options.threshold}
        label = {} if options.label is None else {"label": options.label}
        return {**settings, "value": value, "rows_observed": self.rows, **label}
