"""Columns of a block: the few values of each verdict, failure, reading, record and paid call that readers of many of them need.

The column ``columns`` of a compressed block has three parts, after the lengths of the first two in 4 bytes each (little-endian). The first part, compressed by zlib,
is a JSON object on a text line, which describes the tables, and the numbers of the columns that are neither constant nor evenly spaced. The second part,
compressed too, is a JSON list of names: ids of subjects, turns and sessions. The third part has 16 bytes of a hash of each name. Columns follow from
the lines, so they are checked by ``verify``, and are not in the chain.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import attrs
import orjson

from dicast import Event
from dicast.reading import HASH_BYTES, activity_of, line_of, name_hash

from ..spent import AGENT, SPENT_TYPES, spent_of

LEVEL = 1
"""Level of zlib: these numbers are half as large with each level."""

STARTED, *ENDS = EVALS = ("eval.started", "eval.completed", "eval.failed")

_FEWEST, _MOST = 3, 2**31
"""Fewest evenly spaced numbers, and the bound of their step."""

Row = tuple[tuple[Any, ...], str | None, tuple[Any, ...], Sequence[Any] | None]
"""The facts that rows share, the name, the numbers, and the amounts as text if they do not fit."""


def _verdict(event: Event, times: dict[str, int]) -> Row | None:
    line = line_of(event, times)
    if line is None:
        return None
    origin, time, flags, score, confidence, usd, msat, id_, exact = line
    return origin, id_, (time, flags, score, confidence, usd, msat), exact


def _activity(event: Event, times: dict[str, int]) -> Row | None:
    activity = activity_of(event)
    return None if activity is None else (activity[0], activity[2], (activity[1],), None)


def _spent(event: Event, times: dict[str, int]) -> Row | None:
    line = spent_of(event, times)
    if line is None:
        return None
    payer, before, after, session, exact = line
    return payer, session, (*before, *after), exact


@attrs.frozen
class Table:
    """A table of columns: the types of its events, and the type codes of its numbers as in :mod:`array`, after the event, the facts and the name."""

    name: str
    types: tuple[str, ...]
    codes: str
    row: Callable[[Event, dict[str, int]], Row | None]

    @property
    def all_codes(self) -> str:
        """The type codes of all columns: the number of the event in its block, the facts, the name, and the numbers."""
        return f"iii{self.codes}"


READ, *_ = ABOUT = ("subject.read", "record.completed", "record.failed", "route.decided", "llm.call_completed")

VERDICTS = Table("verdicts", tuple(ENDS), "qiddqq", _verdict)
ACTIVITY = Table("activity", ABOUT, "q", _activity)
SPENT = Table("spent", SPENT_TYPES, "qiqqqq", _spent)
TABLES = (VERDICTS, ACTIVITY, SPENT)
_TABLES_OF = {type_: [table for table in TABLES if type_ in table.types] for type_ in (*ENDS, *ABOUT, *SPENT_TYPES)}


class Rows:
    """Rows of a table of one block."""

    def __init__(self, table: Table) -> None:
        self._columns: list[array[Any]] = [array(code) for code in table.all_codes]
        self._new: list[tuple[Any, ...]] = []
        """Rows that are not in the columns yet."""
        self.facts: dict[tuple[Any, ...], int] = {}
        self.exact: list[list[Any]] = []
        self.odd = 0
        """Number of events without a row, because their payload does not have the form of their type."""

    def __len__(self) -> int:
        return len(self._columns[0]) + len(self._new)

    @property
    def columns(self) -> Sequence[array[Any]]:
        """The columns with all rows."""
        if self._new:
            for column, values in zip(self._columns, zip(*self._new, strict=True), strict=True):
                column.extend(values)
            self._new.clear()
        return self._columns

    def add(self, row: tuple[Any, ...]) -> None:
        """Add a row."""
        self._new.append(row)

    def code(self, facts: tuple[Any, ...]) -> int:
        """Return the number of *facts*."""
        return self.facts.setdefault(facts, len(self.facts))

    def extend(self, places: Sequence[int], facts: tuple[Any, ...], *columns: Iterable[Any]) -> None:
        """Add rows with the same *facts*. *columns* are the names and the numbers."""
        codes = [self.code(facts)] * len(places)
        for column, values in zip(self.columns, (places, codes, *columns), strict=True):
            column.extend(values)


class BlockColumns:
    """The columns of one block, which grow with its events.

    :param has_calls: whether the calls in lines of judged subjects are paid calls too. In the first version of the columns they were not.
    """

    def __init__(self, *, has_calls: bool = True) -> None:
        self.has_calls = has_calls
        self.names: dict[str | None, int] = {}
        self.tables = {table.name: Rows(table) for table in TABLES}
        self.open: dict[str, list[int]] = {}
        """The events that start judgments which do not end in the block, by the id of the verdict."""
        self.ends: list[str] = []
        self.times: dict[str, int] = {}
        """Times in milliseconds since 1970."""

    def name(self, name: str | None) -> int:
        """Return the number of a name."""
        return self.names.setdefault(name, len(self.names))

    def numbers_of(self, names: Sequence[str]) -> array[int]:
        """Return the numbers of many names."""
        start = len(self.names)
        numbers = range(start, start + len(names))
        new = dict(zip(names, numbers, strict=True))
        if len(new) < len(names) or not self.names.keys().isdisjoint(new):
            return array("i", map(self.name, names))
        self.names.update(new)
        return array("i", numbers)

    def mention(self, *names: str | None) -> None:
        """Add names that readers search for: ids of subjects and sessions."""
        for name in names:
            if name is not None:
                self.name(name)

    def add(self, place: int, event: Event) -> None:
        """Add the event with the number *place* in its block, from 0."""
        self.mention(event.subject_id, event.session_id)
        type_ = event.type
        if type_ in EVALS:
            self._judgment(place, event)
        for table in _TABLES_OF.get(type_, ()):
            self.add_row(table, place, event)

    def add_call(self, place: int, event: Event) -> None:
        """Add the paid call of a trace in the line of a judged subject."""
        if self.has_calls:
            self.add_row(SPENT, place, event)

    def add_row(self, table: Table, place: int, event: Event) -> None:
        """Add the row of an event to *table*. Its subject and its session are mentioned already."""
        rows = self.tables[table.name]
        row = table.row(event, self.times)
        if row is None:
            rows.odd += 1
            return
        facts, name, values, exact = row
        if exact is not None:
            rows.exact.append([len(rows), *exact])
        rows.add((place, rows.code(facts), self.name(name), *values))

    def _judgment(self, place: int, event: Event) -> None:
        eval_id = event.payload.get("eval_id")
        if not isinstance(eval_id, str):
            return
        if event.type == STARTED:
            self.open.setdefault(eval_id, []).append(place)
        else:
            self.end([eval_id])

    def end(self, eval_ids: Iterable[str]) -> None:
        """Add the ends of judgments."""
        for eval_id in eval_ids:
            self.open.pop(eval_id, None)
            self.ends.append(eval_id)

    def parts(self) -> tuple[bytes, bytes, bytes]:
        """Return the three parts of the columns, without compression."""
        tables, numbers = {}, list[bytes]()
        for table in TABLES:
            rows = self.tables[table.name]
            if len(rows) or rows.odd:
                encoded = [_column(column) for column in rows.columns]
                numbers += [raw for _, raw in encoded]
                facts = list(map(tuple, rows.facts))
                tables[table.name] = [len(rows), rows.odd, facts, rows.exact, [spec for spec, _ in encoded]]
        calls = any(payer[1] == AGENT for payer in self.tables[SPENT.name].facts)
        marks = {"calls": True} if self.has_calls and calls else {}
        head = orjson.dumps({"tables": tables, "open": self.open, "ended": self.ends, **marks})
        hashes = b"".join(map(name_hash, self.names))
        return b"%b\n%b" % (head, b"".join(numbers)), orjson.dumps([*self.names]), hashes

    def packed(self) -> bytes:
        """Return the columns as they are stored."""
        *parts, hashes = self.parts()
        bodies = [zlib.compress(part, LEVEL) for part in parts]
        return b"".join([*(len(body).to_bytes(4, "little") for body in bodies), *bodies, hashes])


def _column(column: array[Any]) -> tuple[list[Any] | None, bytes]:
    """Return the constant value, or the first value and the step; else None and the numbers."""
    count = len(column)
    raw = _little(column).tobytes()
    if not count:
        return [], b""
    first, last, is_float = column[0], column[-1], column.typecode == "d"
    if raw == raw[: column.itemsize] * count and not (is_float and isnan(first)):  # JSON has no NaN
        return [first], b""
    step = 0 if is_float or count < _FEWEST else column[1] - first
    is_even = 0 < abs(step) < _MOST and last == first + step * (count - 1)
    if is_even and column == array(column.typecode, range(first, first + step * count, step)):
        return [first, step], b""
    return None, raw


def _little(column: array[Any]) -> array[Any]:
    """Return the column with its bytes in little-endian order."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column


