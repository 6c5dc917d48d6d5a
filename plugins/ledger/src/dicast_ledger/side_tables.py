"""Check of the tables next to the chain: they are derived again from its rows, and find_fault."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import orjson

from dicast import Event

from .columns import COLUMN_TABLES, COLUMNED, EVALS, PACKED, Columns, covered
from .contents import CONTENTS_TABLE, key_of
from .lines import Exploded, common, names_wrong
from .spending import SPENDING_TABLES, Spending

_DOES_NOT_FOLLOW = "next to the chain do not follow from it"


_RANK: Mapping[type, int] = {type(None): 0, int: 1, float: 1, str: 2, bytes: 3}

TOGETHER = 5_000
"""Rows that are added to the expected columns at once."""

Row = tuple[Any, ...]


@attrs.frozen
class Wrong:
    """The fault of a table: the row of ``events`` that shows it, or None if the fault has no row."""

    seq: int | None
    reason: str


class SideTables:
    """The expected content of the tables, collected row by row in *scratch*, a temporary database, so that memory stays constant."""

    def __init__(self, scratch: sqlite3.Connection, upto: int) -> None:
        scratch.executescript(CONTENTS_TABLE + SPENDING_TABLES + ";".join(COLUMN_TABLES))
        scratch.execute("CREATE TABLE runs (run_id PRIMARY KEY, first_seq, last_seq) WITHOUT ROWID")
        scratch.execute("CREATE TABLE used (number INTEGER PRIMARY KEY)")
        for table in PACKED:
            scratch.execute(f"CREATE TABLE {table.about}_made (seq INTEGER PRIMARY KEY, line, text)")
        self._scratch, self._spending, self._columns, self._upto = scratch, Spending(scratch), Columns(scratch), upto
        self._odd = 0
        self._waiting: list[tuple[int, Event]] = []

    def add(self, row: Row) -> None:
        """Add a row with a valid digest to the expected tables.

        :raises LedgerError: if the payload does not have the form of its type.
        """
        seq, type_, run_id, payload = row[0], row[2], row[4], row[10]
        self._scratch.execute(
            "INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET last_seq = excluded.last_seq",
            (run_id, seq, seq),
        )
        if seq <= self._upto and type_ in COLUMNED:
            self._add_columns(row)
        if type_ == "subject.read":
            read = orjson.loads(payload)
            if read.get("content") is not None:
                self._scratch.execute("INSERT OR IGNORE INTO contents VALUES (?, ?)", (key_of(read), seq))
        elif type_ is not None and type_.startswith("spend."):
            self._spending.record(seq, str(run_id), type_, orjson.loads(payload))

    def _add_columns(self, row: Row) -> None:
        seq, id, type_, time, run_id, session, turn, kind, subject, sensitivity, payload = row[:11]
        event = Event.of(id, type_, time, run_id, orjson.loads(payload), session, turn, kind, subject, sensitivity)
        self._waiting.append((seq, event))
        if len(self._waiting) == TOGETHER:
            self._write_columns()

    def _write_columns(self) -> None:
        """Write the columns of the collected events together: a statement for each event takes three times as long."""
        noted, self._waiting = self._waiting, []
        self._columns.record_open([(seq, event) for seq, event in noted if event.type in EVALS])
        for table in PACKED:
            events = [(seq, event) for seq, event in noted if event.type in table.types]
            lines, odd = self._columns.lines(table, events)
            self._odd += odd
            pack = table.pack.pack
            rows = [(line[0], pack(*line), orjson.dumps([name, exact]).decode()) for line, name, exact in lines]
            self._scratch.executemany(f"INSERT INTO {table.about}_made VALUES (?, ?, ?)", rows)

    def find_fault(self, connection: sqlite3.Connection, events: int) -> Wrong | None:
        """Return the first fault of the tables of *connection*, or None. *events* is the number of events in the chain."""
        self._spending.write()
        try:
            self._write_columns()
            return (
                self._runs(connection, events)
                or self._contents(connection)
                or self._sums(connection)
                or self._lines(connection, events)
            )
        except (sqlite3.DatabaseError, ValueError, TypeError) as error:
            return Wrong(None, f"a table next to the chain cannot be read: {error}")

    def _runs(self, connection: sqlite3.Connection, events: int) -> Wrong | None:
        """Check that the rows of each run are within its stored bounds. Bounds may be wider, because a batch may hold several runs."""
        query = "SELECT run_id, first_seq, last_seq FROM runs ORDER BY run_id"
        for (run_id, first, last), stored in _paired(self._scratch.execute(query), connection.execute(query)):
            wrong = f"the bounds of runs {_DOES_NOT_FOLLOW}: run {run_id!r} has rows {first} to {last}, but the table runs has"
            if stored is None:
                return Wrong(first, f"{wrong} no row for it")
            if first is None:
                return Wrong(None, f"the bounds of runs {_DOES_NOT_FOLLOW}: no row is of run {run_id!r}")
            if not (
                type(stored[1]) is type(stored[2]) is int and 1 <= stored[1] <= first and last <= stored[2] <= events
            ):
                return Wrong(first, f"{wrong} {stored[1]!r} to {stored[2]!r}")
        return None

    def _contents(self, connection: sqlite3.Connection) -> Wrong | None:
        query = "SELECT key, seq FROM contents ORDER BY key"
        for (key, seq), stored in _paired(self._scratch.execute(query), connection.execute(query)):
            if stored is None or stored[1] != seq:
                stored_seq = None if stored is None else stored[1]
                return Wrong(
                    seq,
                    f"the contents {_DOES_NOT_FOLLOW}: key {key!r} is of row {seq}, but the table contents has {stored_seq!r}",
                )
        return None

    def _lines(self, connection: sqlite3.Connection, events: int) -> Wrong | None:
        """Check that the columns end at an existing row, and that each line agrees with its row of the chain."""
        upto, odd = covered(connection)
        if not 0 <= upto <= events:
            return Wrong(
                None, f"the columns {_DOES_NOT_FOLLOW}: they cover the rows up to {upto}, but the chain has {events}"
            )
        if odd != self._odd:
            return Wrong(
                None,
                f"the columns {_DOES_NOT_FOLLOW}: the chain has {self._odd} odd rows, but the table columned has {odd}",
            )
        query = "SELECT seq, eval_id FROM begun ORDER BY seq, eval_id"
        for (seq, *expected), stored in (
            _paired(self._scratch.execute(query), connection.execute(query)) if upto else ()
        ):
            if stored is None or expected != list(stored[1:]):
                return Wrong(seq, f"the columns {_DOES_NOT_FOLLOW}: the table begun differs at row {seq}")
        for table in PACKED if upto else ():
            if common(connection, table) != common(self._scratch, table):
                return Wrong(None, f"the columns {_DOES_NOT_FOLLOW}: the table {table.common} differs")
            lines = self._scratch.execute(f"SELECT seq, line, text FROM {table.about}_made ORDER BY seq")
            for (seq, *line), stored in _paired(lines, Exploded(connection, table).rows(self._use)):
                if stored is None or line != list(stored[1:]):
                    return Wrong(seq, f"the columns {_DOES_NOT_FOLLOW}: the table {table.name} differs at row {seq}")
        return self._names(connection) if upto else None

    def _use(self, numbers: set[int]) -> None:
        """Record that lines use the names with these *numbers*."""
        self._scratch.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((number,) for number in numbers))

    def _names(self, connection: sqlite3.Connection) -> Wrong | None:
        (used,) = self._scratch.execute("SELECT count(*) FROM used").fetchone()
        wrong = names_wrong(connection, used)
        return None if wrong is None else Wrong(None, f"the columns {_DOES_NOT_FOLLOW}: {wrong}")

    def _sums(self, connection: sqlite3.Connection) -> Wrong | None:
        difference = Spending(connection).differing(self._spending)
        return None if difference is None else Wrong(None, f"the sums {_DOES_NOT_FOLLOW}: {difference}")


def _paired(expected: Iterator[Row], stored: Iterator[Row]) -> Iterator[tuple[Row, Row | None]]:
    """Yield the rows of two tables in pairs, in the order of their first column, the key. A row that only *stored* has is paired with a row of None."""
    mine, theirs = next(expected, None), next(stored, None)
    while mine is not None or theirs is not None:
        if theirs is not None and (mine is None or (theirs[0] != mine[0] and _before(theirs[0], mine[0]))):
            yield (theirs[0], *[None] * (len(theirs) - 1)), theirs
            theirs = next(stored, None)
        elif mine is not None and theirs is not None and theirs[0] == mine[0]:
            yield mine, theirs
            mine, theirs = next(expected, None), next(stored, None)
        elif mine is not None:
            yield mine, None
            mine = next(expected, None)


def _before(key: object, other: object) -> bool:
    """Return True if SQLite orders the key *key* before *other*: numbers, then texts, then binary data."""
    return (_RANK[type(key)], key) < (_RANK[type(other)], other)


def integrity(connection: sqlite3.Connection) -> str | None:
    """Return the damage of the file that SQLite reports, its indexes included, or None."""
    try:
        (report,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        report = str(error)
    return None if report == "ok" else f"SQLite finds the file damaged: {report}"
