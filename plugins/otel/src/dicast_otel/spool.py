"""The received spans, in a database that survives the process."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from .assembly import Parts
from .span import Span
from .store import ADD, TABLES, SpanStore, row_of

_TABLES = f"""
PRAGMA journal_mode=WAL;
{TABLES}
CREATE TABLE IF NOT EXISTS arrivals (trace TEXT PRIMARY KEY, arrived REAL, has_root INTEGER, spans INTEGER, bytes INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS open_sessions (session TEXT PRIMARY KEY, arrived REAL, is_over INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sizes (trace TEXT PRIMARY KEY, spans INTEGER) WITHOUT ROWID;
"""
_ARRIVED = (
    "INSERT INTO arrivals VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET arrived = excluded.arrived,"
    " has_root = max(has_root, excluded.has_root), spans = spans + excluded.spans, bytes = bytes + excluded.bytes"
)
_COUNT = "INSERT INTO sizes VALUES (?, ?) ON CONFLICT DO UPDATE SET spans = spans + excluded.spans"
_OPEN = "INSERT INTO open_sessions VALUES (?, ?, 0) ON CONFLICT DO UPDATE SET arrived = excluded.arrived, is_over = 0"
_READY = (
    "SELECT trace, arrived FROM arrivals WHERE arrived <= ? OR (has_root AND arrived <= ?) ORDER BY arrived LIMIT ?"
)
_OVER = (
    "SELECT session FROM open_sessions WHERE NOT is_over AND arrived <= ? AND session NOT IN"
    " (SELECT session FROM members JOIN arrivals USING (trace)) ORDER BY arrived LIMIT ?"
)


class SpoolFull(Exception):
    """The spool has reached the limit of bytes of waiting spans."""


@attrs.define
class _Batch:
    """The rows of one trace in a request."""

    rows: list[tuple[str, str, int, int, bytes]] = attrs.field(factory=list)
    has_root: bool = False
    size: int = 0


class Spool:
    """The database of a receiver. All methods may be called from any thread.

    :param max_bytes: the most bytes of spans whose conversations were not judged yet; further spans are refused.
    :param max_trace_spans: the most spans of a trace; further spans are rejected.
    """

    def __init__(self, path: Path, max_bytes: int, max_trace_spans: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._writer, self._reader = _connected(path), _connected(path)
        path.chmod(0o600)  # it has the texts of conversations
        self._writer.executescript(_TABLES)
        self._writer.execute("PRAGMA synchronous=FULL")  # a commit returns when it is on the disk
        self._reader.execute("PRAGMA synchronous=NORMAL")  # lost changes of the reader are repeated
        self._store = SpanStore(self._reader)
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._max_bytes, self._max_trace_spans = max_bytes, max_trace_spans
        (self._unread,) = self._reader.execute("SELECT coalesce(sum(bytes), 0) FROM arrivals").fetchone()

    def close(self) -> None:
        """Close the database."""
        with self._writing, self._reading:
            self._writer.close()
            self._reader.close()

    @property
    def unread(self) -> int:
        """The bytes of spans whose conversations were not judged yet."""
        unread: int = self._unread
        return unread

    def add(self, spans: Iterable[Span], now: float) -> int:
        """Add spans durably, and return the number of spans that were rejected because their trace has too many. Repeated spans are left out.

        :raises SpoolFull: if too many spans wait; then no span is added.
        """
        batches: dict[str, _Batch] = {}
        for span in spans:
            batch = batches.setdefault(span.trace_id, _Batch())
            batch.rows.append(row_of(span))
            batch.has_root = batch.has_root or span.parent_id is None
            batch.size += len(batch.rows[-1][-1])
        size = sum(batch.size for batch in batches.values())
        with self._writing:
            if self._unread and self._unread + size > self._max_bytes:
                raise SpoolFull
            with _transaction(self._writer):
                results = [self._add(trace_id, batch, now) for trace_id, batch in batches.items()]
            self._unread += sum(size for _, size in results)
        return sum(rejected for rejected, _ in results)

    def _add(self, trace_id: str, batch: _Batch, now: float) -> tuple[int, int]:
        """Add the rows of one trace; return the number of rejected rows, and the new bytes."""
        (spans,) = self._writer.execute(
            "SELECT coalesce(sum(spans), 0) FROM sizes WHERE trace = ?", (trace_id,)
        ).fetchone()
        rows = batch.rows[: max(0, self._max_trace_spans - spans)]
        before = self._writer.total_changes
        self._writer.executemany(ADD, rows)
        added = self._writer.total_changes - before
        if added:
            self._writer.execute("INSERT OR IGNORE INTO traces (trace) VALUES (?)", (trace_id,))
            self._writer.execute(_ARRIVED, (trace_id, now, batch.has_root, added, batch.size))
            self._writer.execute(_COUNT, (trace_id, added))
        return len(batch.rows) - len(rows), batch.size if added else 0

    def ready(self, complete: float, idle: float, most: int) -> list[tuple[str, float]]:
        """Return traces, each with the time of its newest span: traces with a root if it is at most *complete*, others if it is at most *idle*.

        At most *most* traces are returned, the oldest first.
        """
        with self._reading:
            return self._reader.execute(_READY, (idle, complete, most)).fetchall()

    def join(self, traces: Sequence[tuple[str, float]]) -> tuple[list[str], Counter[str]]:
        """Note which conversations *traces* belong to; return the ids of the conversations, and the number of spans of other work by kind."""
        sessions: dict[str, None] = {}
        unplaced: Counter[str] = Counter()
        with self._reading, _transaction(self._reader):
            self._store.refresh()
            for trace_id, arrived in traces:
                trace = self._store.trace(trace_id)
                ids = self._store.join(trace)
                self._reader.executemany(_OPEN, [(id_, arrived) for id_ in ids])
                sessions |= dict.fromkeys(ids)
                unplaced += trace.unplaced
        return list(sessions), unplaced

    def parts(self, session: str) -> Parts:
        """Return the threads of a conversation."""
        with self._reading:
            return self._store.parts(session)

    def over(self, idle: float, most: int) -> list[str]:
        """Return conversations without a new span since *idle*, at most *most*."""
        with self._reading:
            return [session for (session,) in self._reader.execute(_OVER, (idle, most)).fetchall()]

    def settle(self, traces: Sequence[tuple[str, float]], sessions: Sequence[str]) -> None:
        """Note that *traces* without newer spans were judged, and that *sessions* are over."""
        with self._writing, self._reading:
            with _transaction(self._reader):
                self._reader.executemany("DELETE FROM arrivals WHERE trace = ? AND arrived = ?", traces)
                over = [(id_,) for id_ in sessions]
                self._reader.executemany("UPDATE open_sessions SET is_over = 1 WHERE session = ?", over)
            (self._unread,) = self._reader.execute("SELECT coalesce(sum(bytes), 0) FROM arrivals").fetchone()

    def forget(self, before: float) -> None:
        """Remove the spans of conversations that ended before *before*: their events are in the ledger."""
        with self._reading:
            rows = self._reader.execute(
                "SELECT DISTINCT trace FROM members JOIN open_sessions USING (session) WHERE is_over AND open_sessions.arrived < ?"
                " AND trace NOT IN (SELECT trace FROM members JOIN open_sessions USING (session) WHERE NOT is_over)",
                (before,),
            ).fetchall()
            with _transaction(self._reader):
                self._reader.executemany("DELETE FROM spans WHERE trace = ?", rows)
                self._reader.execute("DELETE FROM open_sessions WHERE is_over AND arrived < ?", (before,))

    def deadline(self, settle_seconds: float, idle_seconds: float, opened: float) -> float | None:
        """Return the time at which the next conversation is due, None if no conversation waits. The wait starts at *opened* at the earliest."""
        with self._reading:
            (rooted,) = self._reader.execute("SELECT min(arrived) FROM arrivals WHERE has_root").fetchone()
            (oldest,) = self._reader.execute("SELECT min(arrived) FROM arrivals").fetchone()
            (session,) = self._reader.execute("SELECT min(arrived) FROM open_sessions WHERE NOT is_over").fetchone()
        times = [(rooted, settle_seconds), (oldest, idle_seconds), (session, idle_seconds)]
        return min((max(arrived, opened) + seconds for arrived, seconds in times if arrived is not None), default=None)


def _connected(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
