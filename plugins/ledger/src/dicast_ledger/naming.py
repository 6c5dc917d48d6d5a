"""The names that columns are about: ids of subjects, turns and sessions, each with a number, which the lines hold in its place.

A row of ``names`` holds the names of one append, or of several small ones, each once; *start* is the number of its first. *marks* are 16
bytes of each, which tell names apart for readers who need not know them. The lines about
them are those of the chain's rows from *first* on, up to where the next row of ``names`` begins. So a name of another append has a number
of its own there, and what is looked for about a name lies within bounds.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice

import orjson

from dicast.reading import HASH_BYTES, Names, name_hash

NAMES_TABLE = (
    "CREATE TABLE IF NOT EXISTS names (first INTEGER PRIMARY KEY, start INTEGER, size INTEGER, marks BLOB, texts TEXT)"
)

FEW = 64
"""Lines, or names, up to which a row is written anew with the next ones: a run whose every call is an append of its own makes small ones."""

Name = str | None


class Naming:
    """Numbers the names of appends, between :meth:`begin` and :meth:`write`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._first = self._start = 0
        self._known: dict[Name, int] = {}
        self._marks = b""

    def begin(self, first: int, *, known: bool) -> None:
        """Name what lines from the row *first* of the chain on are about; *known* says that nobody else has written since.

        It goes on with the newest names where they are few.
        """
        if not known:
            self._read()
        if len(self._known) >= FEW or not self._known:
            self._first, self._start = first, self._start + len(self._known)
            self._known, self._marks = {}, b""

    def _read(self) -> None:
        row = self._connection.execute("SELECT * FROM names ORDER BY first DESC LIMIT 1").fetchone()
        self._first, self._start, _, self._marks, texts = row or (0, 0, 0, b"", "[]")
        self._known = {name: place for place, name in enumerate(orjson.loads(texts))}

    def numbers(self, names: Sequence[Name]) -> array[int]:
        """The number of each of *names*."""
        known, start = self._known, self._start
        for name in dict.fromkeys(names):
            if name not in known:
                known[name] = len(known)
        return array("i", [start + known[name] for name in names])

    def write(self) -> None:
        """Write what has been named."""
        written = len(self._marks) // HASH_BYTES
        if len(self._known) > written:
            self._marks += b"".join(map(name_hash, islice(self._known, written, None)))
            row = (self._first, self._start, len(self._known), self._marks, orjson.dumps([*self._known]).decode())
            self._connection.execute("INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?)", row)


def keep_names(connection: sqlite3.Connection, names: Names) -> None:
    """Let *names* keep those that are behind the ones that it has.

    :raises sqlite3.DatabaseError: when there are others than their rows say.
    """
    known = len(names)
    query = "SELECT start, size, marks, texts FROM names WHERE start + size > ? ORDER BY first"
    for start, size, marks, texts in connection.execute(query, (known,)):
        if len(marks) != size * HASH_BYTES or start > known:
            raise sqlite3.DatabaseError(f"names has {size!r} from {start!r} on, behind {known}")
        there = known - start  # of a row that was written anew, with more
        later = orjson.dumps(orjson.loads(texts)[there:]).decode() if there else texts
        names.add_block(size - there, later, marks[there * HASH_BYTES :])
        known = start + size


def numbers_about(connection: sqlite3.Connection, name: str) -> Iterator[tuple[int, int, int]]:
    """Each number of *name*, with the first row of the chain whose lines may have it, and the first behind the last of these."""
    query = """SELECT first, start, texts, (SELECT min(first) FROM names AS later WHERE later.first > names.first)
        FROM names WHERE instr(texts, ?) ORDER BY first"""
    for first, start, texts, end in connection.execute(query, (orjson.dumps(name).decode(),)):
        found = orjson.loads(texts)
        if name in found:
            yield start + found.index(name), first, 2**62 if end is None else end