@attrs.frozen
class Column:
    """A column of *size* numbers: *raw*, or the *spec* of a constant, or of evenly spaced numbers."""

    code: str
    spec: Sequence[Any] | None
    raw: memoryview
    size: int

    def add_to(self, target: array[Any], base: int = 0) -> None:
        """Add the numbers plus *base* to *target*.

        :raises ValueError: if there are not *size* numbers.
        """
        spec, before = self.spec, len(target)
        if spec is None:
            values = array(self.code)
            values.frombytes(self.raw)
            values = _little(values)
            if target.typecode != self.code:
                values = array(target.typecode, values)
            target.extend(_sums(values, base) if base else values)
        elif len(spec) == 1:
            target.frombytes(array(target.typecode, [spec[0] + base if base else spec[0]]).tobytes() * self.size)
        elif len(spec) == 2:
            start, step = spec[0] + base, spec[1]
            target.extend(array(target.typecode, range(start, start + step * self.size, step)))
        if len(target) != before + self.size:
            raise ValueError(f"a column does not have {self.size} numbers")

    def numbers(self) -> array[Any]:
        """Return the numbers."""
        target = array(self.code)
        self.add_to(target)
        return target


def _sums(values: array[int], base: int) -> array[int]:
    """Return *values* plus *base*, added together as one large number, which takes a fifth of the time.

    :raises ValueError: if a number is negative, or a sum does not fit.
    """
    width, raw = values.itemsize, _little(values).tobytes()
    each = int.from_bytes((1).to_bytes(width, "little") * len(values), "little")
    numbers, sign = int.from_bytes(raw, "little"), 8 * width - 1
    sums = numbers + base * each
    if (numbers | sums) & (each << sign) or base >> sign:
        raise ValueError("a number of a column does not fit")
    result = array(values.typecode)
    result.frombytes(sums.to_bytes(len(raw), "little"))
    return _little(result)


