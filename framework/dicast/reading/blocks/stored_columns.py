"""The columns of one block as a reader gets them: it decompresses the parts that it asks for."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs
import orjson

from ...toolkit.ledger_lines.blocks import list_in
from ..names import HASH_BYTES
from .block_columns import LENGTHS, MARK, TABLES, BlockColumns, Table, little

_BYTES = 256
"""Number of values of a byte."""


@attrs.define
class NumberColumn:
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
            is_same = target.typecode == self.code and not base
            _add_little(target, self.raw if is_same else _sums(self.raw, _WIDTHS[self.code], target.itemsize, base))
        elif len(spec) == 1:
            target.frombytes(array(target.typecode, [spec[0] + base if base else spec[0]]).tobytes() * self.size)
        elif len(spec) == 2:
            start, step = spec[0] + base, spec[1]
            target.extend(array(target.typecode, range(start, start + step * self.size, step)))
        if len(target) != before + self.size:
            raise ValueError(f"a column does not have {self.size} numbers")

    def add_items_to(self, target: array[int], items: Sequence[int]) -> None:
        """Add the item of *items* with each number to *target*. Small items are exchanged together, which takes a fifth of the time.

        :raises LookupError: if there is no such item.
        :raises ValueError: if there are not *size* numbers.
        """
        width, before, low = target.itemsize, len(target), bytes(self.raw[:: _WIDTHS["i"]])
        is_small = self.spec is None and self.code == target.typecode == "i" and sys.byteorder == "little"
        if is_small and max(items, default=_BYTES) < _BYTES and len(items) <= _BYTES:
            new = bytearray(len(self.raw))
            new[::width] = low
            if new == self.raw and not low.translate(None, bytes(range(len(items)))):
                new[::width] = low.translate(bytes(items).ljust(_BYTES, b"\0"))
                target.frombytes(new)
        if len(target) == before:
            target.extend(map(items.__getitem__, self.numbers()))
        if len(target) != before + self.size:
            raise ValueError(f"a column does not have {self.size} numbers")

    def numbers(self) -> array[Any]:
        """Return the numbers."""
        target = array(self.code)
        self.add_to(target)
        return target


def _add_little(target: array[Any], raw: bytes | memoryview) -> None:
    """Add numbers in little-endian order to *target*."""
    if sys.byteorder == "little":
        target.frombytes(raw)
    else:
        values = array(target.typecode)
        values.frombytes(raw)
        target.extend(little(values))


def _sums(raw: memoryview, width: int, wide: int, base: int) -> bytes:
    """Return numbers of *width* bytes plus *base*, with *wide* bytes each, all little-endian. They are added together as one large number, which
    takes a tenth of the time.

    :raises ValueError: if a number is negative, or a sum does not fit.
    """
    numbers: bytes | bytearray = bytes(raw)
    if base >> 8 * wide - 1 or not numbers[width - 1 :: width].isascii():  # the highest bit of a number is its sign
        raise ValueError(f"a number of a column is negative, or the number {base} before the block does not fit")
    if wide > width:
        numbers = bytearray(len(raw) // width * wide)
        memoryview(numbers).cast("i")[::2] = raw.cast("i")
    bases = base.to_bytes(wide, "little") * (len(numbers) // wide)
    sums = (int.from_bytes(numbers, "little") + int.from_bytes(bases, "little")).to_bytes(len(numbers), "little")
    if not sums[wide - 1 :: wide].isascii():
        raise ValueError("a number of a column does not fit")
    return sums


@attrs.define
class StoredTable:
    """A table of one block: its facts by their number, the amounts as text by row, and its columns."""

    size: int
    odd: int
    facts: Sequence[Sequence[Any]]
    exact: Sequence[Sequence[Any]]
    columns: Sequence[NumberColumn]

    @classmethod
    def of(cls, table: Table, description: Sequence[Any], numbers: memoryview) -> StoredTable:
        """Return the table with this *description*. Its *numbers* begin with the numbers of its first column.

        :raises ValueError: if there is another number of columns.
        """
        size, odd, facts, exact, specs = description
        columns, start = [], 0
        for code, spec in zip(table.all_codes, specs, strict=True):
            end = start + (size * _WIDTHS[code] if spec is None else 0)
            columns.append(NumberColumn(code, spec, numbers[start:end], size))
            start = end
        return cls(size, odd, facts, exact, columns)


class Stored(Protocol):
    """Stored columns of one block. A method decompresses the part that it returns, and raises an error of :data:`UNREADABLE` if the part has another form."""

    hashes: bytes

    @property
    def has_calls(self) -> bool:
        """True if all calls of the block are paid calls."""
        ...

    def table(self, table: Table) -> StoredTable | None:
        """Return a table; None without an event of its types."""
        ...

    def judgments(self) -> tuple[Mapping[str, Sequence[int]], Sequence[str]]:
        """Return the events that start judgments which do not end in the block, by the id of the verdict, and the ids of the judgments that end."""
        ...

    def names(self) -> bytes:
        """Return the JSON list of names."""
        ...


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
"""Errors of columns that do not have the form of columns, and of lines that do not have the form of lines."""


class StoredColumns:
    """Columns in their *parts*: the text of each has the length in *sizes*, and is compressed if this is not the length of the part."""

    has_calls = True

    def __init__(self, sizes: Sequence[int], parts: Sequence[bytes], hashes: bytes) -> None:
        self.hashes = hashes
        self._sizes, self._parts = sizes, parts

    @classmethod
    def of(cls, stored: Any) -> StoredColumns:
        """Return the columns of a block that begin with :data:`MARK`.

        :raises ValueError: if they have another form, or end early.
        """
        if not isinstance(stored, bytes) or not stored.startswith(MARK):
            raise ValueError(f"its columns are {stored!r:.20}")
        end = len(MARK) + LENGTHS.size
        if len(stored) < end:
            raise ValueError(f"its columns have {len(stored)} bytes")
        lengths, parts = LENGTHS.unpack_from(stored, len(MARK)), []
        for length in lengths[1::2]:
            parts.append(stored[end : end + length])
            end += length
        if len(stored) < end:
            raise ValueError(f"its columns have {len(stored)} bytes, not {end}")
        return cls(lengths[::2], parts, stored[end:])

    @classmethod
    def of_block(cls, columns: BlockColumns) -> StoredColumns:
        """Return the columns of a block that does not store them."""
        *parts, hashes = columns.parts()
        return cls([*map(len, parts)], parts, hashes)

    def texts(self) -> Sequence[bytes]:
        """Return all parts without compression, and the hashes.

        :raises ValueError: if a part cannot be decompressed.
        """
        return [*map(list_in, self._sizes, self._parts), self.hashes]

    def table(self, table: Table) -> StoredTable | None:
        """Return a table; None without an event of its types."""
        text = self._text(TABLES.index(table))
        if not text:
            return None
        description, numbers = text.split(b"\n", 1)
        return StoredTable.of(table, orjson.loads(description), memoryview(numbers))

    def judgments(self) -> tuple[Mapping[str, Sequence[int]], Sequence[str]]:
        """Return the events that start judgments which do not end in the block, by the id of the verdict, and the ids of the judgments that end."""
        text = self._text(len(TABLES))
        started, ends = orjson.loads(text) if text else ({}, ())
        return started, ends

    def names(self) -> bytes:
        """Return the JSON list of names."""
        return self._text(len(TABLES) + 1)

    def _text(self, place: int) -> bytes:
        return list_in(self._sizes[place], self._parts[place])


def refuse_changed_columns(stored: Any, expected: BlockColumns) -> None:
    """Refuse the *stored* columns of a block whose lines have the columns *expected*.

    :raises TypeError, ValueError: if they differ, or have another form.
    """
    if StoredColumns.of(stored).texts() != expected.parts():
        raise ValueError("its columns do not follow from its lines")


def count_of(stored: Stored) -> int:
    """Return the number of names."""
    return len(stored.hashes) // HASH_BYTES


_WIDTHS = {code: array(code).itemsize for code in "iqd"}
