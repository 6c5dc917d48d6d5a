"""Spans in a database, by trace and by conversation, so that memory does not grow with their number."""

from __future__ import annotations

import sqlite3
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import attrs
import orjson

from .assembly import Parts
from .conventions.kinds import kind_of
from .conversations import Conversations, in_order
from .span import Span, SpanEvent
from .threads import PLACED, Trace, session_of

TABLES = """
CREATE TABLE IF NOT EXISTS spans (number INTEGER PRIMARY KEY, trace TEXT, id TEXT, begin INTEGER, line INTEGER, data BLOB, UNIQUE (trace, id));
CREATE TABLE IF NOT EXISTS traces (number INTEGER PRIMARY KEY, trace TEXT UNIQUE, begin INTEGER, others INTEGER, agents INTEGER, session TEXT,
    has_contents INTEGER, is_plain INTEGER);
CREATE TABLE IF NOT EXISTS members (session TEXT, trace TEXT, parent TEXT, begin INTEGER, PRIMARY KEY (session, trace)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS members_trace ON members (trace);
"""
ADD = "INSERT OR IGNORE INTO spans (trace, id, begin, line, data) VALUES (?, ?, ?, ?, ?)"
"""The statement that adds a row of :func:`row_of`, unless the table has a span with the same ids."""
_BATCH = 1000
_IN_MEMORY = 4 * 2**20
"""The bytes of packed spans in memory, beyond the newest trace."""


def packed(span: Span) -> bytes:
    """Return a span as JSON. Of a span that belongs to no conversation, only its place in the trace and its session id are kept."""
    kind = kind_of(span)
    attributes = dict(span.attributes)
    if kind is None:
        session = session_of(attributes)
        attributes = {} if session is None else {"session.id": session}
    events = [(event.name, event.attributes, event.time) for event in span.events] if kind is not None else []
    fields = (
        span.trace_id,
        span.id,
        span.parent_id,
        span.name,
        attributes,
        span.start,
        span.end,
        events,
        span.links,
        span.error,
        span.scope,
    )
    return orjson.dumps(fields, default=str, option=orjson.OPT_NON_STR_KEYS)


def row_of(span: Span, line: int = 0) -> tuple[str, str, int, int, bytes]:
    """Return a span as a row of the table of spans."""
    return span.trace_id, span.id, min(span.start or 0, _MOST), line, packed(span)


_MOST = 2**63 - 1  # of an integer in SQLite


def unpacked(data: bytes) -> Span:
    """Return the span that :func:`packed` wrote."""
    trace_id, id_, parent, name, attributes, start, end, events, links, error, scope = orjson.loads(data)
    return Span(
        trace_id,
        id_,
        parent,
        name,
        attributes,
        start,
        end,
        [SpanEvent(*event) for event in events],
        [(link[0], link[1]) for link in links],
        error,
        scope,
    )


@attrs.define
class _Facts:
    """Facts about the spans of a *trace* in a batch. *others* counts spans of other work, *begin* is the first start of the remaining spans.

    *session* is the id of a conversation that the spans name. *has_contents* is True if there is a span of a model, a tool, an agent or a program step.
    """

    trace: str
    begin: int | None = None
    others: int = 0
    agents: int = 0
    session: str | None = None
    has_contents: bool = False
    is_plain: bool = True

    def add(self, span: Span) -> None:
        """Note a span."""
        kind, session = kind_of(span), session_of(span.attributes)
        if span.links or (session is not None and self.session not in (None, session)):
            self.is_plain = False
        self.session = self.session or session
        if kind is None:
            self.others += 1
            return
        start = min(span.start or 0, _MOST)
        self.begin = start if self.begin is None or start < self.begin else self.begin
        self.agents += kind == "agent"
        self.has_contents = self.has_contents or kind in _CONTENTS

    def row(self, *, is_plain: bool) -> tuple[Any, ...]:
        """Return the values of :data:`_NOTE`. Without *is_plain* the trace is not plain, because spans were added twice."""
        return (
            self.trace,
            self.begin,
            self.others,
            self.agents,
            self.session,
            self.has_contents,
            self.is_plain and is_plain,
        )


_CONTENTS = frozenset((*PLACED, "chain"))
_PLAIN = "CREATE VIEW plain AS SELECT * FROM traces WHERE is_plain AND agents < 2 AND has_contents"
"""The traces with one conversation that no other conversation started. Agents inside agents, and links, may start conversations."""

