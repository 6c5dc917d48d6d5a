"""Events of the shards of a run, in the order of the source, in a temporary file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from ...toolkit.shard_tree import shards_root
from ...toolkit.temporary import temporary_database
from ..classes import evolve, frozen
from ..events import (
    AGGREGATE_COMPLETED,
    BUDGET_THROTTLED,
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
from ..plan.sections import METRICS
from ..resume.digests import read_digest
from ..values import Event, Query, Subject
from ..values.clock import Clock
from ..values.errors import ConfigError, Problem
from ..values.judged import JudgedMaker, JudgedRow, Records, events_of
from .shard_set import ShardRecord, ShardSet

OF_RUN = frozenset((RUN_STARTED, RUN_STOPPED, RUN_COMPLETED, SINKS_ADDED, AGGREGATE_COMPLETED, COMPARISON_COMPLETED))
"""Types of events that are about a run or a shard itself; a merged run has its own."""

_BATCH = 1_000
"""Events that are written together."""

_ROWS = 250
"""Most judged rows that are passed on together."""

_MOST_PARTS = 2_000
"""Makers and verdicts that are remembered."""

Bounds = Mapping[int, tuple[int, int]]
"""Rows of the ledger of each shard, by its number: the events after the first row, up to the second."""

_SCHEMA = "CREATE TABLE events(position INTEGER, shard INTEGER, seq INTEGER, event BLOB)"
_SUBJECTS = "CREATE TABLE subjects(kind, id, position, shard, PRIMARY KEY (kind, id)) WITHOUT ROWID"


_GENERAL = ("judges", "task", "audit", "raw")
"""Members of ``run.started`` of a run whose subjects may have other verdicts than that of a judged row."""

_OTHER = frozenset(("weight", "failure", "finish_reason"))
"""Members of ``subject.read`` that a judged row lacks in a report."""


@frozen
class SubjectEvents:
    """The events of one subject in their order, or judged rows in their place. *superseded* are verdicts and records that a later try replaced."""

    records: Records
    superseded: frozenset[str] = frozenset()
    read: Subject | None = None
    """The subject, if its ``subject.read`` is not among the events."""

    @property
    def events(self) -> Sequence[Event]:
        """The events."""
        return events_of(self.records)

    @property
    def subject(self) -> Subject | None:
        """The subject with the columns of its data; None if its content is not there."""
        return self.read or read_subject(self.events)


class MergedEvents:
    """The events of the shards in *shards*, by the places of their subjects.

    *has_content* is False if a ledger keeps digests in place of contents.

    :param bounds: the rows with the events; all rows of all shards without it.
    :param streams: read the shards one by one while the events are taken, and pass judged rows on as they are. The shards are slices then:
        see :func:`are_slices`.
    :param together: yield neighboring judged rows together, for readers that need no single subjects.
    :raises ConfigError: if a subject is in two shards, or in none.
    """

    def __init__(
        self, shards: ShardSet, bounds: Bounds | None = None, *, streams: bool = False, together: bool = False
    ) -> None:
        self._bounds = bounds
        self._shards, self._database = shards, temporary_database(self, _SCHEMA)
        self._database.execute(_SUBJECTS)
        self._database.execute("CREATE INDEX places ON events(position, shard, seq)")
        self._ids = {shard.number: shard.run_id for shard in shards.shards}
        self.has_content = True
        self._problems: list[Problem] = []
        self._count = 0
        self._rows: list[tuple[int, int, int, bytes]] = []
        self._last = self._unit_position = -1
        self._unit: tuple[str | None, str | None] = None, None
        self._streams, self._most_together = streams, _ROWS if together else 1
        for shard in () if self._streams else shards.shards:
            for seq, record in self._records(shard):
                self._add(shard, seq, record)
            self._write()
        if not self._streams:
            self._check_whole()
        if self._problems:
            raise ConfigError(self._problems)

    def _records(self, shard: ShardRecord) -> Iterator[tuple[int, Event | JudgedRow]]:
        """Yield the records of the subjects of *shard* up to its bound, with their rows; the rows before its first bound, too."""
        self._last, self._unit = -1, (None, None)
        _, until = self._bounds_of(shard)
        read_judged = getattr(shard.ledger, "read_judged", None)
        records = ((entry.seq, entry.event) for entry in shard.ledger.read(Query(shard.run_id)))
        for seq, record in records if read_judged is None or not self._streams else read_judged(shard.run_id):
            if until is not None and seq > until:
                return
            if record.type not in OF_RUN:
                yield seq, record

    def _bounds_of(self, shard: ShardRecord) -> tuple[int, int | None]:
        return (0, None) if self._bounds is None else self._bounds.get(shard.number, (0, 0))

    def _add(self, shard: ShardRecord, first: int, record: Event | JudgedRow) -> None:
        """Add the events of *record*. Its first event is the row *first* of its ledger."""
        after, _ = self._bounds_of(shard)
        for seq, event in enumerate(events_of((record,)), first):
            key = event.subject_kind, event.subject_id
            if event.type == SUBJECT_READ:
                self._last = self._note_subject(shard, event)
                self._unit, self._unit_position = key, self._last
            elif event.subject_id is not None and key != self._unit:
                self._unit, self._unit_position = key, self._position(*key, self._last)
            position = self._last if event.subject_id is None else self._unit_position
            if seq > after:
                self._rows.append((position, shard.number, seq, _packed(event)))
        if len(self._rows) >= _BATCH:
            self._write()

    def _write(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", self._rows)
        self._database.execute("COMMIT")
        self._count += len(self._rows)
        self._rows.clear()

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
        if self._streams:
            counts = {shard.number: shard.document["subjects"] for shard in self._shards.shards}
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

    def subjects(self, run_id: str, clock: Clock) -> Iterator[SubjectEvents]:
        """Yield the events by subject, or by neighboring judged rows, in the order of the source, as events of the run *run_id*.

        :param clock: the source of the ids: ids grow in the order of the source, and sinks sort by them.
        """
        if not self._streams:
            yield from self._by_place(run_id, clock)
            return
        rows = _Rows(run_id, clock)
        for shard in self._shards.shards:
            is_plain = not any(shard.started.get(name) for name in _GENERAL)
            after, _ = self._bounds_of(shard)
            judged = list[JudgedRow]()
            for seq, record in self._records(shard):
                if isinstance(record, Event) or not (is_plain and _is_row(record)):
                    if judged:
                        yield SubjectEvents(judged)
                        judged = []
                    self._add(shard, seq, record)
                    continue
                if self._rows or self._count:
                    yield from self._flush(run_id, clock)
                self._last = record.read["position"]
                if seq > after:
                    judged.append(rows.renewed(record))
                    if len(judged) >= self._most_together:
                        yield SubjectEvents(judged)
                        judged = []
            if judged:
                yield SubjectEvents(judged)
            yield from self._flush(run_id, clock)

    def _flush(self, run_id: str, clock: Clock) -> Iterator[SubjectEvents]:
        """Yield the events that were added since the last flush, by subject, and remove them."""
        if not self._rows and not self._count:
            return
        self._write()
        if self._problems:
            raise ConfigError(self._problems)
        yield from self._by_place(run_id, clock)
        self._database.execute("DELETE FROM events")
        self._count = 0

    def _by_place(self, run_id: str, clock: Clock) -> Iterator[SubjectEvents]:
        group, group_position = list[Event](), None
        for position, shard, data in self._database.execute(
            "SELECT position, shard, event FROM events ORDER BY position, shard, seq"
        ):
            if position != group_position and group:
                yield _subject_events(group)
                group = []
            group_position = position
            group.append(_unpacked(data, clock.id(), run_id, self._ids[shard]))
        if group:
            yield _subject_events(group)


def are_slices(shards: ShardSet) -> bool:
    """Return True if the subjects of each shard come after those of the shard before it, and none is missing between complete shards."""
    last, subjects = -1, 0
    for shard in shards.shards:
        record = shard.document.get("shard", {})
        if "span" not in record:
            return False
        subjects += shard.document["subjects"]
        if record["span"] is not None:
            first, end = record["span"]
            if first <= last:
                return False
            last = end
    return shards.stopped() is not None or shards.read in (None, subjects)


def _is_row(record: JudgedRow) -> bool:
    """Return True if a report counts the judged row as it counts its events."""
    verdict = record.verdict
    return (
        record.maker.judge == METRICS
        and record.maker.started.get("trigger") == "batch"
        and _OTHER.isdisjoint(record.read)
        and type(verdict["score"]) is float
        and not verdict["skipped"]
        and "adapted" not in verdict
    )


class _Rows:
    """Judged rows of shards as rows of the run *run_id*. Rows with equal values share one verdict and one maker, also rows of several shards."""

    def __init__(self, run_id: str, clock: Clock) -> None:
        self._run_id, self._clock = run_id, clock
        self._parts: dict[bytes, Any] = {}
        self._memory: dict[int, tuple[object, Any]] = {}  # a key is the id of an object that the value keeps in use

    def renewed(self, row: JudgedRow) -> JudgedRow:
        """Return *row* with ids of the run, and without its place in the source."""
        maker: JudgedMaker = self._memory.get(id(row.maker), (None, None))[1] or self._share(row.maker)
        verdict: Mapping[str, Any] = self._memory.get(id(row.verdict), (None, None))[1] or self._share(row.verdict)
        read = {key: value for key, value in row.read.items() if key != "position"}
        ids, _ = self._clock.stamps(len(row.ids))
        members = row.answers, row.eval_id, ids, row.times, row.latency_ms, row.has_notes, row.text
        return JudgedRow(maker, row.subject, read, verdict, *members)

    def _share(self, part: Any) -> Any:
        """Return the first of all makers or verdicts that equal *part*."""
        if len(self._memory) >= _MOST_PARTS:
            self._memory.clear()
            self._parts.clear()
        renewal = evolve(part, run_id=self._run_id) if isinstance(part, JudgedMaker) else part
        first = self._parts.setdefault(orjson.dumps(renewal, default=attrs.astuple), renewal)
        self._memory[id(part)] = part, first
        return first


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
    elif type_ == BUDGET_THROTTLED and payload["scope"] == f"run:{shard_run_id}":
        payload["scope"] = f"run:{run_id}"
    return Event.of(id_, type_, time, run_id, payload, *of)


def _subject_events(events: Sequence[Event]) -> SubjectEvents:
    newest: dict[tuple[str | None, str | None, str], str] = {}
    ends = [event for event in events if event.type in VERDICT_ENDS or event.type in RECORD_ENDS]
    for event in ends:
        newest[event.subject_kind, event.subject_id, str(event.payload.get("judge", ""))] = event.id
    current = {*newest.values()}
    superseded = frozenset(event.id for event in ends if event.id not in current)
    return SubjectEvents(events, superseded)


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
