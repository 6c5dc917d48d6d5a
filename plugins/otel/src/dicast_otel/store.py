"""Spans in a database, by trace and by conversation, so that memory does not grow with their number."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs
import orjson

from .assembly import Parts
from .conventions.kinds import kind_of
from .span import Span, SpanEvent
from .threads import Trace, session_of

TABLES = """
CREATE TABLE IF NOT EXISTS spans (number INTEGER PRIMARY KEY, trace TEXT, id TEXT, begin INTEGER, line INTEGER, data BLOB, UNIQUE (trace, id));
CREATE TABLE IF NOT EXISTS traces (number INTEGER PRIMARY KEY, trace TEXT UNIQUE);
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


@attrs.define(eq=False)
class SpanStore:
    """The spans of an input in a *database*. *repeated* counts spans whose ids occurred before."""

    database: sqlite3.Connection
    repeated: int = 0
    _rows: list[tuple[Any, ...]] = attrs.field(factory=list)
    _traces: dict[str, Trace] = attrs.field(factory=dict)
    _sizes: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def temporary(cls) -> SpanStore:
        """Return a store in a temporary file, which ends with the process."""
        database = sqlite3.connect("", isolation_level=None)
        database.executescript("PRAGMA page_size=32768; PRAGMA cache_size=-4000")  # for spans of many kB
        database.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; {TABLES}")
        store = cls(database)
        weakref.finalize(store, database.close)  # for a reader that was not read to its end
        return store

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def add(self, span: Span, line: int) -> None:
        """Add a span of *line*; spans are written in batches."""
        self._rows.append(row_of(span, line))
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
        self.repeated += len(self._rows) - (database.total_changes - before)
        database.executemany("INSERT OR IGNORE INTO traces (trace) VALUES (?)", {(row[0],): None for row in self._rows})
        database.execute("COMMIT")
        self._rows.clear()

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

    def traces(self) -> Iterator[str]:
        """Yield the ids of all traces, in the order of their first spans."""
        yield from (trace for (trace,) in self.database.execute("SELECT trace FROM traces ORDER BY number").fetchall())

    def join(self, trace: Trace) -> list[str]:
        """Note which conversations a trace belongs to; return the ids of the conversations."""
        threads = trace.threads
        linked = next(iter(trace.links()), None)
        rows = []
        for thread in threads:
            parent = thread.parent_id
            if parent is None and linked is not None:
                parent = self._linked(linked, thread.id)
            spans = [span for _, span in (*thread.spans, *thread.steps)]
            rows.append((thread.id, trace.id, parent, min((span.start or 0 for span in spans), default=0)))
        self.database.execute("DELETE FROM members WHERE trace = ?", (trace.id,))
        self.database.executemany("INSERT OR REPLACE INTO members VALUES (?, ?, ?, ?)", rows)
        return [thread.id for thread in threads]

    def _linked(self, trace_id: str, session: str) -> str | None:
        """Return the conversation of the linked trace *trace_id*, None if it is *session* itself."""
        sessions = [thread.id for thread in self.trace(trace_id).threads if thread.parent_id is None]
        return sessions[0] if sessions and session not in sessions else None

    def sessions(self) -> Iterator[str]:
        """Yield the ids of the conversations in the order of their starts; a conversation follows the one with its parent id."""
        rows = self.database.execute(
            "SELECT session, max(parent), min(begin) AS first FROM members GROUP BY session ORDER BY first, session"
        ).fetchall()
        parents = {session: parent for session, parent, _ in rows}
        done: set[str] = set()
        for session, *_ in rows:
            yield from _with_parents(session, parents, done)

    def parts(self, session: str) -> Parts:
        """Return the threads of a conversation, with the conversation that started it."""
        rows: Sequence[tuple[str, str | None]] = self.database.execute(
            "SELECT trace, parent FROM members WHERE session = ? ORDER BY begin, trace", (session,)
        ).fetchall()
        parts = Parts(session, parent_id=next((parent for _, parent in rows if parent), None))
        for trace_id, _ in rows:
            trace = self.trace(trace_id)
            parts.threads += [(trace, thread) for thread in trace.threads if thread.id == session]
        return parts


def _with_parents(session: str, parents: dict[str, str | None], done: set[str]) -> Iterable[str]:
    """Return *session* with the conversations that started it before it, without conversations in *done*."""
    chain: list[str] = []
    current: str | None = session
    while current is not None and current in parents and current not in done and current not in chain:
        chain.append(current)
        current = parents[current]
    done.update(chain)
    return reversed(chain)
