"""The names of the columns: ids of subjects, turns and sessions. Each name has a number, and the lines refer to names by number.

A row of ``names`` holds the names of one append, or of several small appends, each once; *start* is the number of its first name. *marks* are 16
bytes of a digest of each name; they distinguish names for readers that do not need the texts. The lines that use
the names belong to the chain's rows from *first* on, up to the first row of the next row of ``names``. A name in another append has another
number there, so a search for a name has bounds.
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
"""Number of lines, or of names, below which the newest row is rewritten together with the next lines: a run may append its events one by one."""

Name = str | None


class Naming:
    """Numbers the names of appends, between :meth:`begin` and :meth:`write`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._first = self._start = 0
        self._numbers: dict[Name, int] = {}
        self._marks = b""

    def begin(self, first: int, *, is_current: bool) -> None:
        """Start to number names for lines from the row *first* of the chain on. *is_current* is True if no other process has written since.

        If the newest row of names is small, it is extended.
        """
        if not is_current:
            self._read()
        if len(self._numbers) >= FEW or not self._numbers:
            self._first, self._start = first, self._start + len(self._numbers)
            self._numbers, self._marks = {}, b""

    def _read(self) -> None:
        row = self._connection.execute("SELECT * FROM names ORDER BY first DESC LIMIT 1").fetchone()
        self._first, self._start, _, self._marks, texts = row or (0, 0, 0, b"", "[]")
        self._numbers = {name: place for place, name in enumerate(orjson.loads(texts))}

    def numbers(self, names: Sequence[Name]) -> array[int]:
        """Return the number of each of *names*."""
        numbers, start = self._numbers, self._start
        for name in dict.fromkeys(names):
            if name not in numbers:
                numbers[name] = len(numbers)
        return array("i", [start + numbers[name] for name in names])

    def write(self) -> None:
        """Write the new names."""
        written = len(self._marks) // HASH_BYTES
        if len(self._numbers) > written:
            self._marks += b"".join(map(name_hash, islice(self._numbers, written, None)))
            row = (self._first, self._start, len(self._numbers), self._marks, orjson.dumps([*self._numbers]).decode())
            self._connection.execute("INSERT OR REPLACE INTO names VALUES (?, ?, ?, ?, ?)", row)


def extend_names(connection: sqlite3.Connection, names: Names) -> None:
    """Add to *names* the stored names that come after its last one.

    :raises sqlite3.DatabaseError: if a block does not agree with its row.
    """
    count = len(names)
    query = "SELECT start, size, marks, texts FROM names WHERE start + size > ? ORDER BY first"
    for start, size, marks, texts in connection.execute(query, (count,)):
        if len(marks) != size * HASH_BYTES or start > count:
            raise sqlite3.DatabaseError(
                f"names has a row of {size!r} from number {start!r}, but {count} names before it"
            )
        offset = count - start  # names of this row that are known: the row was rewritten with more names
        later = orjson.dumps(orjson.loads(texts)[offset:]).decode() if offset else texts
        names.add_block(size - offset, later, marks[offset * HASH_BYTES :])
        count = start + size


def numbers_about(connection: sqlite3.Connection, name: str) -> Iterator[tuple[int, int, int]]:
    """Yield each number of *name*, with the first row of the chain whose lines may have it, and the first row after the last such row."""
    query = """SELECT first, start, texts, (SELECT min(first) FROM names AS later WHERE later.first > names.first)
        FROM names WHERE instr(texts, ?) ORDER BY first"""
    for first, start, texts, end in connection.execute(query, (orjson.dumps(name).decode(),)):
        names = orjson.loads(texts)
        if name in names:
            yield start + names.index(name), first, 2**62 if end is None else end
