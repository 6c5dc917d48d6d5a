"""Readers of the lines: as columns, for one subject, or one by one for a comparison."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Collection, Iterator, Sequence
from operator import itemgetter
from typing import Any

import orjson

from dicast.reading import ActivityColumns, ActivityOrigin, Names, VerdictColumns, VerdictOrigin, name_hash

from .blocks import columns_of
from .columns import JUDGED, PAID, READ, TRACED, Packed
from .naming import numbers_about
from .spent import Payer, Spent

Bounds = tuple[int, int]
ALL = 0, 2**62
"""Bounds within which every row lies."""

NamesOf = Callable[[sqlite3.Connection, "array[int]"], Names]
"""Function that returns names of a ledger, and changes the numbers in the array to indexes of these names."""


def read_verdict_columns(connection: sqlite3.Connection, bounds: Bounds | None, named: NamesOf) -> VerdictColumns:
    """Return the verdicts and failures in the columns. The result covers the rows within *bounds*, and may cover more rows."""
    origins = [VerdictOrigin(*facts) for facts in common(connection, JUDGED)]
    columns, exact = _read_columns(connection, JUDGED, bounds)
    seqs, times, codes, flags, scores, confidences, usd, msat, numbers = columns
    exact_amounts = {line: (texts[0], texts[1]) for line, texts in exact.items()}
    names = named(connection, numbers)
    return VerdictColumns(
        seqs, times, codes, flags, scores, confidences, usd, msat, numbers, names, origins, exact_amounts
    )


def read_activity_columns(
    connection: sqlite3.Connection, bounds: Bounds | None, types: Collection[str], named: NamesOf
) -> ActivityColumns:
    """Return the activity in the columns. The result covers the events of *types* within *bounds*, and may cover more events."""
    tables = [table for table in (READ, TRACED) if not set(types).isdisjoint(table.types)]
    parts = [_activity_of(connection, table, bounds, named) for table in tables]
    return parts[0] if len(parts) == 1 else _merged(parts)


def _activity_of(
    connection: sqlite3.Connection, table: Packed, bounds: Bounds | None, named: NamesOf
) -> ActivityColumns:
    origins = [ActivityOrigin(*facts) for facts in common(connection, table)]
    (seqs, codes, *marks, numbers), _ = _read_columns(connection, table, bounds)
    names = named(connection, numbers)
    return ActivityColumns(seqs, codes, marks[0] if marks else array("b", bytes(len(seqs))), numbers, names, origins)


def _merged(parts: Sequence[ActivityColumns]) -> ActivityColumns:
    """Return the rows of several tables in the order of the ledger."""
    rows: list[tuple[int, ActivityOrigin, int, str | None]] = []
    for part in parts:
        origins = map(part.origins.__getitem__, part.codes)
        rows += zip(part.seqs, origins, part.content_hashes, part.ids, strict=True)
    merged = ActivityColumns()
    codes: dict[ActivityOrigin, int] = {}
    for seq, origin, mark, id in sorted(rows, key=itemgetter(0)):
        merged.put(seq, codes.setdefault(origin, len(codes)), mark, id)
    merged.origins = list(codes)
    return merged


def read_spent(connection: sqlite3.Connection, bounds: Bounds | None, named: NamesOf | None) -> Spent:
    """Return the spending in the columns. The result covers *bounds*, and may cover more rows. Without *named* it has no names of sessions."""
    columns, exact = _read_columns(connection, PAID, bounds)
    _, times, codes, flags, amounts, tokens, calls, marks, numbers = columns
    payers = [Payer(*facts) for facts in common(connection, PAID)]
    exact_amounts = {line: texts[0] for line, texts in exact.items()}
    names = Names() if named is None else named(connection, numbers)
    return Spent(times, codes, flags, amounts, tokens, calls, marks, numbers, names, payers, exact_amounts)


def some_names(connection: sqlite3.Connection, numbers: array[int]) -> Names:
    """Return the names with numbers from the least to the greatest of *numbers*, and change *numbers* to indexes of the result."""
    if not numbers:
        return Names()
    least, most = min(numbers), max(numbers)
    query = "SELECT start, size, marks, texts FROM names WHERE start + size > ? AND start <= ? ORDER BY first"
    names, begin, end = Names(), 0, -1
    for start, size, marks, texts in connection.execute(query, (least, most)):
        begin, end = start if end < 0 else begin, start + size
        names.add_block(size, texts, marks)
    if begin > least or end <= most:
        raise sqlite3.DatabaseError(f"names does not hold the numbers {least} to {most}")
    if begin:
        numbers[:] = array("i", [number - begin for number in numbers])
    return names


def rows_about(connection: sqlite3.Connection, subject_id: str) -> Iterator[int]:
    """Yield the rows of the chain about a subject, as far as the columns cover it: verdicts, failures, readings and records."""
    for number, first, end in numbers_about(connection, subject_id):
        for table in (JUDGED, READ):
            query = f"SELECT lines, size FROM {table.name} WHERE last >= ? AND first < ?"
            for lines, size in connection.execute(query, (first, end)):
                seqs, *_, numbers = _decoded(table, lines, size)
                yield from (seq for seq, other in zip(seqs, numbers, strict=True) if other == number)


class Exploded:
    """Reader of the single lines of *table*, for a comparison with the lines that follow from the chain."""

    def __init__(self, connection: sqlite3.Connection, table: Packed) -> None:
        self._connection, self._table = connection, table
        self._first = self._start = 0
        self._end = -1
        self._names: list[str | None] = []

    def rows(self, used: Callable[[set[int]], object]) -> Iterator[tuple[int, bytes, str]]:
        """Yield each line: its row of the chain, its numbers without the number of its name, and the name with the amounts as JSON.

        *used* is called with the numbers of names in each row of the table.

        :raises sqlite3.DatabaseError: if a row of the table does not agree with its lines.
        """
        table, pack = self._table, self._table.pack.pack
        query = f"SELECT first, last, size, exact, lines FROM {table.name} ORDER BY first"
        for first, last, size, exact, lines in self._connection.execute(query):
            *columns, numbers = _decoded(table, lines, size)
            exact_amounts = {place: texts for place, *texts in orjson.loads(exact)} if exact is not None else {}
            seqs = columns[0]
            if (
                [first, last] != [*seqs[:1], *seqs[-1:]]
                or not exact_amounts.keys() <= set(range(size))
                or exact == "[]"
            ):
                raise sqlite3.DatabaseError(f"row {first!r} of {table.name} does not agree with its lines")
            used(set(numbers))
            for place, values in enumerate(zip(*columns, strict=True)):
                name = self._name(values[0], numbers[place])
                yield values[0], pack(*values), orjson.dumps([name, exact_amounts.get(place)]).decode()

    def _name(self, seq: int, number: int) -> str | None:
        """Return the name with *number*, in the block of names that the lines of the row *seq* use."""
        if not self._first <= seq < self._end:
            query = """SELECT first, start, texts, (SELECT min(first) FROM names AS later WHERE later.first > names.first)
                FROM names WHERE first <= ? ORDER BY first DESC LIMIT 1"""
            self._first, self._start, texts, end = self._connection.execute(query, (seq,)).fetchone() or (0, 0, "[]", 0)
            self._names, self._end = orjson.loads(texts), 2**62 if end is None else end
        place = number - self._start
        if not 0 <= place < len(self._names):
            raise sqlite3.DatabaseError(f"names has no number {number} where {self._table.name} has the row {seq}")
        return self._names[place]


def names_wrong(connection: sqlite3.Connection, used: int) -> str | None:
    """Return the fault of the table of names, or None. *used* is the number of names that lines use."""
    expected = 0
    for start, size, marks, texts in connection.execute("SELECT start, size, marks, texts FROM names ORDER BY first"):
        names = orjson.loads(texts)
        if start != expected or size != len(names) or len(set(names)) != size or not size:
            return f"names has a row of {size!r} from number {start!r}, but {len(set(names))} names in it, and {expected} before it"
        if marks != b"".join(map(name_hash, names)):
            return f"the marks of names from number {start!r} do not match the names"
        expected = start + size
    return None if expected == used else f"names has {expected} names, but lines use {used} of them"


def common(connection: sqlite3.Connection, table: Packed) -> list[list[Any]]:
    """Return the facts that lines of *table* share, by their code."""
    query = f"SELECT code, facts FROM {table.common} ORDER BY code"
    rows = connection.execute(query).fetchall()
    if [code for code, _ in rows] != list(range(len(rows))):
        raise sqlite3.DatabaseError(f"a row of {table.common} is missing")
    return [orjson.loads(facts) for _, facts in rows]


def _decoded(table: Packed, lines: bytes, size: int) -> list[array[Any]]:
    return [array(code, bytes(part)) for code, part in zip(table.codes, table.split(lines, size), strict=True)]


def _read_columns(
    connection: sqlite3.Connection, table: Packed, bounds: Bounds | None
) -> tuple[Sequence[Any], dict[int, list[Any]]]:
    """Return the columns of *table*, and the amounts that do not fit in them as text, by line."""
    where = f"FROM {table.name} WHERE last >= ? AND first <= ?"
    (total_bytes,) = connection.execute(f"SELECT total(length(lines)) {where}", bounds or ALL).fetchone()
    columns = columns_of(table.codes, int(total_bytes) // sum(table.sizes))
    start, exact_amounts = 0, dict[int, list[Any]]()
    buffers = [memoryview(column).cast("B") for column in columns]
    for size, exact, lines in connection.execute(f"SELECT size, exact, lines {where} ORDER BY first", bounds or ALL):
        if exact is not None:
            exact_amounts.update((start + place, texts) for place, *texts in orjson.loads(exact))
        for buffer, column, width in zip(buffers, table.split(lines, size), table.sizes, strict=True):
            buffer[start * width : (start + size) * width] = column
        start += size
    for buffer in buffers:
        buffer.release()  # an array with an exported buffer cannot grow
    return columns, exact_amounts
