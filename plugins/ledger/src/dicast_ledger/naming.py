"""The names that columns are about: ids of subjects, turns and sessions, each with a number, which the lines hold in its place.

A row of ``names`` holds the names of one append, or of several small ones, each once; *start* is the number of its first. The lines about
them are those of the chain's rows from *first* on, up to where the next row of ``names`` begins. So a name of another append has a number
of its own there, and what is looked for about a name lies within bounds.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Sequence

import orjson

NAMES_TABLE = "CREATE TABLE IF NOT EXISTS names (first INTEGER PRIMARY KEY, start INTEGER, size INTEGER, texts TEXT)"

FEW = 128
"""Lines, or names, up to which a row is written anew with the next ones: a run whose every call is an append of its own makes small ones."""

Name = str | None


class Naming:
    """Numbers the names of appends, between :meth:`begin` and :meth:`write`. After a transaction that failed it has to :meth:`forget`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._first = self._start = 0
        self._known: dict[Name, int] = {}
        self._written = 0

    def forget(self) -> None:
        """Forget the names that were given in a transaction that came to nothing."""
        self._known = {}

    def begin(self, first: int) -> None:
        """Name what lines from the row *first* of the chain on are about.

        It goes on with the newest names where they are few: they are read again where another process has written since.
        """
        row = self._connection.execute("SELECT first, start, size FROM names ORDER BY first DESC LIMIT 1").fetchone()
        if row is None or row[2] >= FEW:
            self._first, self._start, self._known = first, 0 if row is None else row[1] + row[2], {}
        elif row != (self._first, self._start, len(self._known)):
            self._first, self._start, _ = row
            (texts,) = self._connection.execute("SELECT texts FROM names WHERE first = ?", (self._first,)).fetchone()
            self._known = {name: place for place, name in enumerate(orjson.loads(texts))}
        self._written = len(self._known)

    def numbers(self, names: Sequence[Name]) -> array[int]:
        """The number of each of *names*."""
        known, start = self._known, self._start
        for name in dict.fromkeys(names):
            if name not in known:
                known[name] = len(known)
        return array("i", [start + known[name] for name in names])

    def write(self) -> None:
        """Write what has been named."""
        if len(self._known) > self._written:
            row = (self._first, self._start, len(self._known), orjson.dumps([*self._known]).decode())
            self._connection.execute("INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?)", row)


def names_of(connection: sqlite3.Connection, known: int = 0) -> Iterator[Name]:
    """The names from the number *known* on.

    :raises sqlite3.DatabaseError: when there are others than their rows say.
    """
    query = "SELECT start, size, texts FROM names WHERE start + size > ? ORDER BY first"
    for start, size, texts in connection.execute(query, (known,)):
        found = orjson.loads(texts)
        if len(found) != size or start > known:
            raise sqlite3.DatabaseError(f"names has {len(found)} names from {start!r} on, not {size!r} from {known}")
        yield from found[known - start :]
        known = start + size


def numbers_about(connection: sqlite3.Connection, name: str) -> Iterator[tuple[int, int, int]]:
    """Each number of *name*, with the first row of the chain whose lines may have it, and the first behind the last of these."""
    query = """SELECT first, start, texts, (SELECT min(first) FROM names AS later WHERE later.first > names.first)
        FROM names WHERE instr(texts, ?) ORDER BY first"""
    for first, start, texts, end in connection.execute(query, (orjson.dumps(name).decode(),)):
        found = orjson.loads(texts)
        if name in found:
            yield start + found.index(name), first, 2**62 if end is None else end
