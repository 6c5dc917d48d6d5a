"""Ledgers and events for the tests."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest

from dicast import Event, Head, Ledger
from dicast_ledger import Sqlite
from dicast_ledger.old_chain import COLUMNS, LINKS

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


DATA = Path(__file__).with_name("data")


@attrs.frozen
class OldLedger:
    """A ledger that the code of an older format wrote: data/README.md names the commits."""

    number: int
    path: Path
    head: Head
    events: list[dict[str, Any]]
    """The events that the code of the format exported."""


OLD_HEADS = {
    2: Head(94, "3df91c2fefe6883cace69d4a89d394287799971bd3fa62a789cd0a8fe1b3d9c8"),
    3: Head(119, "9664b797cd587c08fd609158a53b999b3926c1e3c08b44c4ef0fa35744f6502a"),
}

FIRST_HEAD = Head(539, "b1fcb177aa88541bcddfd8f05a4d272ffcfa1f9655ac1377d7d9b67eca21ea69")


@pytest.fixture(params=OLD_HEADS)
def old_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> OldLedger:
    """A ledger of each older format, in a folder of its own."""
    return _old_ledger(request.param, OLD_HEADS[request.param], tmp_path)


@pytest.fixture
def first_ledger(tmp_path: Path) -> OldLedger:
    """A ledger of format 4 without lines of traces, from the first code of the format."""
    return _old_ledger(4, FIRST_HEAD, tmp_path)


def _old_ledger(number: int, head: Head, tmp_path: Path) -> OldLedger:
    path = tmp_path / f"format{number}.db"
    path.write_bytes(gzip.decompress((DATA / f"format{number}.db.gz").read_bytes()))
    lines = gzip.decompress((DATA / f"format{number}.jsonl.gz").read_bytes()).splitlines()
    return OldLedger(number, path, head, [json.loads(line) for line in lines])


@pytest.fixture(scope="session")
def append_old() -> Callable[[Path, list[Event]], None]:
    """Append events of a new run to an older ledger, by the documented rules of its chain."""

    def append(path: Path, events: list[Event]) -> None:
        with closing(sqlite3.connect(path)) as connection:
            link = LINKS[connection.execute("PRAGMA user_version").fetchone()[0]]
            seq, digest = connection.execute("SELECT seq, digest FROM events ORDER BY seq DESC LIMIT 1").fetchone()
            connection.execute("INSERT INTO runs VALUES (?, ?, ?)", (events[0].run_id, seq + 1, seq + len(events)))
            for event in events:
                seq, prev = seq + 1, digest
                columns = [getattr(event, name) for name in COLUMNS]
                payload = orjson.dumps(event.payload)
                digest = link(prev, columns, payload)
                row = seq, *columns, payload.decode(), prev, digest
                connection.execute(f"INSERT INTO events VALUES ({', '.join('?' * 13)})", row)
            connection.commit()

    return append


@pytest.fixture(scope="session")
def make_subject(make_event: MakeEvent) -> Callable[..., list[Event]]:
    """Make the three events of a judged subject. Its number is part of its id, its content and its verdict."""

    def make(number: int, run_id: str = "R1", **verdict: Any) -> list[Event]:
        subject_id = f"row-{number:04}"
        content = {"context": {}, "input": f"Question {number}?", "output": f"Answer {number}", "reference": None}
        digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
        about = {"eval_id": f"V{number}", "subject_kind": "row", "subject_id": subject_id, "judge": "metrics"}
        completed = {
            **about,
            "judge_latency_ms": 0,
            "judge_cost_usd": "0",
            "judge_cost_msat": "0",
            "fingerprint": "f" * 64,
            "score": number / 10_000,
            "confidence": 1.0,
            "judge_kind": "metrics",
            "judge_model": None,
            "rubric_id": "r",
            "rubric_version": "1",
            "signals": {},
            "scores": [],
            "tier": "proxy",
            "basis": "proxy",
            **verdict,
        }
        payloads = {
            "subject.read": {"digest": digest, "content": content},
            "eval.started": about,
            "eval.completed": completed,
        }
        common = {"run_id": run_id, "subject_kind": "row", "subject_id": subject_id}
        return [make_event(type_, payload, **common) for type_, payload in payloads.items()]

    return make
