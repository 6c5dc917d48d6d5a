"""Read money and results of a killed or finished run from its ledger and files."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from dicast import Event

CHANGES = ("run_id", "time", "latency", "spend_lost", "head", "created_at")
"""Words in the names of fields and columns that may differ from run to run."""

CONCLUSIONS = ("aggregate.completed", "comparison.completed")
"""Types of events at the end of a run, which are recorded again if it is continued."""


@dataclass
class Books:
    """Money and replies in a run's ledger: replies, open reservations, settled and lost calls.

    *unanswered* is the number of calls whose reservation is open or lost; *doubled* are the events that the ledger holds twice.

    *begun* and *ended* are true where a run started and ended; *started* is when the first one began and *last* when the newest
    event was, in seconds since the epoch. *reserved* is the largest reservation.
    """

    replies: int = 0
    open: int = 0
    unanswered: int = 0
    doubled: int = 0
    usd: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)
    begun: bool = False
    ended: bool = False
    started: float = 0.0
    last: float = 0.0
    types: Counter[str] = field(default_factory=Counter)

    @classmethod
    def read(cls, events: Sequence[Event], segments: Sequence[Event] = ()) -> Books:
        """Return the sums of a ledger, and of segments that the ledger may lack."""
        books = cls()
        books.last = max((datetime.fromisoformat(event.time).timestamp() for event in events), default=0.0)
        books.doubled = len(events) - len({event.id for event in events})
        experiments = 1
        for event in events:
            if event.type.startswith("run."):
                books.types[event.type] += 1
            if event.type == "run.started":
                books.started = books.started or datetime.fromisoformat(event.time).timestamp()
                payload: Any = event.payload
                experiments = len((payload.get("suite") or {}).get("experiments") or [None])
            books.replies += event.type == "task.replied"
        books._add_money([*segments, *events])
        books.begun = books.types["run.started"] > 0
        books.ended = books.types["run.completed"] == experiments
        return books

    def _add_money(self, events: Sequence[Event]) -> None:
        """Add the reservations of *events*, each once: a transfer of segments copies their events."""
        reserved, closed, unanswered = set[str](), set[str](), set[str]()
        for event in events:
            payload: Any = event.payload
            id_ = payload.get("reservation_id")
            if event.type == "spend.reserved":
                reserved.add(id_)
                if event.subject_id is not None:  # the other reservations hold what the shards of a run may spend
                    unanswered.add(id_)
                    self.reserved = max(self.reserved, Decimal(payload["amount"]))
            elif event.type in ("spend.settled", "spend.lost", "spend.released") and id_ not in closed:
                closed.add(id_)
                if event.type != "spend.lost":
                    unanswered.discard(id_)
                self.usd += Decimal(payload["amount"]) if event.type != "spend.released" else 0
                self.replies += bool(event.type == "spend.settled" and payload.get("reply"))
        self.open, self.unanswered = len(reserved - closed), len(unanswered)


@dataclass(frozen=True)
class Left:
    """Results of a run without ids, times and the costs of a kill."""

    documents: list[Any]
    verdicts: Counter[str]
    records: Counter[str]
    tables: dict[str, list[dict[str, str]]]
    counts: Counter[str]

    def differences(self, other: Left) -> list[str]:
        """The names of the parts that are not the same in *other*, with one example each."""
        names = [
            name
            for name in ("documents", "verdicts", "records", "tables", "counts")
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


def left(folder: Path, events: Sequence[Event], *, counts_all: bool = False) -> Left:
    """Return the books of the run with these *events* and with its files in *folder*.

    :param counts_all: also count the events of each type about each subject, which are equal in all merges.
    """
    completed = _payloads(events, "run.completed")
    documents = sorted((_lasting(document) for document in completed), key=json.dumps)
    keys = ("subject_kind", "subject_id", "judge", "score", "confidence", "judge_kind", "failure_mode")
    ended = _payloads(events, "eval.completed") + _payloads(events, "eval.failed")
    verdicts = Counter(json.dumps([verdict.get(key) for key in keys]) for verdict in ended)
    records = Counter(json.dumps(_lasting(record), sort_keys=True) for record in _payloads(events, "record.completed"))
    tables = {path.name: _table(path) for path in sorted(folder.glob("*.csv"))}
    about = [[event.type, event.subject_kind, event.subject_id] for event in events if counts_all]
    counts = Counter(json.dumps(names) for names in about if names[0] not in CONCLUSIONS)
    return Left(documents, verdicts, records, tables, counts)


def _payloads(events: Sequence[Event], type_: str) -> list[Any]:
    return [event.payload for event in events if event.type == type_]


def _lasting(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lasting(each) for key, each in value.items() if not any(word in key for word in CHANGES)}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [_lasting(row) for row in csv.DictReader(file)]
