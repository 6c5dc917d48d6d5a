"""The columns of the blocks of a file, and the columns of a ledger or of a run from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from dicast import Query
from dicast.reading import ActivityColumns, Names, VerdictColumns
from dicast.reading.blocks.block_columns import EVALS, MARK, SPENT, VERDICTS
from dicast.reading.blocks.making import Layouts
from dicast.reading.blocks.merging import (
    columns_of_lines,
    merge_activity,
    merge_spent,
    merge_verdicts,
    newest_pricing_version,
    open_starts,
    reading_block,
    unreadable,
)
from dicast.reading.blocks.spent import AGENT, Spent
from dicast.reading.blocks.stored_columns import UNREADABLE, Stored, StoredColumns
from dicast.toolkit.ledger_lines.blocks import list_in

from .first_columns import FirstColumns
from .reading import Makers, selection_of


def block_columns(connection: sqlite3.Connection, query: Query) -> Iterator[tuple[int, Stored]]:
    """Yield the columns of the blocks that may have events of *query*, with the number of the first event of the block.

    A block without columns is small: its columns are made from its lines.

    :raises ValueError: if a block cannot be read.
    """
    selection = "first, columns, CASE WHEN columns IS NULL THEN size END, CASE WHEN columns IS NULL THEN body END"
    statement, layouts = selection_of(connection, query, selection), Layouts(Makers(connection))
    for first, stored, size, body in () if statement is None else connection.execute(*statement):
        try:
            columns: Stored = _columns_of_body(size, body, layouts) if stored is None else stored_columns(stored)
        except UNREADABLE as error:
            raise unreadable(first, error) from error
        yield first, columns


def stored_columns(stored: Any) -> StoredColumns | FirstColumns:
    """Return the columns that a block stores.

    :raises ValueError: if they do not have the lengths of their parts.
    :raises TypeError: if *stored* is not bytes.
    """
    is_new = isinstance(stored, bytes) and stored.startswith(MARK)
    return StoredColumns.of(stored) if is_new else FirstColumns(stored)


def _columns_of_body(size: int, body: bytes, layouts: Layouts) -> StoredColumns:
    return columns_of_lines(orjson.loads(list_in(size, body)), layouts)


def _spent_columns(connection: sqlite3.Connection, query: Query) -> Iterator[tuple[int, Stored]]:
    """Yield the columns of the blocks that may have paid calls. Columns of the first version do not have the calls of all lines, so they are made anew.

    :raises ValueError: if a block cannot be read.
    """
    layouts = Layouts(Makers(connection))
    statement = "SELECT size, body FROM blocks WHERE first = ? AND columns IS NOT NULL AND instr(types, ?)"
    for first, stored in block_columns(connection, query):
        with reading_block(first):
            row = None if stored.has_calls else connection.execute(statement, (first, AGENT)).fetchone()
            columns = stored if row is None else _columns_of_body(row[0], row[1], layouts)
        yield first, columns


def read_verdicts(connection: sqlite3.Connection, run_id: str | None, names: Names) -> VerdictColumns:
    """Return the verdicts and failures of the ledger, or of one run.

    :raises ValueError: if a block cannot be read.
    """
    return merge_verdicts(block_columns(connection, Query(run_id, VERDICTS.types)), run_id, names)


def read_pricing_version(connection: sqlite3.Connection, run_id: str | None) -> str | None:
    """Return the version of the price list of the newest verdict of the ledger, or of one run, that has one.

    :raises ValueError: if a block cannot be read.
    """
    return newest_pricing_version(block_columns(connection, Query(run_id, VERDICTS.types)), run_id)


def read_activity(
    connection: sqlite3.Connection, run_id: str | None, types: Sequence[str], names: Names
) -> ActivityColumns:
    """Return the events of *types*, of the ledger or of one run.

    :raises ValueError: if a block cannot be read.
    """
    return merge_activity(block_columns(connection, Query(run_id, tuple(types))), run_id, types, names)


def read_spent(connection: sqlite3.Connection, run_id: str | None, names: Names) -> Spent | None:
    """Return the spending of the ledger, or of one run, which may include other runs; None if an event has another form than its type.

    :raises ValueError: if a block cannot be read.
    """
    return merge_spent(_spent_columns(connection, Query(run_id, SPENT.types)), names)


def read_open(connection: sqlite3.Connection, run_id: str | None) -> list[int]:
    """Return the numbers of the ``eval.started`` events without a verdict or failure yet, in ascending order. A run may have fewer of them.

    :raises ValueError: if a block cannot be read.
    """
    return open_starts(block_columns(connection, Query(run_id, EVALS)))
