"""The columns of one block as a reader gets them: it decompresses the parts that it asks for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate
from typing import Any, Protocol

import attrs
import orjson

from ...toolkit.ledger_lines.blocks import beginning_of, list_in
from ..names import HASH_BYTES
from .block_columns import LENGTHS, MARK, TABLES, BlockColumns, Table, little

Numbers = bytes | memoryview
"""Numbers in little-endian order."""


def _repeated(code: str, spec: Sequence[Any], size: int) -> bytes:
    """Return the numbers of a column that is constant or evenly spaced."""
    if len(spec) == 1:
        value = spec[0]
        return bytes(size * _WIDTHS[code]) if value == 0 and code != "d" else little(array(code, spec)).tobytes() * size
    if len(spec) == 2:
        start, step = spec
        return little(array(code, range(start, start + step * size, step))).tobytes()
    return b""


@attrs.define
class StoredTable:
    """A table of one block: its facts by their number, the amounts as text by row, and its columns, *size* numbers each."""

    size: int
    odd: int
    facts: Sequence[Sequence[Any]]
    exact: Sequence[Sequence[Any]]
    columns: Sequence[Numbers]

    @classmethod
    def of(cls, table: Table, description: Sequence[Any], numbers: memoryview) -> StoredTable:
        """Return the table with this *description*. Its *numbers* begin with the numbers of its first column.

        :raises ValueError: if there is another number of columns or of numbers.
        """
        size, odd, facts, exact, specs = description
        columns, start = list[Numbers](), 0
        for code, spec in zip(table.all_codes, specs, strict=True):
            length = size * _WIDTHS[code]
            if spec is None:
                column: Numbers = numbers[start : start + length]
                start += length
            else:
                column = _repeated(code, spec, size)
            if len(column) != length:
                raise ValueError(f"a column does not have {size} numbers")
            columns.append(column)
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

    def facts(self, table: Table) -> Sequence[Sequence[Any]]:
        """Return the facts of a table by their number."""
        ...

    def started(self) -> Mapping[str, Sequence[int]]:
        """Return the events that start judgments which do not end in the block, by the id of the verdict."""
        ...

    def ended(self, eval_ids: Collection[str]) -> Iterable[str]:
        """Return the *eval_ids* of judgments that end in the block; it may return other ids of judgments that end there too."""
        ...

    @property
    def names(self) -> Callable[[], bytes]:
        """Function that returns the JSON list of names, and keeps no other part in memory."""
        ...


UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
"""Errors of columns that do not have the form of columns, and of lines that do not have the form of lines."""


class StoredColumns:
    """Columns in their *parts*, one after the other, up to *ends*: the text of each has the length in *sizes*, and is compressed if this is not the length of the part."""

    has_calls = True

    def __init__(self, sizes: Sequence[int], ends: Sequence[int], parts: bytes) -> None:
        self._sizes, self._ends, self._parts = sizes, ends, parts
        self.hashes = parts[ends[-1] :]

    @classmethod
    def of(cls, stored: Any) -> StoredColumns:
        """Return the columns of a block that begin with :data:`MARK`.

        :raises ValueError: if they have another form, or end early.
        """
        if not isinstance(stored, bytes) or not stored.startswith(MARK):
            raise ValueError(f"its columns are {stored!r:.20}")
        start = len(MARK) + LENGTHS.size
        if len(stored) < start:
            raise ValueError(f"its columns have {len(stored)} bytes")
        lengths = LENGTHS.unpack_from(stored, len(MARK))
        ends = [*accumulate(lengths[1::2], initial=start)]
        if len(stored) < ends[-1]:
            raise ValueError(f"its columns have {len(stored)} bytes, not {ends[-1]}")
        return cls(lengths[::2], ends, stored)

    @classmethod
    def of_block(cls, columns: BlockColumns) -> StoredColumns:
        """Return the columns of a block that does not store them."""
        *parts, hashes = columns.parts()
        sizes = [*map(len, parts)]
        return cls(sizes, [*accumulate(sizes, initial=0)], b"".join([*parts, hashes]))

    def texts(self) -> Sequence[bytes]:
        """Return all parts without compression, and the hashes.

        :raises ValueError: if a part cannot be decompressed.
        """
        return [*map(self._text, range(len(self._sizes))), self.hashes]

    def table(self, table: Table) -> StoredTable | None:
        """Return a table; None without an event of its types."""
        text = self._text(TABLES.index(table))
        if not text:
            return None
        end = text.index(b"\n")
        return StoredTable.of(table, orjson.loads(text[:end]), memoryview(text)[end + 1 :])

    def facts(self, table: Table) -> Sequence[Sequence[Any]]:
        """Return the facts of a table by their number. Mostly they are in the first bytes."""
        place = TABLES.index(table)
        text = beginning_of(self._sizes[place], self._part(place), _DESCRIPTION_BYTES)
        if b"\n" not in text:
            text = self._text(place)
        facts: Sequence[Sequence[Any]] = orjson.loads(text[: text.index(b"\n")])[_FACTS] if text else ()
        return facts

    def started(self) -> Mapping[str, Sequence[int]]:
        """Return the events that start judgments which do not end in the block, by the id of the verdict. Mostly they are in the first bytes."""
        first = self._first_judgments()
        return self._judgments()[0] if first is None else first[0]

    def ended(self, eval_ids: Collection[str]) -> Iterable[str]:
        """Return the *eval_ids* of judgments that end in the block; it may return other ids of judgments that end there too.

        A judgment that goes on from the block before mostly ends in the first bytes. A few other ids are looked for in the text before it is parsed.
        """
        if len(eval_ids) <= _FEW and (first := self._first_judgments()) is not None:
            if all(eval_id in first[1] for eval_id in eval_ids):
                return first[1]
            text = self._text(_JUDGMENTS)
            if not any(orjson.dumps(eval_id) in text for eval_id in eval_ids):
                return ()
        return self._judgments()[1]

    @property
    def names(self) -> Callable[[], bytes]:
        """Function that returns the JSON list of names, and keeps no other part in memory."""
        return partial(list_in, self._sizes[_NAMES], self._part(_NAMES))

    def _judgments(self) -> tuple[Mapping[str, Sequence[int]], Sequence[str]]:
        text = self._text(_JUDGMENTS)
        started, ends = orjson.loads(text) if text else ({}, ())
        return started, ends

    def _first_judgments(self) -> tuple[Mapping[str, Sequence[int]], Sequence[str]] | None:
        """Return the judgments that start, and the first ones that end; None if the first bytes do not have them."""
        size = self._sizes[_JUDGMENTS]
        if not size:
            return {}, ()
        text = beginning_of(size, self._part(_JUDGMENTS), _JUDGMENT_BYTES)
        with suppress(ValueError):  # the first bytes end in a start, or in an id with a quote
            started, ends = orjson.loads(text if len(text) == size else text[: text.rindex(b'","') + 1] + b"]]")
            return started, ends
        return None

    def _part(self, place: int) -> bytes:
        return self._parts[self._ends[place] : self._ends[place + 1]]

    def _text(self, place: int) -> bytes:
        return list_in(self._sizes[place], self._part(place))


_DESCRIPTION_BYTES, _FACTS = 4096, 2
"""Bytes that most descriptions of tables have at most, and the place of the facts in a description."""

_JUDGMENTS, _NAMES = len(TABLES), len(TABLES) + 1
_JUDGMENT_BYTES = 256
"""Bytes that mostly have the judgments that start in a block, and the first that end there."""

_FEW = 4
"""Most ids that are looked for in a text. Parsing the text takes as long as looking for some more."""


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
