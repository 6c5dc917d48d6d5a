"""The columns of a ledger, or of a run, from the columns of its blocks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..activity import ActivityColumns, ActivityOrigin
from ..names import Names
from ..verdict_columns import VerdictColumns, VerdictOrigin
from .block_columns import ACTIVITY, SPENT, VERDICTS, Table
from .making import Layouts, columns_of
from .spent import Payer, Spent
from .stored_columns import UNREADABLE, Stored, StoredColumns, StoredTable, count_of

Blocks = Iterable[tuple[int, Stored]]
"""The number of the first event of each block, in ascending order, and the columns of the block."""


@contextmanager
def reading_block(first: int) -> Iterator[None]:
    """Name the block from event *first* in errors of its columns and lines.

    :raises ValueError: in place of an error of :data:`UNREADABLE`.
    """
    try:
        yield
    except UNREADABLE as error:
        raise ValueError(f"the block from event {first}: {error}") from error


def columns_of_lines(lines: Iterable[Sequence[Any]], layouts: Layouts) -> StoredColumns:
    """Return the columns of a block that stores none, from its parsed lines.

    :raises LookupError, TypeError, ValueError: if a line does not have the values of its kind.
    """
    return StoredColumns.of_block(columns_of(lines, layouts))


class Merged:
    """A table of many blocks."""

    def __init__(self, table: Table) -> None:
        self.seqs = array("q")
        self.codes, self.numbers = array("i"), array("i")
        self.columns: list[array[Any]] = [array(code) for code in table.codes]
        self.facts: dict[tuple[Any, ...], int] = {}
        self.names = Names()
        self.exact: dict[int, Sequence[Any]] = {}
        self.odd = 0
        self._table = table

    def add(self, blocks: Blocks) -> Merged:
        """Add *blocks*, and return this object.

        :raises ValueError: if the columns of a block cannot be read.
        """
        for first, stored in blocks:
            with reading_block(first):
                table = stored.table(self._table)
                if table is not None:
                    self._add(first, table, stored)
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


def merge_verdicts(blocks: Blocks, run_id: str | None) -> VerdictColumns:
    """Return the verdicts and failures of *blocks*, or the verdicts and failures of one run.

    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(VERDICTS).add(blocks)
    times, flags, scores, confidences, usd, msat = merged.columns
    origins = _origins(VerdictOrigin, merged)
    exact = {row: (texts[0], texts[1]) for row, texts in merged.exact.items()}
    figures = scores, confidences, usd, msat, merged.numbers, merged.names, origins, exact
    columns = VerdictColumns(merged.seqs, times, merged.codes, flags, *figures)
    return columns if run_id is None else columns.of_run(run_id)


def merge_activity(blocks: Blocks, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
    """Return the events of *types* in *blocks*, or in one run of *blocks*.

    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(ACTIVITY).add(blocks)
    (hashes,) = merged.columns
    origins = _origins(ActivityOrigin, merged)
    columns = ActivityColumns(merged.seqs, merged.codes, hashes, merged.numbers, merged.names, origins)
    return columns.of(run_id, types)


def merge_spent(blocks: Blocks) -> Spent | None:
    """Return the spending in *blocks*; None if an event has another form than its type.

    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(SPENT).add(blocks)
    if merged.odd:
        return None
    times, flags, amounts, tokens, calls, marks = merged.columns
    exact = {row: texts[0] for row, texts in merged.exact.items()}
    figures = amounts, tokens, calls, marks, merged.numbers, merged.names
    return Spent(times, merged.codes, flags, *figures, _origins(Payer, merged), exact)


def open_starts(blocks: Blocks) -> list[int]:
    """Return the numbers of the ``eval.started`` events of *blocks* without a verdict or failure yet, in ascending order.

    :raises ValueError: if a block cannot be read.
    """
    judgments: dict[str, list[int]] = {}
    for first, stored in blocks:
        with reading_block(first):
            started, ends = stored.judgments()
        for eval_id in ends:
            judgments.pop(eval_id, None)
        for eval_id, places in started.items():
            judgments.setdefault(eval_id, []).extend(first + place for place in places)
    return sorted(seq for seqs in judgments.values() for seq in seqs)


def _origins(origin: Callable[..., Any], merged: Merged) -> list[Any]:
    return [origin(*facts) for facts in merged.facts]
