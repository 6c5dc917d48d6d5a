"""The opponent of an output: the subject's reference, or the output of an earlier run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager

import attrs

from dicast import ConfigError, Entry, Failure, Query, RunContext, Subject, newest_run
from dicast.toolkit.references import is_missing

Read = Callable[[Query], Iterator[Entry]]

_RECORDS = ("record.completed", "record.failed")
_NOTE = """
INSERT INTO places VALUES (?, ?, ?, ?)
ON CONFLICT (kind, id) DO UPDATE SET seq = coalesce(excluded.seq, seq), record = coalesce(excluded.record, record)
"""


def reference(subject: Subject) -> object:
    """Return the subject's reference; a Failure if it has none."""
    if is_missing(subject.reference):
        return Failure("missing_input", f"{subject.kind} {subject.id} has no reference to compare with")
    return subject.reference


@attrs.frozen
class EarlierRun:
    """The outputs of the run *run_id*, read from the ledger one by one.

    *places* has a table with the place of each subject and its record, in a temporary file: a run may need more than the memory.
    """

    run_id: str
    read: Read
    places: sqlite3.Connection

    @classmethod
    @contextmanager
    def find(cls, name: str, run: RunContext) -> Iterator[EarlierRun]:
        """Yield the run *name*, or for ``last`` the newest run that started before *run*. It can be read until the context ends.

        :raises ConfigError: if there is no such run.
        """
        read = run.read
        run_id = newest_run(read, before=run.run_id) if name == "last" else name
        with closing(_places(read, run_id)) as places:
            if run_id is None or places.execute("SELECT 1 FROM places LIMIT 1").fetchone() is None:
                raise ConfigError(f"opponent {name!r}: the ledger has no such run with subjects in it")
            yield cls(run_id, read, places)

    def output(self, subject: Subject) -> object:
        """Return the output of *subject* in the run. The output of its record counts, if a task made one."""
        query = "SELECT seq, record FROM places WHERE kind = ? AND id = ?"
        place = self.places.execute(query, (subject.kind, subject.id)).fetchone()
        name = f"{subject.kind} {subject.id}"
        if place is None or place[0] is None:
            return Failure("missing_input", f"{name} was not read in run {self.run_id}")
        content = self._payload(place[0]).get("content")
        output = _output(content, None if place[1] is None else self._payload(place[1]))
        if output is None:
            return Failure("missing_input", f"the ledger has no output of {name} in run {self.run_id}")
        if isinstance(content, Mapping) and content.get("input") != subject.input:
            return Failure("missing_input", f"{name} had another input in run {self.run_id}")
        return output

    def _payload(self, seq: int) -> Mapping[str, object]:
        return next(entry.event.payload for entry in self.read(Query(after=seq - 1, limit=1)))


def _output(content: object, record: Mapping[str, object] | None) -> object:
    """Return the output of the *record* if there is one, else of the *content*; None if neither has one."""
    if not isinstance(content, Mapping):  # a ledger of digests keeps no texts, not even of records
        return None
    if record is None:
        return content.get("output")
    response = record.get("response")
    return response.get("content") if isinstance(response, Mapping) else None


def _places(read: Read, run_id: str | None) -> sqlite3.Connection:
    """Return a database with the places of the run's subjects and their newest records in the ledger. Its file is deleted when it is closed."""
    places = sqlite3.connect("", isolation_level=None)
    places.execute("CREATE TABLE places(kind, id, seq, record, PRIMARY KEY (kind, id)) WITHOUT ROWID")
    entries = () if run_id is None else read(Query(run_id=run_id, types=("subject.read", *_RECORDS)))
    places.execute("BEGIN")  # otherwise each row is a separate transaction
    places.executemany(_NOTE, (_place(entry) for entry in entries))
    places.execute("COMMIT")
    return places


def _place(entry: Entry) -> tuple[str, str, int | None, int | None]:
    event, is_record = entry.event, entry.event.type in _RECORDS
    seqs = (None, entry.seq) if is_record else (entry.seq, None)
    return (event.subject_kind or "", event.subject_id or "", *seqs)
