"""The columns of a ledger, or of a run, from the columns of its blocks."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from dicast import Query
from dicast.reading import (
    ActivityColumns,
    ActivityOrigin,
    Names,
    VerdictColumns,
    VerdictOrigin,
)
from dicast.toolkit.ledger_lines.blocks import list_in

from ..spent import AGENT, Payer, Spent
from .columns import ACTIVITY, EVALS, MARK, SPENT, VERDICTS, Table
from .first_columns import FirstColumns
from .making import Layouts, columns_of
from .reading import Makers, selection_of
from .stored_columns import UNREADABLE, Stored, StoredColumns, StoredTable, count_of


def block_columns(connection: sqlite3.Connection, query: Query) -> Iterator[tuple[int, Stored]]:
    """Yield the columns of the blocks that may have events of *query*, with the number of the first event of the block.

    A block without columns is small: its columns are made from its lines.

    :raises ValueError: if a block cannot be read.
    """
    selection = "first, columns, CASE WHEN columns IS NULL THEN size END, CASE WHEN columns IS NULL THEN body END"
    statement, layouts = selection_of(connection, query, selection), Layouts(Makers(connection))
    for first, stored, size, body in () if statement is None else connection.execute(*statement):
        try:
            columns: Stored = _columns_of_lines(size, body, layouts) if stored is None else stored_columns(stored)
        except UNREADABLE as error:
            raise _unreadable(first, error) from error
        yield first, columns


def stored_columns(stored: Any) -> StoredColumns | FirstColumns:
    """Return the columns that a block stores.

    :raises ValueError: if they do not have the lengths of their parts.
    :raises TypeError: if *stored* is not bytes.
    """
    is_new = isinstance(stored, bytes) and stored.startswith(MARK)
    return StoredColumns.of(stored) if is_new else FirstColumns(stored)


def _unreadable(first: int, error: Exception) -> ValueError:
    """Return the error for the block from event *first*, whose columns or lines cannot be read."""
    return ValueError(f"the block from event {first}: {error}")


def _columns_of_lines(size: int, body: bytes, layouts: Layouts) -> StoredColumns:
    return StoredColumns.of_block(columns_of(orjson.loads(list_in(size, body)), layouts))


def _spent_columns(connection: sqlite3.Connection, query: Query) -> Iterator[tuple[int, Stored]]:
    """Yield the columns of the blocks that may have paid calls. Columns of the first version do not have the calls of all lines, so they are made anew.

    :raises ValueError: if a block cannot be read.
    """
    layouts = Layouts(Makers(connection))
    statement = "SELECT size, body FROM blocks WHERE first = ? AND columns IS NOT NULL AND instr(types, ?)"
    for first, stored in block_columns(connection, query):
        try:
            row = None if stored.has_calls else connection.execute(statement, (first, AGENT)).fetchone()
            columns = stored if row is None else _columns_of_lines(row[0], row[1], layouts)
        except UNREADABLE as error:
            raise _unreadable(first, error) from error
        yield first, columns


class Merged:
    """A table of many blocks."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.seqs = array("q")
        self.codes, self.numbers = array("i"), array("i")
        self.columns: list[array[Any]] = [array(code) for code in table.codes]
        self.facts: dict[tuple[Any, ...], int] = {}
        self.names = Names()
        self.exact: dict[int, Sequence[Any]] = {}
        self.odd = 0

    def read(self, connection: sqlite3.Connection, query: Query) -> Merged:
        """Add the blocks that may have events of *query*, and return this object.

        :raises ValueError: if a block cannot be read.
        """
        read = _spent_columns if self.table is SPENT else block_columns
        for first, stored in read(connection, query):
            try:
                table = stored.table(self.table)
                if table is not None:
                    self._add(first, table, stored)
            except UNREADABLE as error:
                raise _unreadable(first, error) from error
        return self

    def _add(self, first: int, table: StoredTable, stored: Stored) -> None:
        places, codes, numbers, *columns = table.columns
        start, base = len(self.seqs), len(self.names)
        self.names.add_block(count_of(stored), stored.names, stored.hashes)
        self.odd += table.odd
        for row, *texts in table.exact:
            self.exact[start + row] = texts
        mapped = [self.facts.setdefault(tuple(facts), len(self.facts)) for facts in table.facts]
        places.add_to(self.seqs, first)
        numbers.add_to(self.numbers, base)
        if len(mapped) == 1:
            self.codes.extend(array("i", mapped) * table.size)
        else:
            codes.add_items_to(self.codes, mapped)
        for target, column in zip(self.columns, columns, strict=True):
            column.add_to(target)


def read_verdicts(connection: sqlite3.Connection, run_id: str | None) -> VerdictColumns:
    """Return the verdicts and failures of the ledger, or of one run.

    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(VERDICTS).read(connection, Query(run_id, VERDICTS.types))
    times, flags, scores, confidences, usd, msat = merged.columns
    origins = _origins(VerdictOrigin, merged)
    exact = {row: (texts[0], texts[1]) for row, texts in merged.exact.items()}
    figures = scores, confidences, usd, msat, merged.numbers, merged.names, origins, exact
    columns = VerdictColumns(merged.seqs, times, merged.codes, flags, *figures)
    return columns if run_id is None else columns.of_run(run_id)


def read_activity(connection: sqlite3.Connection, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
    """Return the events of *types*, of the ledger or of one run.

    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(ACTIVITY).read(connection, Query(run_id, tuple(types)))
    (hashes,) = merged.columns
    origins = _origins(ActivityOrigin, merged)
    columns = ActivityColumns(merged.seqs, merged.codes, hashes, merged.numbers, merged.names, origins)
    return columns.of(run_id, types)


def read_spent(connection: sqlite3.Connection, run_id: str | None) -> Spent | None:
    """Return the spending of the ledger, or of one run, which may include other runs; None if an event has another form than its type.

    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(SPENT).read(connection, Query(run_id, SPENT.types))
    if merged.odd:
        return None
    times, flags, amounts, tokens, calls, marks = merged.columns
    exact = {row: texts[0] for row, texts in merged.exact.items()}
    figures = amounts, tokens, calls, marks, merged.numbers, merged.names
    return Spent(times, merged.codes, flags, *figures, _origins(Payer, merged), exact)


def read_open(connection: sqlite3.Connection, run_id: str | None) -> list[int]:
    """Return the numbers of the ``eval.started`` events without a verdict or failure yet, in ascending order. A run may have fewer of them.

    :raises ValueError: if a block cannot be read.
    """
    judgments: dict[str, list[int]] = {}
    for first, stored in block_columns(connection, Query(run_id, EVALS)):
        try:
            started, ends = stored.judgments()
        except UNREADABLE as error:
            raise _unreadable(first, error) from error
        for eval_id in ends:
            judgments.pop(eval_id, None)
        for eval_id, places in started.items():
            judgments.setdefault(eval_id, []).extend(first + place for place in places)
    return sorted(seq for seqs in judgments.values() for seq in seqs)


def _origins(origin: Callable[..., Any], merged: Merged) -> list[Any]:
    return [origin(*facts) for facts in merged.facts]
