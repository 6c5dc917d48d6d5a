"""Columns beside the chain: of each verdict, failure, reading and model the few values that readers of many of them need.

A row of ``judged`` or ``told`` holds the lines of one append, or of several small ones: whole numbers and floats of 8 bytes each, and the
ids as JSON. What many lines have in common is stored once, in ``makers`` and ``tellers``. ``covered`` says up to which row of the
chain the columns go; a version of before leaves that where it was, and the rows behind it are read from the chain. It also counts the
``odd`` ones: rows that are about a subject and have no line, because their payload is not as their type asks.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from struct import Struct
from typing import Any, NamedTuple

import orjson

from dicast import Entry, Event, LedgerError
from dicast.reading import line_of, teller_of

from .spent import SPENT_TYPES, spent_of

COLUMN_TABLES = (
    "CREATE TABLE IF NOT EXISTS covered (upto INTEGER, odd INTEGER)",
    "CREATE TABLE IF NOT EXISTS makers (code INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE IF NOT EXISTS tellers (code INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE IF NOT EXISTS judged (first INTEGER PRIMARY KEY, last INTEGER, exact INTEGER, texts TEXT, lines BLOB)",
    "CREATE TABLE IF NOT EXISTS payers (code INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE IF NOT EXISTS spent (first INTEGER PRIMARY KEY, last INTEGER, exact INTEGER, texts TEXT, lines BLOB)",
    "CREATE TABLE IF NOT EXISTS begun (eval_id TEXT, seq INTEGER, PRIMARY KEY (eval_id, seq)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS told (first INTEGER PRIMARY KEY, last INTEGER, exact INTEGER, texts TEXT, lines BLOB)",
)

FEW = 128
"""Lines up to which a row is written anew with the next ones: a run whose every call is an append of its own makes small ones."""

AT_ONCE = 20_000
"""Rows of a chain without columns that one append catches up on."""


Line = tuple[int, bytes, object, bool]
"""A row of the chain, what is packed of it, its text, and whether the text holds amounts, too."""

Found = tuple[Any, tuple[Any, ...], tuple[Any, ...], object, bool, bool]
"""What an event has in common with others, the numbers before and behind the code of that, the text, whether that holds amounts, and
whether the line does not say which subject it is about."""

Times = dict[str, int]


class Packed(NamedTuple):
    """A table of lines: what it is about, how a line is packed, and the table of what lines have in common."""

    name: str
    common: str
    types: tuple[str, ...]
    pack: Struct
    line: Callable[[Event, Times], Found | None]


def _verdict(event: Event, times: Times) -> Found | None:
    line = line_of(event, times)
    if line is None:
        return None
    maker, time, flags, score, confidence, usd, msat, id, exact = line
    text = id if exact is None else [id, *exact]
    return maker, (time,), (flags, score, confidence, usd, msat), text, exact is not None, id != event.subject_id


def _told(event: Event, times: Times) -> Found | None:
    found = teller_of(event)
    return None if found is None else (found[0], (), (found[1],), found[2], False, False)


def _spent(event: Event, times: Times) -> Found | None:
    found = spent_of(event)
    return None if found is None else (*found, False)


ABOUT = ("subject.read", "record.completed", "record.failed")
TRACES = ("route.decided", "llm.call_completed")
JUDGED = Packed("judged", "makers", ("eval.completed", "eval.failed"), Struct("=qqqqddqq"), _verdict)
TOLD = Packed("told", "tellers", (*ABOUT, *TRACES), Struct("=qqq"), _told)
PAID = Packed("spent", "payers", SPENT_TYPES, Struct("=qqqqqqqq"), _spent)
PACKED = (JUDGED, TOLD, PAID)
"""All tables of lines. A call of an agent has a line in two of them."""
STARTED, *_ = EVALS = ("eval.started", *JUDGED.types)
COLUMNED = frozenset((STARTED, *(type_ for table in PACKED for type_ in table.types)))
"""The types of events that the columns are about."""


class Columns:
    """Writes the columns of one ledger, inside the transactions of its appends. After one that failed it has to :meth:`forget`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._codes: dict[str, dict[Any, int]] = {table.common: {} for table in PACKED}
        self._there = False

    def forget(self) -> None:
        """Forget the numbers that were given in a transaction that came to nothing."""
        for codes in self._codes.values():
            codes.clear()

    def covered(self) -> int | None:
        """Up to which row of the chain the columns go; None in a ledger that has none."""
        self._there = self._there or has_columns(self._connection)
        return covered(self._connection)[0] if self._there else None

    def add(self, events: Sequence[Event], first: int) -> None:
        """Add *events*, which are the rows from *first* on, if the columns go up to there."""
        if self.covered() == first - 1:
            self.extend(enumerate(events, first), first + len(events) - 1)

    def catch_up(self, newest: int, entry: Callable[[sqlite3.Connection, tuple[Any, ...]], Entry]) -> None:
        """Make columns of some of the rows up to *newest* that have none yet; a row that was changed keeps them from being made."""
        upto = self.covered()
        if upto is None or upto >= newest:
            return
        last = min(newest, upto + AT_ONCE)
        query = f"""SELECT seq, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload, prev, digest
            FROM events WHERE seq > ? AND seq <= ? AND type IN ({", ".join("?" * len(COLUMNED))}) ORDER BY seq"""
        rows = self._connection.execute(query, (upto, last, *sorted(COLUMNED))).fetchall()
        with suppress(LedgerError):  # dicast ledger verify says what is wrong
            self.extend([(row[0], entry(self._connection, row).event) for row in rows], last)

    def extend(self, events: Iterable[tuple[int, Event]], upto: int) -> None:
        """Add *events* with the numbers of their rows; the columns go up to the row *upto* then."""
        chosen = [one for one in events if one[1].type in COLUMNED]
        self.begin([one for one in chosen if one[1].type in EVALS])
        odd = 0
        for table in PACKED:
            if found := [one for one in chosen if one[1].type in table.types]:
                odd += self._write(table, found)
        execute = self._connection.execute
        if not execute("UPDATE covered SET upto = ?, odd = odd + ?", (upto, odd)).rowcount:
            execute("INSERT INTO covered VALUES (?, ?)", (upto, odd))

    def begin(self, events: Iterable[tuple[int, Event]]) -> None:
        """Note which verdicts *events* begin, and forget those that they end."""
        begun: dict[object, list[int]] = {}
        ended = []
        for seq, event in events:
            eval_id = event.payload.get("eval_id")
            if event.type == STARTED:
                begun.setdefault(eval_id, []).append(seq)
            else:
                begun.pop(eval_id, None)
                ended.append((eval_id,))
        if self._connection.execute("SELECT 1 FROM begun LIMIT 1").fetchone() is not None:
            self._connection.executemany("DELETE FROM begun WHERE eval_id = ?", ended)
        rows = [(eval_id, seq) for eval_id, seqs in begun.items() if isinstance(eval_id, str) for seq in seqs]
        self._connection.executemany("INSERT INTO begun VALUES (?, ?)", rows)

    def _write(self, table: Packed, events: Sequence[tuple[int, Event]]) -> int:
        """Write the lines of *events*; return how many of these are odd."""
        made, odd = self.lines(table, events)
        if made:
            self._put(table, made)
        return odd

    def _put(self, table: Packed, made: Sequence[Line]) -> None:
        first, last = made[0][0], made[-1][0]
        lines, exact = b"".join([line[1] for line in made]), sum([line[3] for line in made])
        texts = orjson.dumps([line[2] for line in made])[1:-1].decode()
        if len(made) < FEW:
            newest = f"SELECT first, lines, texts, exact FROM {table.name} ORDER BY first DESC LIMIT 1"
            before = self._connection.execute(newest).fetchone()
            if before is not None and len(before[1]) < FEW * table.pack.size:
                first, lines, texts, exact = before[0], before[1] + lines, f"{before[2]},{texts}", before[3] + exact
        row = (first, last, exact, texts, lines)  # a search among the texts does not read the lines
        self._connection.execute(f"INSERT OR REPLACE INTO {table.name} VALUES (?, ?, ?, ?, ?)", row)

    def lines(self, table: Packed, events: Iterable[tuple[int, Event]]) -> tuple[list[Line], int]:
        """The line of each of *events* that has one, and how many are odd: that have none, but for a trace without a model, or whose
        line does not say which subject they are about.
        """
        pack, line, codes = table.pack.pack, table.line, self._codes[table.common]
        made: list[Line] = []
        times: Times = {}
        odd = 0
        for seq, event in events:
            found = line(event, times)
            if found is None:
                odd += event.type not in TRACES or table is PAID
                continue
            facts, before, after, text, exact, apart = found
            code = codes.get(facts)
            if code is None:
                code = codes[facts] = self._code(table.common, orjson.dumps(tuple(facts)).decode())
            odd += apart
            made.append((seq, pack(seq, *before, code, *after), text, exact))
        return made, odd

    def _code(self, common: str, facts: str) -> int:
        execute = self._connection.execute
        row = execute(f"SELECT code FROM {common} WHERE facts = ?", (facts,)).fetchone()
        if row is None:
            made = f"INSERT INTO {common} SELECT coalesce(max(code), -1) + 1, ? FROM {common} RETURNING code"
            row = execute(made, (facts,)).fetchone()
        return int(row[0])


def has_columns(connection: sqlite3.Connection) -> bool:
    """Whether a ledger has the tables of the columns."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'covered'").fetchone() is not None


def covered(connection: sqlite3.Connection) -> tuple[int, int]:
    """Up to which row of the chain the columns go, and how many odd rows there are; nothing where there are no columns."""
    if not has_columns(connection):
        return 0, 0
    upto, odd = connection.execute("SELECT upto, odd FROM covered").fetchone() or (0, 0)
    if type(upto) is not int or type(odd) is not int:
        raise sqlite3.DatabaseError(f"covered says {upto!r}, {odd!r}")
    return upto, odd
