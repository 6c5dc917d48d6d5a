"""Stopping where a metric has reached a threshold."""

from __future__ import annotations

import logging
import operator
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Literal

import attrs

from dicast import ConfigError, Record, RunContext, Within

from ..numbers.values import number
from ..scores.records import nowhere, value_at

Comparison = Literal["gte", "gt", "lte", "lt"]
_COMPARE = {"gte": operator.ge, "gt": operator.gt, "lte": operator.le, "lt": operator.lt}


def check_metric(_instance: object, _attribute: attrs.Attribute[str], metric: str) -> None:
    """Refuse a path to nowhere.

    :raises ConfigError: when *metric* is empty.
    """
    if not metric.strip():
        raise ConfigError("metric is empty; it is a dotted path under a record's metrics, such as scores.analysis")


COUNT = Within(1, inf, "a number of records, from 1")


def warn_unseen(name: str, metric: str, record: Record | None) -> None:
    """Warn that no record has a number at *metric*, where *record* is given, which is one of them."""
    if record is not None:
        told = nowhere(metric, "a number", record)
        logging.getLogger(__name__).warning("stats/%s could not stop the run: %s", name, told)


def _check_comparison(_instance: object, _attribute: attrs.Attribute[Comparison], comparison: Comparison) -> None:
    if comparison not in _COMPARE:
        raise ConfigError(f"unknown comparison {comparison!r}: it is {', '.join(_COMPARE)}")


@attrs.frozen
class Threshold:
    """Stops the run at the first record whose metric reaches the threshold.

    A record counts where it has the metric and that is a number; others are passed over, and where no record counts a warning says
    what they have. The reason is ``{metric, comparison, threshold, value, rows_observed, label}``: the value that did it, and how
    many records had counted by then.

    :param metric: what is watched, a dotted path under ``metrics``: ``score``, ``scores.analysis``.
    :param threshold: the number it is compared with.
    :param comparison: stop where the metric is ``gte`` (at least), ``gt`` (more than), ``lte`` (at most) or ``lt`` (less than) that.
    :param min_rows: never before so many records have counted.
    :param label: a word of your own that the reason carries.
    """

    name = "threshold"

    metric: str = attrs.field(validator=check_metric)
    threshold: float
    comparison: Comparison = attrs.field(default="gte", validator=_check_comparison)
    min_rows: int = attrs.field(default=1, validator=COUNT)
    label: str | None = None

    @property
    def needs_score(self) -> bool:
        """Whether it watches the run's score."""
        return self.metric == "score"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Watch]:
        """Begin with no record; at the end, warn of a metric that none had."""
        watch = Watch(self)
        yield watch
        warn_unseen(self.name, self.metric, None if watch.rows else watch.without)


class Watch:
    """Takes records; once there is a reason to stop, it stays."""

    def __init__(self, options: Threshold) -> None:
        self._options = options
        self.rows = 0
        self.without: Record | None = None
        self._reason: Mapping[str, object] | None = None

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Take a record; why the run is to stop, or None."""
        options = self._options
        found = None if self._reason else value_at(record, options.metric)
        value = number(found)
        if value is not None or isinstance(found, float):  # NaN counts, and reaches nothing
            self.rows += 1
        else:
            self.without = record
        enough = self.rows >= options.min_rows
        if value is not None and enough and _COMPARE[options.comparison](value, options.threshold):
            self._reason = self._told(value)
        return self._reason

    def _told(self, value: float) -> Mapping[str, object]:
        options = self._options
        told = {"metric": options.metric, "comparison": options.comparison, "threshold": options.threshold}
        label = {} if options.label is None else {"label": options.label}
        return {**told, "value": value, "rows_observed": self.rows, **label}
