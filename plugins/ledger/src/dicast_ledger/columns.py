"""Columns next to the chain: the few values of each verdict, failure, reading and model call that readers of many of them need.

A row of ``judged_lines``, ``read_lines``, ``traced_lines`` or ``spent_lines`` holds the lines of one append, or of several small appends, one column after
another: whole numbers of 4 or 8 bytes, and floats. Facts that many lines share are stored once, in ``judged_by`` and the similar tables; ids
are numbers of ``names`` (see :mod:`.naming`). ``columned`` has the last row of the chain that the columns cover. An older version of dicast does not move
it, and later rows are read from the chain. It also counts the ``odd`` rows: rows about a subject that have no
line, because their payload does not have the form of its type.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any

import attrs
import orjson

from dicast import Entry, Event, LedgerError
from dicast.reading import activity_of, line_of

from .naming import FEW, NAMES_TABLE, Naming
from .spent import SPENT_TYPES, spent_of

_LINES = "(first INTEGER PRIMARY KEY, last INTEGER, size INTEGER, exact TEXT, lines BLOB)"
_COMMON = "(code INTEGER PRIMARY KEY, facts TEXT UNIQUE)"
ABOUT_WHAT = ("judged", "read", "traced", "spent")
COLUMN_TABLES = (
    "CREATE TABLE IF NOT EXISTS columned (upto INTEGER, odd INTEGER)",
    *(f"CREATE TABLE IF NOT EXISTS {name}_by {_COMMON}" for name in ABOUT_WHAT),
    *(f"CREATE TABLE IF NOT EXISTS {name}_lines {_LINES}" for name in ABOUT_WHAT),
    "CREATE TABLE IF NOT EXISTS begun (eval_id TEXT, seq INTEGER, PRIMARY KEY (eval_id, seq)) WITHOUT ROWID",
    NAMES_TABLE,
)

LINES_AT_ONCE = 20_000
"""Most rows without columns that one append adds to the columns."""

Values = tuple[Any, ...]
"""The numbers of a line without the number of its name."""

Line = tuple[Values, str | None, list[Any] | None]
"""The values of a row of the chain, its name, and the amounts as text if they do not fit in the columns."""

EventLine = tuple[Any, Values, Values, str | None, Sequence[Any] | None, bool]
"""Line of an event: the facts that it shares with other events, the numbers before and after the code of these facts, the name, the amounts
as text, and whether the line does not name its subject."""

Times = dict[str, int]

Newest = tuple[int, int, list[list[Any]], list[bytes]]
"""Newest row of a table of lines: its first row of the chain, its number of lines, their amounts as text, and its columns."""


def _sizes(codes: str) -> tuple[int, ...]:
    return tuple(array(code).itemsize for code in codes)


@attrs.frozen(eq=False)
class Packed:
    """A table of lines: its subject, the types of its events, and the type of each column. The last column is the name's number."""

    about: str
    types: tuple[str, ...]
    codes: str
    line: Callable[[Event, Times], EventLine | None]
    name: str = attrs.field(init=False, default=attrs.Factory(lambda self: f"{self.about}_lines", takes_self=True))
    """The table of the lines."""
    common: str = attrs.field(init=False, default=attrs.Factory(lambda self: f"{self.about}_by", takes_self=True))
    """The table of the facts that lines share."""
    sizes: tuple[int, ...] = attrs.field(
        init=False, default=attrs.Factory(lambda self: _sizes(self.codes), takes_self=True)
    )
    """The bytes of each column."""
    pack: Struct = attrs.field(
        init=False, default=attrs.Factory(lambda self: Struct(f"={self.codes[:-1]}"), takes_self=True)
    )
    """Struct that packs the numbers of a line for a comparison."""

    def split(self, lines: bytes, size: int) -> Iterator[memoryview]:
        """Yield the columns of a row of the table.

        :raises sqlite3.DatabaseError: if the row does not hold *size* lines.
        """
        if type(lines) is not bytes or type(size) is not int or len(lines) != size * sum(self.sizes):
            raise sqlite3.DatabaseError(f"a row of {self.name} does not hold {size!r} lines")
        view, start = memoryview(lines), 0
        for width in self.sizes:
            end = start + size * width
            yield view[start:end]
            start = end


def _verdict(event: Event, times: Times) -> EventLine | None:
    line = line_of(event, times)
    if line is None:
        return None
    origin, time, flags, score, confidence, usd, msat, id, exact = line
    return origin, (time,), (flags, score, confidence, usd, msat), id, exact, id != event.subject_id


