"""What the requests of a task did cost, and how long they took."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext

from .score_stats import distribution
from .values import mapping, number, plain, quiet

if TYPE_CHECKING:
    from .values import Column

TOKENS = ("prompt_tokens", "completion_tokens")
COST = "cost"
LATENCY = "latency_seconds"
_PERCENTILES = (50, 95, 99)


@attrs.frozen
class CostSummary:
    """How many tokens the task's requests took, and what they did cost.

    Each criterion's response is a request, and reports in its ``metrics``: ``prompt_tokens``, ``completion_tokens`` and ``cost`` in
    usd. Of each that any request has: ``total``, ``mean``, ``median``, ``min`` and ``max``, over those that have it; an unknown
    cost is never zero, and ``requests_with_cost`` of ``total_requests`` says how many are known. What failed rows and judges did
    cost is not in here: the run's ``cost`` has everything. It has no options.
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
    says how many count. It has no options.
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

    def add(self, record: Record) -> None:
        """Take a record."""
        columns = self.columns
        for response in _responses(record, columns):
            self.requests += 1
            metrics = mapping(response)
            for name, column in columns.items():
                value = metrics.get(name)
                if value is not None and (found := number(value)) is not None and found >= 0:
                    column.append(found)

    def values(self, name: str) -> Column:
        """What was reported under *name*."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        return np.array(self.columns[name])


def _responses(record: Record, names: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    """The responses; a record that has none, but reports itself, stands for one."""
    responses, response = record.get("responses"), record.get("response")
    if responses:
        return list(responses.values())
    if isinstance(response, Mapping):
        return (response,)
    return () if mapping(record).keys().isdisjoint(names) else (record,)


class Costs:
    """Takes records, and sums up tokens and costs."""

    def __init__(self) -> None:
        self._reports = Reports(*TOKENS, COST)
        self.add = self._reports.add

    def finish(self) -> Mapping[str, object]:
        """The sums, of what was reported."""
        reports = self._reports
        found: dict[str, object] = {
            "total_requests": reports.requests,
            "requests_with_cost": len(reports.columns[COST]),
        }
        for name, column in reports.columns.items():
            if column:
                found[name] = _sums(reports.values(name), whole=name in TOKENS)
        return found


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

        values = self._reports.values(LATENCY)
        found: dict[str, object] = {
            "total_requests": self._reports.requests,
            "requests_with_latency": len(values),
        }
        if len(values):
            shares = {f"p{share}": plain(np.percentile(values, share)) for share in _PERCENTILES}
            found[LATENCY] = {**distribution(values, 1), **shares}
        return found
