"""What the requests of a task did cost, and how long they took."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext

from ..numbers.values import finite, number_or_nan, plain, quiet
from ..scores.columns import TOGETHER, named
from ..scores.records import mapping
from ..scores.summary import distribution

if TYPE_CHECKING:
    from ..numbers.values import Column

TOKENS = ("prompt_tokens", "completion_tokens")
COST = "cost"
LATENCY = "latency_seconds"
_PERCENTILES = (50, 95, 99)
_EXACT = frozenset({float, int})
"""Kinds of values that a column takes as they are; it would take others that are no numbers here, such as ``Decimal``."""


@attrs.frozen
class CostSummary:
    """How many tokens the task's requests took, and what they did cost.

    Each criterion's response is a request, and reports in its ``metrics``: ``prompt_tokens``, ``completion_tokens`` and ``cost`` in
    usd. Of each that any request has: ``total``, ``mean``, ``median``, ``min`` and ``max``, over those that have it; an unknown
    cost is never zero, and ``requests_with_cost`` of ``total_requests`` says how many are known. The requests of failed rows count too.
    The cost of judges and of all rollouts but a row's first is not in here: the run's ``cost`` has everything. It has no options.
    """

    name = "cost_summary"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Costs]:
        """Begin with no record."""
        yield Costs()


@attrs.frozen
class LatencySummary:
    """How long the task's requests took.

    Each criterion's response is a request, and reports ``latency_seconds`` in its ``metrics``. Of all of them ``mean``, ``median``,
    ``std`` (divided by one less than the count; 0 of a single one), ``min``, ``max``, ``p50``, ``p95`` and ``p99``, interpolated
    linearly. Negative ones and those that are no finite number are left out: ``requests_with_latency`` of ``total_requests``
    says how many count. Of a row with several rollouts the first one's requests are taken. It has no options.
    """

    name = "latency_summary"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Latencies]:
        """Begin with no record."""
        yield Latencies()


class Reports:
    """Takes records, and keeps what their responses report under *names*."""

    def __init__(self, *names: str) -> None:
        self.requests = 0
        self.columns = {name: array("d") for name in names}
        self._waiting: list[Mapping[str, Any]] = []

    def add(self, record: Record) -> None:
        """Take a record."""
        self._waiting += [
            metrics if (metrics := response.get("metrics")).__class__ is dict else mapping(response)
            for response in _responses(record, self.columns)
        ]
        if len(self._waiting) >= TOGETHER:
            self.settle()

    def settle(self) -> None:
        """Bring what was taken into the columns, and the count."""
        for name, column in self.columns.items():
            _extend(column, named(self._waiting, name))
        self.requests += len(self._waiting)
        self._waiting.clear()

    def values(self, name: str) -> Column:
        """What was reported under *name*: finite numbers from 0 on."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        values = finite(np.frombuffer(self.columns[name]))
        return values if (values >= 0).all() else values[values >= 0]


def _extend(column: array[float], values: list[Any]) -> None:
    """Append the numbers of *values*, NaN for what is none; what is None is left out."""
    if not _EXACT.issuperset(map(type, values)):
        values = [value for value in values if value is not None]
    try:
        column.fromlist(values if _EXACT.issuperset(map(type, values)) else list(map(number_or_nan, values)))
    except OverflowError:  # of a whole number that is no float; nothing was appended then
        column.fromlist(list(map(number_or_nan, values)))


def _responses(record: Record, names: Collection[str]) -> Collection[Mapping[str, Any]]:
    """The responses; a record that has none, but reports itself, stands for one."""
    responses: Any = record.get("responses")
    if responses:
        return responses.values()  # type: ignore[no-any-return]  # a record's responses are a mapping of mappings
    response = record.get("response")
    if isinstance(response, Mapping):
        return (response,)
    return () if mapping(record).keys().isdisjoint(names) else (record,)


class Costs:
    """Sum of tokens and costs over records, requests of failed rows included."""

    observes_failed_requests = True

    def __init__(self) -> None:
        self._reports = Reports(*TOKENS, COST)
        self.add = self._reports.add

    def finish(self) -> Mapping[str, object]:
        """The sums, of what was reported."""
        self._reports.settle()
        columns = {name: self._reports.values(name) for name in self._reports.columns}
        counts = {"total_requests": self._reports.requests, "requests_with_cost": len(columns[COST])}
        return counts | {name: _sums(one, whole=name in TOKENS) for name, one in columns.items() if len(one)}


def _sums(values: Column, *, whole: bool) -> Mapping[str, float | None]:
    figures = distribution(values, 0)
    with quiet():
        sums = {"total": plain(values.sum()), "min": figures["min"], "max": figures["max"]}
    if whole:
        sums = {name: value if value is None or value % 1 else int(value) for name, value in sums.items()}
    return {"total": sums["total"], "mean": figures["mean"], "median": figures["median"], **sums}


class Latencies:
    """Takes records, and sums up how long their requests took."""

    def __init__(self) -> None:
        self._reports = Reports(LATENCY)
        self.add = self._reports.add

    def finish(self) -> Mapping[str, object]:
        """The distribution, of what was reported."""
        import numpy as np

        self._reports.settle()
        values = self._reports.values(LATENCY)
        found: dict[str, object] = {
            "total_requests": self._reports.requests,
            "requests_with_latency": len(values),
        }
        if len(values):
            shares = {f"p{share}": plain(np.percentile(values, share)) for share in _PERCENTILES}
            found[LATENCY] = {**distribution(values, 1), **shares}
        return found
