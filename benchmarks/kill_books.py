"""What the ledger and the files of a run say: of money, for a run that was killed; of results, for one that has ended."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from dicast_ledger import connect

CHANGES = ("run_id", "time", "latency", "spend_lost", "head", "created_at")
"""Words in the names of fields and columns that may differ from run to run."""


def newest(ledger: Path) -> int:
    """The number of the newest event in the file; 0 where there is none."""
    try:
        with closing(connect(ledger)) as database:
            return int(database.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
    except sqlite3.OperationalError:  # no file, no table yet, or just being made
        return 0


@dataclass
class Books:
    """How many replies the ledger holds, how many reservations are open, and what is settled or lost.

    *begun* and *ended* say whether there is a run to take up; *started* is when the first one began and *last* when the newest
    event was, in seconds since the epoch.
    """

    replies: int = 0
    open: int = 0
    usd: Decimal = Decimal(0)
    begun: bool = False
    ended: bool = False
    started: float = 0.0
    last: float = 0.0
    types: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, ledger: Path) -> Books:
        """Those of the file; empty ones where there is no file, or it has no tables yet."""
        books = cls()
        if not ledger.exists():
            return books
        reservations: set[str] = set()
        experiments = 1
        with closing(connect(ledger)) as database:
            if not database.execute("SELECT count(*) FROM sqlite_master WHERE name = 'events'").fetchone()[0]:
                return books
            newest = database.execute("SELECT max(time) FROM events").fetchone()[0]
            books.last = datetime.fromisoformat(newest).timestamp() if newest else 0.0
            wanted = "type LIKE 'spend.%' OR type LIKE 'run.%' OR type = 'task.replied'"
            for type_, time, text in database.execute(
                f"SELECT type, time, payload FROM events WHERE {wanted} ORDER BY seq"
            ):
                payload = json.loads(text)
                books.types[type_] += 1
                if type_ == "run.started":
                    books.started = books.started or datetime.fromisoformat(time).timestamp()
                    experiments = len((payload.get("suite") or {}).get("experiments") or [None])
                elif type_ == "spend.reserved":
                    reservations.add(payload["reservation_id"])
                elif type_ in ("spend.settled", "spend.lost", "spend.released"):
                    reservations.discard(payload["reservation_id"])
                    books.usd += Decimal(payload["amount"]) if type_ != "spend.released" else 0
                books.replies += type_ == "task.replied" or bool(type_ == "spend.settled" and payload.get("reply"))
        books.open = len(reservations)
        books.begun = books.types["run.started"] > 0
        books.ended = books.types["run.completed"] == experiments
        return books


@dataclass(frozen=True)
class Left:
    """All that a run leaves, but ids, times and what a kill has cost."""

    documents: list[Any]
    verdicts: Counter[str]
    records: Counter[str]
    tables: dict[str, list[dict[str, str]]]

    def differences(self, other: Left) -> list[str]:
        """The names of the parts that are not the same in *other*, with one example each."""
        names = [
            name
            for name in ("documents", "verdicts", "records", "tables")
            if getattr(self, name) != getattr(other, name)
        ]
        return [f"{name} ({self._example(name, other)})" for name in names]

    def _example(self, name: str, other: Left) -> str:
        mine, theirs = getattr(self, name), getattr(other, name)
        if isinstance(mine, Counter):
            return (
                f"missing {sorted((mine - theirs).elements())[:1]}, too many {sorted((theirs - mine).elements())[:1]}"
            )
        return f"{json.dumps(mine)[:300]} is now {json.dumps(theirs)[:300]}"


def left(folder: Path) -> Left:
    """What the run in *folder* has left."""
    completed = _payloads(folder, "run.completed")
    documents = sorted((_lasting(document) for document in completed), key=json.dumps)
    keys = ("subject_kind", "subject_id", "judge", "score", "confidence", "judge_kind", "failure_mode")
    ended = _payloads(folder, "eval.completed") + _payloads(folder, "eval.failed")
    verdicts = Counter(json.dumps([verdict.get(key) for key in keys]) for verdict in ended)
    records = Counter(json.dumps(_lasting(record), sort_keys=True) for record in _payloads(folder, "record.completed"))
    tables = {path.name: _table(path) for path in sorted(folder.glob("*.csv"))}
    return Left(documents, verdicts, records, tables)


def _payloads(folder: Path, type_: str) -> list[dict[str, Any]]:
    with closing(connect(folder / "ledger.db")) as database:
        found = database.execute("SELECT payload FROM events WHERE type = ? ORDER BY seq", (type_,)).fetchall()
    return [json.loads(text) for (text,) in found]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(each) for key, each in value.items() if not any(word in key for word in CHANGES)}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [_lasting(row) for row in csv.DictReader(file)]
