"""Ledgers and events for the tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dicast import Event, Ledger
from dicast_ledger import Sqlite

OpenLedger = Callable[..., AbstractContextManager[Ledger]]
MakeEvent = Callable[..., Event]


@contextmanager
def _opened(path: Path, *, create: bool = True, **options: Any) -> Iterator[Ledger]:
    with asyncio.Runner() as runner:
        opening = Sqlite(path, **options).open(create=create)
        ledger = runner.run(opening.__aenter__())
        try:
            yield ledger
        finally:
            runner.run(opening.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def opened() -> OpenLedger:
    """Open a ledger with ``with opened(path, create=True, **options) as ledger``."""
    return _opened


@pytest.fixture(scope="session")
def make_event() -> MakeEvent:
    """Make an event of a type, with a new id; everything else has a default."""
    numbers = count()

    def make(type: str = "eval.started", payload: Mapping[str, object] | None = None, **columns: Any) -> Event:
        columns = {"time": "2026-03-01T12:00:00.000Z", "run_id": "R1"} | columns
        return Event(id=f"E{next(numbers):08d}", type=type, payload={} if payload is None else payload, **columns)

    return make
