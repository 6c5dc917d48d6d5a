"""Early stop for a metric that no longer improves."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf

import attrs

from dicast import Record, RunContext, Within

from ..numbers.ties import reaches
from ..numbers.values import parse_number
from ..scores.records import read_value
from .threshold import COUNT, check_metric, warn_metric_missing


@attrs.frozen
class Plateau:
    """Stops the run when the best value of a metric has not grown for *window* records.

    A record counts if its metric is a number. After each record, the best value is compared with the best value *window* records earlier.
    If it has grown by at most *threshold* (in 12 significant digits), the run stops; *window* + 1 records have to count first. The
    reason is ``{metric, window, threshold, value, rows_observed}``, where ``value`` is the best value.

    :param metric: the metric to observe, as a dotted path under a record's ``metrics``: ``scores.LABEL`` is the score of a metric, a judge or a
        criterion, such as ``scores.correct``; ``score`` is the run's score; an extractor's value has the path that it writes. Higher is better.
    :param window: how many records in a row may pass without a better value.
    :param threshold: the largest growth that counts as no growth.
    """

    name = "plateau"
    takes_weights = True  # the best score has no weight

    metric: str = attrs.field(validator=check_metric)
    window: int = attrs.field(validator=COUNT)
    threshold: float = attrs.field(default=0.0, validator=Within(0, inf, "a difference, from 0"))

    @property
    def needs_score(self) -> bool:
        """Return whether the metric is the run's score."""
        return self.metric == "score"

    @property
    def metric_options(self) -> Mapping[str, str]:
        """Return the path of the observed metric."""
        return {"metric": self.metric}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Climb]:
        """Yield the observer; at the end, warn if no record had the metric."""
        climb = Climb(self)
        yield climb
        warn_metric_missing(self.name, self.metric, None if climb.rows else climb.record_without_metric)


class Climb:
    """Observer of records that keeps the best values of the latest records; a reason to stop remains."""

    def __init__(self, options: Plateau) -> None:
        self._options = options
        self._best: deque[float] = deque(maxlen=options.window + 1)
        self.rows = 0
        self.record_without_metric: Record | None = None
        self._reason: Mapping[str, object] | None = None

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Add a record; return the reason to stop the run, or None."""
        options, best = self._options, self._best
        if self._reason is not None:
            return self._reason
        value = parse_number(read_value(record, options.metric))
        if value is None:
            self.record_without_metric = record
        else:
            self.rows += 1
            best.append(max(value, best[-1]) if best else value)
            if self.rows > options.window and reaches(best[0] + options.threshold, best[-1]):
                settings = {"metric": options.metric, "window": options.window, "threshold": options.threshold}
                self._reason = {**settings, "value": best[-1], "rows_observed": self.rows}
        return self._reason
