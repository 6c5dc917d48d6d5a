"""Measure the ledger in this process, and print a JSON document: ``python own_storage.py append FOLDER REPLIES`` or ``columns FOLDER VERDICTS``."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import own_reading

from dicast import Claim, Event
from dicast.reading import read_verdicts
from dicast.toolkit.ids import stamp
from dicast_ledger import Sqlite

AT_ONCE = 64
"""Calls that are open at the same time."""

REPEATS = 5


def reservation(number: int) -> Event:
    """Return the reservation of a call."""
    id_, time_ = stamp()
    payload = {"reservation_id": f"r{number}", "scopes": ["run:R", "day:2026-03-01"], "amount": "0.01", "unit": "usd"}
    return Event(id_, "spend.reserved", time_, "R", {**payload, "lease_until": "2100-01-01T00:00:00.000Z"})


def reply(number: int) -> Sequence[Event]:
    """Return the two events of a paid reply."""
    row = {"subject_kind": "row", "subject_id": f"row-{number}"}
    cost = {"reservation_id": f"r{number}", "amount": "0.008", "unit": "usd", "judge": "llm/judge", "model": "m"}
    text = {"metric": "llm/judge", "rollout": 0, "tokens": 300, "reply": {"text": "the answer " * 10 + str(number)}}
    verdict = {"eval_id": f"e{number}", **row, "judge": "llm/judge", "judge_kind": "llm", "judge_model": "m"}
    score = {"score": 0.5, "confidence": 1.0, "judge_cost_usd": "0.008", "judge_cost_msat": "0", "signals": {}}
    rubric = {"rubric_id": "r", "rubric_version": "1", "basis": "truth"}
    (first, time_), (second, _) = stamp(), stamp()
    return (
        Event(first, "spend.settled", time_, "R", {**cost, **text}, **row),
        Event(second, "eval.completed", time_, "R", {**verdict, **score, **rubric}, **row),
    )


async def append(folder: Path, replies: int) -> dict[str, float]:
    """Return the microseconds of CPU of an append of two events, of a reservation, and of one row in a transaction of SQLite alone."""
    spent = {"append": 0.0, "reserve": 0.0}
    async with Sqlite(folder / "paid.db").open() as ledger:
        ledger.take_lease("R", "benchmark", 3600.0, lambda lease: lease.over)
        for start in range(0, replies, AT_ONCE):
            numbers = range(start, start + AT_ONCE)
            claims, events = [Claim(reservation(number), []) for number in numbers], [*map(reply, numbers)]
            began = time.process_time()
            for claim in claims:
                ledger.reserve([claim], lambda entry: entry.event)
            reserved = time.process_time()
            for pair in events:
                ledger.append(pair)
            spent["reserve"] += reserved - began
            spent["append"] += time.process_time() - reserved
    count = -(-replies // AT_ONCE) * AT_ONCE
    return {"floor": floor(folder / "floor.db", count), **{name: value / count * 1e6 for name, value in spent.items()}}


def floor(path: Path, count: int) -> float:
    """Return the microseconds of CPU of a row of 1,000 bytes in a transaction of its own."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE lines (seq INTEGER PRIMARY KEY, line BLOB)")
    line, began = os.urandom(1000), time.process_time()
    for seq in range(count):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO lines VALUES (?, ?)", (seq, line))
        connection.execute("COMMIT")
    spent = time.process_time() - began
    connection.close()
    return spent / count * 1e6


async def columns(folder: Path, verdicts: int) -> dict[str, float]:
    """Return the number of verdicts, the microseconds of CPU a verdict of reading all of them, and of the check of an event."""
    if not (folder / "ledger.db").exists():
        await own_reading.write(folder, verdicts)
    async with Sqlite(folder / "ledger.db").open(create=False) as ledger:
        spent = []
        for _ in range(REPEATS):
            began = time.process_time()
            count = len(read_verdicts(ledger).scores)
            spent.append(time.process_time() - began)
        began = time.process_time()
        result = ledger.verify()
        checked = time.process_time() - began
    return {"verdicts": count, "read": min(spent) / count * 1e6, "verify": checked / result.events * 1e6}


if __name__ == "__main__":
    measure = {"append": append, "columns": columns}[sys.argv[1]]
    print(json.dumps(asyncio.run(measure(Path(sys.argv[2]), int(sys.argv[3])))))