def _read(event: Event, times: Times) -> EventLine | None:
    activity = activity_of(event)
    return None if activity is None else (activity[0], (), (activity[1],), activity[2], None, False)


def _traced(event: Event, times: Times) -> EventLine | None:
    activity = activity_of(event)
    return None if activity is None else (activity[0], (), (), activity[2], None, False)


def _spent(event: Event, times: Times) -> EventLine | None:
    activity = spent_of(event)
    return None if activity is None else (*activity, False)


ABOUT = ("subject.read", "record.completed", "record.failed")
TRACES = ("route.decided", "llm.call_completed")
JUDGED = Packed("judged", ("eval.completed", "eval.failed"), "qqiiddqqi", _verdict)
READ = Packed("read", ABOUT, "qiqi", _read)
TRACED = Packed("traced", TRACES, "qii", _traced)
PAID = Packed("spent", SPENT_TYPES, "qqiiqqqqi", _spent)
PACKED = (JUDGED, READ, TRACED, PAID)
"""All tables of lines. A call of an agent has a line in two of them."""
STARTED, *_ = EVALS = ("eval.started", *JUDGED.types)
COLUMNED = frozenset((STARTED, *(type_ for table in PACKED for type_ in table.types)))
"""The types of events that have lines in the columns."""


class Columns:
    """Writer of the columns of one ledger, inside the transactions of its appends. Call :meth:`forget` after a failed transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._codes: dict[str, dict[Any, int]] = {table.common: {} for table in PACKED}
        self._naming = Naming(connection)
        self._newest: dict[str, Newest] = {}
        self._upto = -1
        self._covered: int | None = None
        self._has_tables = False

    def forget(self) -> None:
        """Forget the codes of a transaction that was rolled back."""
        for codes in self._codes.values():
            codes.clear()
        self._upto = -1

    def add(self, events: Sequence[Event], first: int) -> None:
        """Add *events*, which are the rows from *first* on, if the columns cover all rows before *first*. Call :meth:`catch_up` before."""
        if self._covered == first - 1:
            self._extend(enumerate(events, first), first - 1, first + len(events) - 1)

    def catch_up(self, newest: int, entry: Callable[[sqlite3.Connection, tuple[Any, ...]], Entry]) -> None:
        """Add rows up to *newest* that the columns do not cover, at most :data:`LINES_AT_ONCE`; no row is added if one of them was changed."""
        self._has_tables = self._has_tables or has_columns(self._connection)
        self._covered = upto = covered(self._connection, has_table=True)[0] if self._has_tables else None
        if upto is None or upto >= newest:
            return
        last = min(newest, upto + LINES_AT_ONCE)
        query = f"""SELECT seq, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload, prev, digest
            FROM events WHERE seq > ? AND seq <= ? AND type IN ({", ".join("?" * len(COLUMNED))}) ORDER BY seq"""
        rows = self._connection.execute(query, (upto, last, *sorted(COLUMNED))).fetchall()
        with suppress(LedgerError):  # dicast ledger verify reports the changed row
            self._extend([(row[0], entry(self._connection, row).event) for row in rows], upto, last)

    def _extend(self, events: Iterable[tuple[int, Event]], before: int, upto: int) -> None:
        """Add *events* with the numbers of their rows to columns that cover the rows up to *before*; then they cover the rows up to *upto*."""
        chosen = [numbered for numbered in events if numbered[1].type in COLUMNED]
        if judged := [numbered for numbered in chosen if numbered[1].type in EVALS]:
            self.record_open(judged)
        is_current = self._upto == before  # otherwise another process has written since
        if not is_current:
            self._newest.clear()
        odd = self._write(chosen, is_current=is_current) if chosen else 0
        self._covered, self._upto = upto, upto if chosen or is_current else -1
        execute = self._connection.execute
        if not execute("UPDATE columned SET upto = ?, odd = odd + ?", (upto, odd)).rowcount:
            execute("INSERT INTO columned VALUES (?, ?)", (upto, odd))

    def record_open(self, events: Iterable[tuple[int, Event]]) -> None:
        """Add the judgments that *events* start to the table of open judgments, and remove the judgments that they end."""
        starts: dict[object, list[int]] = {}
        ends = []
        for seq, event in events:
            eval_id = event.payload.get("eval_id")
            if event.type == STARTED:
                starts.setdefault(eval_id, []).append(seq)
            else:
                starts.pop(eval_id, None)
                ends.append((eval_id,))
        if ends and self._connection.execute("SELECT 1 FROM begun LIMIT 1").fetchone() is not None:
            self._connection.executemany("DELETE FROM begun WHERE eval_id = ?", ends)
        if starts:
            rows = [(eval_id, seq) for eval_id, seqs in starts.items() if isinstance(eval_id, str) for seq in seqs]
            self._connection.executemany("INSERT INTO begun VALUES (?, ?)", rows)

    def _write(self, events: Sequence[tuple[int, Event]], *, is_current: bool) -> int:
        """Write the lines of *events*, and return the number of odd events."""
        total_odd = 0
        self._naming.begin(events[0][0], is_current=is_current)
        for table in PACKED:
            if table_events := [numbered for numbered in events if numbered[1].type in table.types]:
                lines, odd = self.lines(table, table_events)
                total_odd += odd
                if lines:
                    self._put(table, lines)
        self._naming.write()
        return total_odd

    def _put(self, table: Packed, lines: Sequence[Line]) -> None:
        first, last, size = lines[0][0][0], lines[-1][0][0], len(lines)
        numbers = self._naming.numbers([line[1] for line in lines])
        columns = zip(*(line[0] for line in lines), strict=True)
        packed = [array(code, column).tobytes() for code, column in zip(table.codes, (*columns, numbers), strict=True)]
        exact = [[place, *line[2]] for place, line in enumerate(lines) if line[2] is not None]
        if size < FEW and (before := self._newest_of(table)) is not None and before[1] < FEW:
            exact = [*before[2], *([place + before[1], *texts] for place, *texts in exact)]
            packed = [older + newer for older, newer in zip(before[3], packed, strict=True)]
            first, size = before[0], before[1] + size
        self._newest[table.name] = (first, size, exact, packed)
        row = (first, last, size, orjson.dumps(exact).decode() if exact else None, b"".join(packed))
        self._connection.execute(f"INSERT OR REPLACE INTO {table.name} VALUES (?, ?, ?, ?, ?)", row)

    def _newest_of(self, table: Packed) -> Newest | None:
        """Return the newest row of *table*: the row that was written last, or the stored row if another process may have written it."""
        if table.name not in self._newest:
            newest = f"SELECT first, size, exact, lines FROM {table.name} ORDER BY first DESC LIMIT 1"
            row = self._connection.execute(newest).fetchone()
            if row is None:
                return None
            first, size, exact, lines = row
            packed = list(map(bytes, table.split(lines, size)))
            self._newest[table.name] = (first, size, orjson.loads(exact or "[]"), packed)
        return self._newest[table.name]

    def lines(self, table: Packed, events: Iterable[tuple[int, Event]]) -> tuple[list[Line], int]:
        """Return the lines of *events*, and the number of odd events.

        An odd event has no line, unless it is a trace event without a model, or its line does not name a subject.
        """
        line, codes = table.line, self._codes[table.common]
        lines: list[Line] = []
        times: Times = {}
        odd = 0
        for seq, event in events:
            event_line = line(event, times)
            if event_line is None:
                odd += event.type not in TRACES or table is PAID
                continue
            facts, before, after, name, exact, is_odd = event_line
            code = codes.get(facts)
            if code is None:
                code = codes[facts] = self._code(table.common, orjson.dumps(tuple(facts)).decode())
            odd += is_odd
            lines.append(((seq, *before, code, *after), name, None if exact is None else [*exact]))
        return lines, odd

    def _code(self, common: str, facts: str) -> int:
        execute = self._connection.execute
        row = execute(f"SELECT code FROM {common} WHERE facts = ?", (facts,)).fetchone()
        if row is None:
            statement = f"INSERT INTO {common} SELECT coalesce(max(code), -1) + 1, ? FROM {common} RETURNING code"
            row = execute(statement, (facts,)).fetchone()
        return int(row[0])


def has_columns(connection: sqlite3.Connection) -> bool:
    """Return True if the ledger has the tables of the columns."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'columned'").fetchone() is not None


def covered(connection: sqlite3.Connection, *, has_table: bool = False) -> tuple[int, int]:
    """Return the last row of the chain that the columns cover, and the number of odd rows; zeros without columns.

    *has_table* is True if the tables are known to exist. They are never removed.
    """
    if not has_table and not has_columns(connection):
        return 0, 0
    upto, odd = connection.execute("SELECT upto, odd FROM columned").fetchone() or (0, 0)
    if type(upto) is not int or type(odd) is not int:
        raise sqlite3.DatabaseError(f"columned has {upto!r}, {odd!r}, where numbers belong")
    return upto, odd
