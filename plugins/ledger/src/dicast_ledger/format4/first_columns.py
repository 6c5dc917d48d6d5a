"""The first version of columns, in blocks of older files: one part has all tables and judgments.

The column has three parts, after the lengths of the first two in 4 bytes each (little-endian). The first part, compressed by zlib, is a JSON object on a text
line, which describes the tables and has the judgments, and the numbers of their columns. The second part, compressed too, is the list of names, the third the
hashes. Before :attr:`~FirstColumns.has_calls`, the calls in lines of judged subjects were no paid calls.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import orjson

from dicast.reading.blocks.block_columns import SPENT, TABLES, BlockColumns, Table
from dicast.reading.blocks.spent import AGENT
from dicast.reading.blocks.stored_columns import StoredTable


class FirstColumns:
    """Columns of a block of an older file.

    :raises TypeError: if *stored* is not bytes.
    """

    def __init__(self, stored: bytes) -> None:
        if not isinstance(stored, bytes):
            raise TypeError(f"its columns are {stored!r}")
        end = 8 + int.from_bytes(stored[:4], "little")
        end_of_names = end + int.from_bytes(stored[4:8], "little")
        self._text, self._names, self.hashes = stored[8:end], stored[end:end_of_names], stored[end_of_names:]

    @cached_property
    def _document(self) -> tuple[Mapping[str, Any], memoryview]:
        head, numbers = _inflated(self._text).split(b"\n", 1)
        return orjson.loads(head), memoryview(numbers)

    @property
    def has_calls(self) -> bool:
        """True if all calls of the block are paid calls; False before they were, or without a call."""
        return "calls" in self._document[0]

    def texts(self) -> Sequence[bytes]:
        """Return the three parts without compression.

        :raises ValueError: if a part cannot be decompressed.
        """
        return [_inflated(self._text), self.names(), self.hashes]

    def table(self, table: Table) -> StoredTable | None:
        """Return a table; None without an event of its types."""
        document, numbers = self._document
        start = 0
        for name, description in document["tables"].items():
            if name == table.name:
                return StoredTable.of(table, description, numbers[start:])
            specs = zip(_CODES[name], description[-1], strict=True)
            start += sum(description[0] * array(code).itemsize for code, spec in specs if spec is None)
        return None

    def facts(self, table: Table) -> Sequence[Sequence[Any]]:
        """Return the facts of a table by their number."""
        stored = self.table(table)
        return () if stored is None else stored.facts

    def started(self) -> Mapping[str, Sequence[int]]:
        """Return the events that start judgments which do not end in the block, by the id of the verdict."""
        started: Mapping[str, Sequence[int]] = self._document[0]["open"]
        return started

    def ended(self, eval_ids: Collection[str]) -> Iterable[str]:
        """Return the ids of the judgments that end in the block."""
        ended: Sequence[str] = self._document[0]["ended"]
        return ended

    @property
    def names(self) -> Callable[[], bytes]:
        """Function that returns the JSON list of names."""
        return partial(_inflated, self._names)


_CODES = {table.name: table.all_codes for table in TABLES}


def first_texts(columns: BlockColumns) -> Sequence[bytes]:
    """Return the three parts of *columns* in their first version, without compression."""
    tables, numbers = {}, []
    for name, description, raw in columns.tables_of():
        tables[name] = description
        numbers.append(raw)
    calls = any(payer[1] == AGENT for payer in columns.tables[SPENT.name].facts)
    marks = {"calls": True} if columns.has_calls and calls else {}
    head = orjson.dumps({"tables": tables, "open": columns.open, "ended": columns.ends, **marks})
    return [b"%b\n%b" % (head, b"".join(numbers)), orjson.dumps([*columns.names]), columns.hashes()]


def _inflated(part: bytes) -> bytes:
    """Return a part without compression.

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
