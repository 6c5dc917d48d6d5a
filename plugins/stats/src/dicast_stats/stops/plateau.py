"""Stopping where a metric gets no better."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf

import attrs

from dicast import Record, RunContext, Within

from ..numbers.ties import reaches
from ..numbers.values import number
from ..scores.records import value_at
from .threshold import COUNT, check_metric, warn_unseen


@attrs.frozen
class Plateau:
    """Stops the run where the best value of a metric has not grown for a while.

    A record counts where it has the metric and that is a number. After each, the best so far is compared with that of *window*
    records before: where it has grown by no more than *threshold* (in 12 significant digits of it), the run stops. So *window* + 1 records have to count first. The
    reason is ``{metric, window, threshold, value, rows_observed}``, where ``value`` is the best.

    :param metric: what is watched, a dotted path under ``metrics``: ``score``, ``scores.analysis``. Higher is better.
    :param window: how many records in a row may pass without a better one.
    :param threshold: how much growth is none.
    """

    name = "plateau"

    metric: str = attrs.field(validator=check_metric)
    window: int = attrs.field(validator=COUNT)
    threshold: float = attrs.field(default=0.0, validator=Within(0, inf, "a difference, from 0"))

    @property
    def needs_score(self) -> bool:
        """Whether it watches the run's score."""
        return self.metric == "score"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Climb]:
        """Begin with no record; at the end, warn of a metric that none had."""
        climb = Climb(self)
        yield climb
        warn_unseen(self.name, self.metric, None if climb.rows else climb.without)


class Climb:
    """Takes records, and keeps the best values of the last ones; once there is a reason to stop, it stays."""

    def __init__(self, options: Plateau) -> None:
        self._options = options
        self._best: deque[float] = deque(maxlen=options.window + 1)
        self.rows = 0
        self.without: Record | None = None
        self._reason: Mapping[str, object] | None = None

    def observe(self, record: Record) -> Mapping[str, object] | None:
        """Take a record; why the run is to stop, or None."""
        options, best = self._options, self._best
        if self._reason is not None:
            return self._reason
        value = number(value_at(record, options.metric))
        if value is None:
            self.without = record
        else:
            self.rows += 1
            best.append(max(value, best[-1]) if best else value)
            if self.rows > options.window and reaches(best[0] + options.threshold, best[-1]):
                told = {"metric": options.metric, "window": options.window, "threshold": options.threshold}
                self._reason = {**told, "value": best[-1], "rows_observed": self.rows}
        return self._reason
