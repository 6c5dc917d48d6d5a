"""Costs and latencies of a task's requests."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext

from ..numbers.values import finite_values, ignore_float_warnings, json_number, number_or_nan
from ..scores.columns import BATCH, values_under
from ..scores.records import read_metrics
from ..scores.summary import describe_values

if TYPE_CHECKING:
    from ..numbers.values import Column

TOKENS = ("prompt_tokens", "completion_tokens")
COST = "cost"
LATENCY = "latency_seconds"
_PERCENTILES = (50, 95, 99)
_EXACT = frozenset({float, int})
"""Types that an array accepts unchecked; it also accepts ``Decimal``, which does not count as a number here."""


@attrs.frozen
class CostSummary:
    """Tokens and costs of the task's requests.

    Each criterion's response is a request, and reports in its ``metrics``: ``prompt_tokens``, ``completion_tokens`` and ``cost`` in
    usd. For each metric that any request reports: ``total``, ``mean``, ``median``, ``min`` and ``max``, over the requests that report it. An
    unknown cost never counts as zero: ``requests_with_cost`` of ``total_requests`` have a known cost. The requests of failed rows count too.
    The costs of judges, and of all rollouts but the first of a row, are not included: see the run's ``cost`` for everything. No options.
    """

    name = "cost_summary"
    takes_weights = True  # each request was made once: the weight of its row does not count

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Costs]:
        """Yield a collector without records."""
        yield Costs()


@attrs.frozen
class LatencySummary:
    """Latencies of the task's requests.

    Each criterion's response is a request, and reports ``latency_seconds`` in its ``metrics``. Over all requests: ``mean``, ``median``,
    ``std`` (divided by the count minus one; 0 for a single request), ``min``, ``max``, ``p50``, ``p95`` and ``p99``, interpolated
    linearly. Negative and non-finite latencies are ignored: ``requests_with_latency`` of ``total_requests`` count. If a row
    has several rollouts, the requests of the first one count. No options.
    """

    name = "latency_summary"
    takes_weights = True  # each request was made once: the weight of its row does not count

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Latencies]:
        """Yield a collector without records."""
        yield Latencies()


class Reports:
    """Collector of the numbers that responses report under *names*."""

    def __init__(self, *names: str) -> None:
        self.requests = 0
        self.columns = {name: array("d") for name in names}
        self._batch: list[Mapping[str, Any]] = []

    def add(self, record: Record) -> None:
        """Add a record."""
        self._batch += [
            metrics if (metrics := response.get("metrics")).__class__ is dict else read_metrics(response)
            for response in _task_responses(record, self.columns)
        ]
        if len(self._batch) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Move the batch of responses into the columns, and count them."""
        for name, column in self.columns.items():
            _append_numbers(column, values_under(self._batch, name))
        self.requests += len(self._batch)
        self._batch.clear()

    def values(self, name: str) -> Column:
        """Return the reported numbers under *name* that are finite and not negative."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        values = finite_values(np.frombuffer(self.columns[name]))
        return values if (values >= 0).all() else values[values >= 0]


def _append_numbers(column: array[float], values: list[Any]) -> None:
    """Append the numbers of *values*, NaN for a value that is not a number; None is skipped."""
    if not _EXACT.issuperset(map(type, values)):
        values = [value for value in values if value is not None]
    try:
        column.fromlist(values if _EXACT.issuperset(map(type, values)) else list(map(number_or_nan, values)))
    except OverflowError:  # an integer too large for a float; nothing was appended
        column.fromlist(list(map(number_or_nan, values)))


def _task_responses(record: Record, names: Collection[str]) -> Collection[Mapping[str, Any]]:
    """Return the responses of *record*; the record itself if it has no response but metrics under *names*."""
    responses: Any = record.get("responses")
    if responses:
        return responses.values()  # type: ignore[no-any-return]  # a record's responses are a mapping of mappings
    response = record.get("response")
    if isinstance(response, Mapping):
        return (response,)
    return () if read_metrics(record).keys().isdisjoint(names) else (record,)


class Costs:
    """Collector of tokens and costs, including the requests of failed rows."""

    observes_failed_requests = True

    def __init__(self) -> None:
        self._reports = Reports(*TOKENS, COST)
        self.add = self._reports.add

    def finish(self) -> Mapping[str, object]:
        """Return the sums of the reported tokens and costs."""
        self._reports.flush()
        columns = {name: self._reports.values(name) for name in self._reports.columns}
        counts = {"total_requests": self._reports.requests, "requests_with_cost": len(columns[COST])}
        return counts | {
            name: _summarize_sums(values, as_integers=name in TOKENS) for name, values in columns.items() if len(values)
        }


def _summarize_sums(values: Column, *, as_integers: bool) -> Mapping[str, float | None]:
    figures = describe_values(values, 0)
    with ignore_float_warnings():
        sums = {"total": json_number(values.sum()), "min": figures["min"], "max": figures["max"]}
    if as_integers:
        sums = {name: value if value is None or value % 1 else int(value) for name, value in sums.items()}
    return {"total": sums["total"], "mean": figures["mean"], "median": figures["median"], **sums}


class Latencies:
    """Collector of the latencies of requests."""

    def __init__(self) -> None:
        self._reports = Reports(LATENCY)
        self.add = self._reports.add

    def finish(self) -> Mapping[str, object]:
        """Return the distribution of the reported latencies."""
        import numpy as np

        self._reports.flush()
        values = self._reports.values(LATENCY)
        figures: dict[str, object] = {
            "total_requests": self._reports.requests,
            "requests_with_latency": len(values),
        }
        if len(values):
            shares = {f"p{share}": json_number(np.percentile(values, share)) for share in _PERCENTILES}
            figures[LATENCY] = {**describe_values(values, 1), **shares}
        return figures