@attrs.frozen
class StoredTable:
    """A table of one block: its facts by their number, the amounts as text by row, and its columns."""

    size: int
    odd: int
    facts: Sequence[Sequence[Any]]
    exact: Sequence[Sequence[Any]]
    columns: Sequence[Column]


@attrs.frozen
class StoredColumns:
    """The columns of one block. *names* returns a JSON list of *count* names."""

    tables: Mapping[str, StoredTable]
    open: Mapping[str, Sequence[int]]
    ends: Sequence[str]
    names: Callable[[], bytes]
    hashes: bytes
    has_calls: bool
    """True if all calls of the block are paid calls; False in the first version of the columns, or without a call."""

    @property
    def count(self) -> int:
        """The number of names."""
        return len(self.hashes) // HASH_BYTES


def parts_in(stored: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the three parts of stored columns, the first two with compression.

    :raises TypeError: if *stored* is not bytes.
    """
    if not isinstance(stored, bytes):
        raise TypeError(f"its columns are {stored!r}")
    end = 8 + int.from_bytes(stored[:4], "little")
    end_of_names = end + int.from_bytes(stored[4:8], "little")
    return stored[8:end], stored[end:end_of_names], stored[end_of_names:]


def inflated(part: bytes) -> bytes:
    """Return a part of columns without compression.

    :raises ValueError: if it cannot be decompressed.
    """
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(part)
    except zlib.error as error:
        raise ValueError(f"its columns cannot be decompressed: {error}") from error
    if not reader.eof or reader.unused_data:
        raise ValueError("its columns have another length than their text")
    return content


def columns_in(text: bytes, names: Callable[[], bytes], hashes: bytes, table: Table | None = None) -> StoredColumns:
    """Return the columns of the first part, a function that returns the second part, and the third part. Only *table* is returned.

    :raises ValueError: if the parts do not have the form of columns.
    """
    head, numbers = text.split(b"\n", 1)
    document = orjson.loads(head)
    tables, start, view = {}, 0, memoryview(numbers)
    for name, (size, odd, facts, exact, specs) in document["tables"].items():
        codes = _CODES[name]
        if table is None or name != table.name:
            start += size * sum(_WIDTHS[code] for code, spec in zip(codes, specs, strict=True) if spec is None)
            continue
        columns = []
        for code, spec in zip(codes, specs, strict=True):
            end = start + (size * _WIDTHS[code] if spec is None else 0)
            columns.append(Column(code, spec, view[start:end], size))
            start = end
        tables[name] = StoredTable(size, odd, facts, exact, columns)
    return StoredColumns(tables, document["open"], document["ended"], names, hashes, "calls" in document)


_CODES = {table.name: table.all_codes for table in TABLES}
_WIDTHS = {code: array(code).itemsize for code in "iqd"}