_NOTE = """INSERT INTO traces (trace, begin, others, agents, session, has_contents, is_plain) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    begin = coalesce(min(begin, excluded.begin), begin, excluded.begin), others = others + excluded.others, agents = agents + excluded.agents,
    is_plain = is_plain AND excluded.is_plain AND coalesce(session = excluded.session, 1), session = coalesce(session, excluded.session),
    has_contents = has_contents OR excluded.has_contents"""


@attrs.define(eq=False)
class SpanStore(Conversations):
    """The spans of an input in a *database*. *repeated* counts spans whose ids occurred before."""

    database: sqlite3.Connection
    repeated: int = 0
    _rows: list[tuple[Any, ...]] = attrs.field(factory=list)
    _facts: dict[str, _Facts] = attrs.field(factory=dict)
    _traces: dict[str, Trace] = attrs.field(factory=dict)
    _sizes: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def temporary(cls) -> SpanStore:
        """Return a store in a temporary file, which ends with the process."""
        database = sqlite3.connect("", isolation_level=None)
        database.executescript("PRAGMA page_size=32768; PRAGMA cache_size=-4000")  # for spans of many kB
        database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {TABLES}; {_PLAIN}")
        store = cls(database)
        weakref.finalize(store, database.close)  # for a reader that was not read to its end
        return store

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def add(self, span: Span, line: int) -> None:
        """Add a span of *line*; spans are written in batches."""
        self._rows.append(row_of(span, line))
        facts = self._facts.get(span.trace_id)
        if facts is None:
            facts = self._facts[span.trace_id] = _Facts(span.trace_id)
        facts.add(span)
        if len(self._rows) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write the added spans."""
        if not self._rows:
            return
        database = self.database
        database.execute("BEGIN")
        before = database.total_changes
        database.executemany(ADD, self._rows)
        repeated = len(self._rows) - (database.total_changes - before)
        self.repeated += repeated
        rows = [facts.row(is_plain=not repeated) for facts in self._facts.values()]
        database.executemany(_NOTE, rows)
        database.execute("COMMIT")
        self._rows.clear()
        self._facts.clear()

    def place(self) -> Counter[str]:
        """Note which conversations all traces belong to; return the numbers of spans that belong to no conversation, by kind."""
        self.flush()
        database = self.database
        database.execute("INSERT INTO members SELECT coalesce(session, trace), trace, NULL, begin FROM plain")
        (others,) = database.execute("SELECT coalesce(sum(others), 0) FROM plain").fetchone()
        odd = database.execute("SELECT trace FROM traces WHERE number NOT IN (SELECT number FROM plain)").fetchall()
        unplaced = self.join_all(trace for (trace,) in odd)
        unplaced["other"] += others
        return +unplaced

    def trace(self, trace_id: str) -> Trace:
        """Return a trace with all its spans. The newest traces stay in memory until :meth:`refresh`."""
        trace = self._traces.get(trace_id)
        if trace is None:
            rows = self.database.execute("SELECT data FROM spans WHERE trace = ? ORDER BY begin, number", (trace_id,))
            packed_spans = [data for (data,) in rows]
            trace = Trace(trace_id, [*map(unpacked, packed_spans)])
            self._sizes[trace_id] = sum(map(len, packed_spans))
            while self._traces and sum(self._sizes.values()) > _IN_MEMORY:
                oldest = next(iter(self._traces))
                del self._traces[oldest], self._sizes[oldest]
            self._traces[trace_id] = trace
        return trace

    def refresh(self) -> None:
        """Remove all traces from memory, so that they are read again."""
        self._traces.clear()
        self._sizes.clear()

    def line_of(self, trace_id: str) -> int:
        """Return the first line with a span of a trace."""
        row = self.database.execute("SELECT min(line) FROM spans WHERE trace = ?", (trace_id,)).fetchone()
        return int(row[0] or 1)

    def join(self, trace: Trace) -> list[str]:
        """Note which conversations a trace belongs to; return the ids of the conversations."""
        members = self.members(trace)
        self.database.execute("DELETE FROM members WHERE trace = ?", (trace.id,))
        self.database.executemany("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)", members)
        return [session for session, *_ in members]

    def sessions(self) -> Iterator[str]:
        """Yield the ids of the conversations in the order of their starts; a conversation follows the one with its parent id."""
        rows = self.database.execute(
            "SELECT session, max(parent), min(begin) AS first FROM members GROUP BY session ORDER BY first, session"
        ).fetchall()
        yield from in_order([(session, parent) for session, parent, _ in rows])

    def parts(self, session: str) -> Parts:
        """Return the threads of a conversation, with the conversation that started it."""
        rows = self.database.execute(
            "SELECT trace, parent FROM members WHERE session = ? ORDER BY begin, trace", (session,)
        ).fetchall()
        return self.joined(session, rows)
