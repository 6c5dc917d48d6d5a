from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dicast import Record, Results, RunContext

CONTEXT = RunContext("01KDZ3W5Z0000000000000TEST", "test", Path())


@pytest.fixture(scope="session")
def aggregated():
    """Return a function that runs an aggregate over records."""

    def aggregated(component: Any, records: Iterable[Record]) -> Mapping[str, Any]:
        async def work() -> Mapping[str, Any]:
            async with component.open(CONTEXT) as live:
                for record in records:
                    live.add(record)
                return live.finish()

        return asyncio.run(work())

    return aggregated


@pytest.fixture(scope="session")
def observed():
    """Return a function that runs an early stop over records, and returns its answer to each."""

    def observed(component: Any, records: Iterable[Record]) -> list[Mapping[str, Any] | None]:
        async def work() -> list[Mapping[str, Any] | None]:
            async with component.open(CONTEXT) as live:
                return [live.observe(record) for record in records]

        return asyncio.run(work())

    return observed


@pytest.fixture(scope="session")
def results():
    """Return a function that makes a run with columns of scores, and of flags, by criterion; *ids* names the subjects, else numbers do."""

    def results(
        scores: Mapping[str, Sequence[object]],
        flags: Mapping[str, Sequence[object]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> Results:
        count = len(next(iter(scores.values()), ()))
        records = [record(scores, flags or {}, row) for row in range(count)]
        rows = list(zip(ids or map(str, range(count)), records, strict=True))
        return Results("run", "name", lambda: iter(rows))

    return results


def record(scores: Mapping[str, Sequence[object]], flags: Mapping[str, Sequence[object]], row: int) -> Record:
    metrics: dict[str, Any] = {"scores": {name: column[row] for name, column in scores.items()}}
    if flags:
        metrics["score_flags"] = {name: column[row] for name, column in flags.items()}
    return {"row": {"id": str(row)}, "metrics": metrics}
