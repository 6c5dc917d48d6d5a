"""What an output is compared with: the subject's reference, or what an earlier run had."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

import attrs
import orjson

from dicast import ConfigError, Entry, Failure, Query, RunContext, Subject

Read = Callable[[Query], Iterator[Entry]]


def text_of(value: object) -> str:
    """*value* as text: a string as it is, any other JSON value as compact JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def reference(subject: Subject) -> str | Failure:
    """The subject's reference."""
    if subject.reference is None:
        return Failure("missing_input", f"{subject.kind} {subject.id} has no reference to be compared with")
    return text_of(subject.reference)


@attrs.frozen
class EarlierRun:
    """The outputs of the run *run_id*, read from the ledger one by one.

    *places* has a table of where each subject's stands, in a temporary file: a run may have more than memory holds.
    """

    run_id: str
    read: Read
    places: sqlite3.Connection

    @classmethod
    @contextmanager
    def find(cls, wanted: str, run: RunContext) -> Iterator[EarlierRun]:
        """The run *wanted*, or for ``last`` the newest one that began before *run*; it can be read until the context ends.

        :raises ConfigError: when there is none.
        """
        read = run.read
        run_id = _newest(read, run.run_id) if wanted == "last" else wanted
        with closing(_places(read, run_id)) as places:
            if run_id is None or places.execute("SELECT 1 FROM places LIMIT 1").fetchone() is None:
                raise ConfigError(f"opponent {wanted!r}: the ledger has no such run with subjects in it")
            yield cls(run_id, read, places)

    def output(self, subject: Subject) -> str | Failure:
        """What the run had as the output of *subject*."""
        query = "SELECT seq FROM places WHERE kind = ? AND id = ?"
        place = self.places.execute(query, (subject.kind, subject.id)).fetchone()
        who = f"{subject.kind} {subject.id}"
        if place is None:
            return Failure("missing_input", f"{who} was not read in run {self.run_id}")
        content = next(
            (entry.event.payload.get("content") for entry in self.read(Query(after=place[0] - 1, limit=1))), None
        )
        if not isinstance(content, Mapping) or content.get("output") is None:
            return Failure("missing_input", f"the ledger has no output of {who} in run {self.run_id}")
        if content.get("input") != subject.input:
            return Failure("missing_input", f"{who} had another input in run {self.run_id}")
        return text_of(content["output"])


def _places(read: Read, run_id: str | None) -> sqlite3.Connection:
    """Where the subjects of the run stand in the ledger, the newest place of each; the file is gone when it is closed."""
    places = sqlite3.connect("", isolation_level=None)
    places.execute("CREATE TABLE places(kind, id, seq, PRIMARY KEY (kind, id)) WITHOUT ROWID")
    entries = () if run_id is None else read(Query(run_id=run_id, types=("subject.read",)))
    rows = ((entry.event.subject_kind or "", entry.event.subject_id or "", entry.seq) for entry in entries)
    places.execute("BEGIN")  # else each row is a transaction of its own
    places.executemany("INSERT OR REPLACE INTO places VALUES (?, ?, ?)", rows)
    places.execute("COMMIT")
    return places


def _newest(read: Read, before: str) -> str | None:
    """The run that began last before the one called *before*, by the order of the ledger: ids are as good as clocks."""
    own = next((entry.seq for entry in read(Query(before, ("run.started",), limit=1))), None)
    begun = read(Query(types=("run.started",), newest_first=True))
    return next((entry.event.run_id for entry in begun if own is None or entry.seq < own), None)
