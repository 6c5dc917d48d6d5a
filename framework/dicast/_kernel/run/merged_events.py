"""Events of the shards of a run, in the order of the source, in a temporary file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson

from ...toolkit.shard_tree import shards_root
from ...toolkit.temporary import temporary_database
from ..classes import frozen
from ..events import (
    AGGREGATE_COMPLETED,
    COMPARISON_COMPLETED,
    RECORD_ENDS,
    RUN_COMPLETED,
    RUN_STARTED,
    RUN_STOPPED,
    SINKS_ADDED,
    SPEND_RESERVED,
    SUBJECT_READ,
    VERDICT_ENDS,
)
from ..resume.digests import read_digest
from ..values import Event, Query, Subject
from ..values.errors import ConfigError, Problem
from .shard_set import ShardRecord, ShardSet

_OF_SHARD = frozenset((RUN_STARTED, RUN_STOPPED, RUN_COMPLETED, SINKS_ADDED, AGGREGATE_COMPLETED, COMPARISON_COMPLETED))
"""Types of events that are about the shard itself; the merged run has its own."""

_BATCH = 1_000
"""Events that are written together."""

Bounds = Mapping[int, tuple[int, int]]
"""Rows of the ledger of each shard, by its number: the events after the first row, up to the second."""

_SCHEMA = "CREATE TABLE events(position INTEGER, shard INTEGER, seq INTEGER, event BLOB)"
_SUBJECTS = "CREATE TABLE subjects(kind, id, position, shard, PRIMARY KEY (kind, id)) WITHOUT ROWID"


@frozen
class SubjectEvents:
    """The events of one subject in their order. *superseded* are verdicts and records that a later try replaced."""

    subject: Subject | None
    events: Sequence[Event]
    superseded: frozenset[str]


class MergedEvents:
    """The events of the shards in *shards*, by the places of their subjects.

    *has_content* is False if a ledger keeps digests in place of contents.

    :param bounds: the rows with the events; all rows of all shards without it.
    :raises ConfigError: if a subject is in two shards, or in none.
    """

    def __init__(self, shards: ShardSet, bounds: Bounds | None = None) -> None:
        self._bounds = bounds
        self._shards, self._database = shards, temporary_database(self, _SCHEMA)
        self._database.execute(_SUBJECTS)
        self.has_content = True
        self._problems: list[Problem] = []
        self._database.execute("BEGIN")
        for shard in shards.shards:
            self._add(shard)
        self._database.execute("COMMIT")
        self._database.execute("CREATE INDEX places ON events(position, shard, seq)")
        self._check_whole()
        if self._problems:
            raise ConfigError(self._problems)

    def _add(self, shard: ShardRecord) -> None:
        rows: list[tuple[int, int, int, bytes]] = []
        last, unit_position = -1, -1
        unit: tuple[str | None, str | None] = None, None
        after, until = (0, None) if self._bounds is None else self._bounds.get(shard.number, (0, 0))
        for entry in shard.ledger.read(Query(run_id=shard.run_id)):
            event = entry.event
            if until is not None and entry.seq > until:
                break
            if event.type in _OF_SHARD:
                continue
            key = event.subject_kind, event.subject_id
            if event.type == SUBJECT_READ:
                last = self._note_subject(shard, event)
                unit, unit_position = key, last
            elif event.subject_id is not None and key != unit:
                unit, unit_position = key, self._position(*key, last)
            position = last if event.subject_id is None else unit_position
            if entry.seq > after:
                rows.append((position, shard.number, entry.seq, _packed(event)))
            if len(rows) == _BATCH:
                self._write(rows)
        self._write(rows)

    def _write(self, rows: list[tuple[int, int, int, bytes]]) -> None:
        self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
        rows.clear()

    def _note_subject(self, shard: ShardRecord, event: Event) -> int:
        position: Any = event.payload["position"]
        self.has_content = self.has_content and event.payload.get("content") is not None
        row = event.subject_kind, event.subject_id, position, shard.number
        if not self._database.execute("INSERT OR IGNORE INTO subjects VALUES (?, ?, ?, ?)", row).rowcount:
            query = "SELECT shard FROM subjects WHERE kind = ? AND id = ?"
            (number,) = self._database.execute(query, row[:2]).fetchone()
            message = f"{event.subject_kind} {event.subject_id!r:.60} is also in shard {number}; the order of the source changed between the shards"
            self._problems.append(Problem(f"{shard}: {message}", file=shard.place))
        return int(position)

    def _position(self, kind: str | None, id_: str | None, last: int) -> int:
        query = "SELECT position FROM subjects WHERE kind = ? AND id = ?"
        row = self._database.execute(query, (kind, id_)).fetchone()
        return last if row is None else int(row[0])

    def _check_whole(self) -> None:
        """Note the problem that places are taken twice, or that subjects of complete shards are missing."""
        query = "SELECT count(*), count(DISTINCT position), max(position) FROM subjects"
        count, places, highest = self._database.execute(query).fetchone()
        read, is_complete = self._shards.read, self._bounds is None and self._shards.stopped() is None
        is_whole = count == places and (read is None or (count == read if is_complete else (highest or 0) < read))
        if not is_whole and not self._problems:
            of = "" if read is None else f" of {read:,}"
            message = f"the shards have {count:,}{of} subjects at {places:,} places; the order of the source changed between the shards"
            self._problems.append(Problem(message))

    def root(self) -> dict[str, Any] | None:
        """Return the payload of ``shard.rooted``; None without shards, or if a ledger of a shard has no digest of its last event."""
        query = "SELECT shard, count(*) FROM subjects GROUP BY shard"
        counts = dict(self._database.execute(query).fetchall())
        shards = list[dict[str, Any]]()
        for shard in self._shards.shards:
            entries = shard.ledger.read(Query(shard.run_id, newest_first=True, limit=1))
            seq = next(iter(entries)).seq  # a shard has its run.started
            if not (digest := read_digest(shard.ledger, seq)):
                return None
            head = {"seq": seq, "digest": digest}
            members = {"number": shard.number, "run_id": shard.run_id, "count": counts.get(shard.number, 0)}
            shards.append({**members, "head": head, "place": shard.place})
        return {"shards": shards, "root": shards_root(shards)} if shards else None

    def subjects(self, run_id: str, new_id: Callable[[], str]) -> Iterator[SubjectEvents]:
        """Yield the events by subject, in the order of the source, as events of the run *run_id*.

        :param new_id: returns the id of the next event: ids grow in the order of the source, and sinks sort by them.
        """
        ids = {shard.number: shard.run_id for shard in self._shards.shards}
        group, group_position = list[Event](), None
        for position, shard, data in self._database.execute(
            "SELECT position, shard, event FROM events ORDER BY position, shard, seq"
        ):
            if position != group_position and group:
                yield _subject_events(group)
                group = []
            group_position = position
            group.append(_unpacked(data, new_id(), run_id, ids[shard]))
        if group:
            yield _subject_events(group)


def _packed(event: Event) -> bytes:
    of = event.session_id, event.turn_id, event.subject_kind, event.subject_id, event.sensitivity
    return orjson.dumps([event.type, event.time, event.payload, *of])


def _unpacked(data: bytes, id_: str, run_id: str, shard_run_id: str) -> Event:
    """Return the event in *data* as the event *id_* of the run *run_id*; *shard_run_id* is the run that recorded it."""
    type_, time, payload, *of = orjson.loads(data)
    if type_ == SUBJECT_READ:
        del payload["position"]
    elif type_ == SPEND_RESERVED:
        payload["scopes"] = [
            f"run:{run_id}" if scope == f"run:{shard_run_id}" else scope
            for scope in payload["scopes"]
            if not scope.startswith("day:") or " " not in scope  # the share of a shard
        ]
    return Event.of(id_, type_, time, run_id, payload, *of)


def _subject_events(events: Sequence[Event]) -> SubjectEvents:
    newest: dict[tuple[str | None, str | None, str], str] = {}
    ends = [event for event in events if event.type in VERDICT_ENDS or event.type in RECORD_ENDS]
    for event in ends:
        newest[event.subject_kind, event.subject_id, str(event.payload.get("judge", ""))] = event.id
    current = {*newest.values()}
    superseded = frozenset(event.id for event in ends if event.id not in current)
    return SubjectEvents(read_subject(events), events, superseded)


def read_subject(events: Sequence[Event]) -> Subject | None:
    """Return the subject that *events* are about, with the columns of its data; None if its content is not there."""
    read = next((event for event in events if event.type == SUBJECT_READ), None)
    if read is None or not read.payload.get("content"):
        return None
    payload: Any = read.payload
    content, weight = payload["content"], payload.get("weight", 1.0)
    subject = Subject(
        str(read.subject_kind), str(read.subject_id), **content, session_id=read.session_id, weight=weight
    )
    named = payload.get("columns", {}).items()
    columns = {name: getattr(subject, part) if isinstance(part, str) else part[0] for name, part in named}
    object.__setattr__(subject, "columns", columns)
    return subject
