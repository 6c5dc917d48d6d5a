"""Columns of rows for readers of very many verdicts. Segments store columns for each group of rows; the columns of other rows are computed from their lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import orjson

from dicast.reading.blocks.block_columns import BlockColumns
from dicast.reading.blocks.making import columns_of_events
from dicast.reading.blocks.stored_columns import StoredColumns, refuse_changed_columns
from dicast.toolkit.ledger_lines.lines import EVENT

from .lines import Row

_PARSED = 128
"""Lines that are parsed together."""


def columns_of_rows(rows: Iterable[Row]) -> BlockColumns:
    """Return the columns of *rows*, which follow one another.

    :raises LookupError, TypeError, ValueError: if a row does not have the form of an event.
    """
    return columns_of_events(map(_line, rows))


def made_columns(rows: Iterable[Row]) -> StoredColumns:
    """Return the columns of *rows* as a reader gets them.

    :raises LookupError, TypeError, ValueError: if a row does not have the form of an event.
    """
    return StoredColumns.of_block(columns_of_rows(rows))


def columns_of_texts(texts: Sequence[Any]) -> BlockColumns:
    """Return the columns of the texts of lines of events, which follow one another.

    :raises LookupError, TypeError, ValueError: if a line is not that of an event.
    """
    parts = (texts[start : start + _PARSED] for start in range(0, len(texts), _PARSED))
    return columns_of_events(chain.from_iterable(map(_parsed, parts)))


def refuse_changed(column: Any, columns: BlockColumns) -> None:
    """Refuse a *column* that does not have *columns* in its first row, and nothing else.

    :raises TypeError, ValueError: if it has other values.
    """
    if column.null_count != len(column) - 1:
        raise ValueError("the columns are not in the first row of the group")
    refuse_changed_columns(column[0].as_py(), columns)


def _line(row: Row) -> list[Any]:
    """Return the parsed line of *row*."""
    line = [EVENT, *row.columns, orjson.loads(row.payload)]
    return line if row.content_at is None else [*line, row.content_digest, orjson.loads(row.content_at)]


def _parsed(texts: Sequence[Any]) -> list[Any]:
    """Return the parsed lines of *texts*.

    :raises ValueError: if a text is not one JSON value.
    """
    lines: list[Any] = orjson.loads(b"[%b]" % b",".join(texts))
    if len(lines) != len(texts):
        raise ValueError("a text is not one line")
    return lines
