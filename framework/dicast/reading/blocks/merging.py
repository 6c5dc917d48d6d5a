"""The columns of a ledger, or of a run, from the columns of its blocks."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

from ..activity import ActivityColumns, ActivityOrigin
from ..columns import Ints, numpy_for
from ..memory import GrowingColumn
from ..names import Names
from ..verdict_columns import VerdictColumns, VerdictOrigin
from .block_columns import ACTIVITY, SPENT, VERDICTS, Table
from .making import Layouts, columns_of
from .spent import Payer, Spent
from .stored_columns import UNREADABLE, Stored, StoredColumns, StoredTable, count_of

Blocks = Iterable[tuple[int, Stored]]
"""The number of the first event of each block, in ascending order, and the columns of the block."""


def unreadable(first: int, error: Exception) -> ValueError:
    """Return an error of :data:`UNREADABLE` that names the block from event *first*, whose columns or lines have the error."""
    return ValueError(f"the block from event {first}: {error}")


@contextmanager
def reading_block(first: int) -> Iterator[None]:
    """Name the block from event *first* in errors of its columns and lines.

    :raises ValueError: in place of an error of :data:`UNREADABLE`.
    """
    try:
        yield
    except UNREADABLE as error:
        raise unreadable(first, error) from error


def columns_of_lines(lines: Iterable[Sequence[Any]], layouts: Layouts) -> StoredColumns:
    """Return the columns of a block that stores none, from its parsed lines.

    :raises LookupError, TypeError, ValueError: if a line does not have the values of its kind.
    """
    return StoredColumns.of_block(columns_of(lines, layouts))


class Merged:
    """A table of many blocks.

    :param names: the names that the table refers to. Other tables may share them.
    :param is_wanted: whether a reader wants events with these facts; a block without such facts is left out.
    """

    def __init__(self, table: Table, names: Names, is_wanted: Callable[[Sequence[Any]], bool] | None = None) -> None:
        self.names = names
        self.facts: dict[tuple[Any, ...], int] = {}
        self.exact: dict[int, Sequence[Any]] = {}
        self.odd = self.size = self._room = 0
        self._table, self._is_wanted = table, is_wanted
        self._columns = [GrowingColumn(code) for code in table.all_codes]
        self._blocks: list[_Numbered] = []

    def add(self, blocks: Blocks) -> Merged:
        """Add *blocks*, and return this object.

        :raises ValueError: if the columns of a block cannot be read.
        """
        for first, stored in blocks:
            try:
                table = stored.table(self._table)
                if table is not None:
                    self.odd += table.odd
                    if self._is_wanted is None or any(map(self._is_wanted, table.facts)):
                        self._add(first, table, stored)
            except UNREADABLE as error:
                raise unreadable(first, error) from error
        return self

    def _add(self, first: int, table: StoredTable, stored: Stored) -> None:
        for row, *texts in table.exact:
            self.exact[self.size + row] = texts
        codes = [self.facts.setdefault(tuple(facts), len(self.facts)) for facts in table.facts]
        start = self.names.start_of_block(first, count_of(stored), stored.names, stored.hashes)
        self._blocks.append(_Numbered(first, table.size, start, codes))
        self.size += table.size
        if self.size > self._room:
            self._room = max(self.size, 2 * self._room)
            for target in self._columns:
                target.reserve(self._room)
        for target, column in zip(self._columns, table.columns, strict=True):
            target.add(column)

    def columns(self) -> tuple[Ints, Ints, Ints, list[Any]]:
        """Return the numbers of the events, of the facts and of the names of the rows, and the other columns. Call it once.

        :raises ValueError: if a number does not fit; it names the block.
        """
        places, codes, names, *columns = (column.numbers(self.size) for column in self._columns)
        np = numpy_for(self.size)
        numbers = None if np is None else _numbered_together(np, self._blocks, places, codes, names)
        return *(numbers or _numbered(self._blocks, places, codes, names)), columns


class _Numbered(NamedTuple):
    """A block of a table: the number of its first event, its number of rows, the number of its first name, and the numbers of its facts."""

    first: int
    size: int
    start: int
    codes: Sequence[int]


def _numbered(
    blocks: Iterable[_Numbered], places: memoryview, codes: memoryview, names: memoryview
) -> tuple[Ints, Ints, Ints]:
    """Return the numbers of the events, of the facts and of the names of all rows, from the numbers in their blocks.

    :raises ValueError: if a number does not fit; it names the block.
    """
    seqs, facts, numbers, end = array("q"), array("i"), array("i"), 0
    for first, size, start, of_facts in blocks:
        rows = slice(end, end + size)
        end += size
        with reading_block(first):
            if any(min(column[rows], default=0) < 0 for column in (places, codes, names)):
                raise ValueError("a number of a column is negative")
            seqs.extend(map(first.__add__, places[rows]))
            facts.extend(map(of_facts.__getitem__, codes[rows]))
            numbers.extend(map(start.__add__, names[rows]))
    return seqs, facts, numbers


def _numbered_together(
    np: ModuleType, blocks: Sequence[_Numbered], places: memoryview, codes: memoryview, names: memoryview
) -> tuple[Ints, Ints, Ints] | None:
    """Return the same as :func:`_numbered`, in a tenth of the time; None if a number does not fit. The memory of *codes* and *names* is used again."""
    firsts, sizes, starts, of_facts = zip(*blocks, strict=True)
    counts = np.array([*map(len, of_facts)])
    offsets = np.cumsum(counts) - counts
    seqs = np.repeat(np.array(firsts, "q"), sizes)
    facts, numbers = np.asarray(codes), np.asarray(names)
    local = np.asarray(places)
    is_odd = (
        min(local.min(), facts.min(), numbers.min()) < 0
        or (facts >= np.repeat(counts, sizes)).any()
        or int(numbers.max()) + max(starts) >= 2**31
    )
    seqs += local
    if is_odd or seqs.min() < 0:
        return None
    facts += np.repeat(offsets.astype("i"), sizes)
    facts[:] = np.array([code for codes in of_facts for code in codes], "i")[facts]
    numbers += np.repeat(np.array(starts, "i"), sizes)
    return memoryview(seqs).cast("B").cast("q"), codes, names


def merge_verdicts(blocks: Blocks, run_id: str | None, names: Names | None = None) -> VerdictColumns:
    """Return the verdicts and failures of *blocks*, or the verdicts and failures of one run.

    :param names: names of the ledger that other columns may share.
    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(VERDICTS, Names() if names is None else names).add(blocks)
    seqs, codes, numbers, (times, flags, scores, confidences, usd, msat) = merged.columns()
    origins = _origins(VerdictOrigin, merged)
    exact = {row: (texts[0], texts[1]) for row, texts in merged.exact.items()}
    figures = scores, confidences, usd, msat, numbers, merged.names, origins, exact
    columns = VerdictColumns(seqs, times, codes, flags, *figures)
    return columns if run_id is None else columns.of_run(run_id)


def newest_pricing_version(blocks: Blocks, run_id: str | None) -> str | None:
    """Return the version of the price list of the newest verdict in *blocks*, or in one run, that has one. Only the columns of one block are decompressed.

    :raises ValueError: if a block cannot be read.
    """
    newest = None
    for first, stored in blocks:
        try:
            origins = [VerdictOrigin(*facts) for facts in stored.facts(VERDICTS)]
        except UNREADABLE as error:
            raise unreadable(first, error) from error
        if any(origin.pricing_version is not None and run_id in (None, origin.run_id) for origin in origins):
            newest = first, stored
    return None if newest is None else merge_verdicts([newest], run_id).pricing_version


def merge_activity(
    blocks: Blocks, run_id: str | None, types: Sequence[str], names: Names | None = None
) -> ActivityColumns:
    """Return the events of *types* in *blocks*, or in one run of *blocks*.

    :param names: names of the ledger that other columns may share.
    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(ACTIVITY, Names() if names is None else names, lambda facts: facts[1] in types).add(blocks)
    seqs, codes, numbers, (hashes,) = merged.columns()
    origins = _origins(ActivityOrigin, merged)
    columns = ActivityColumns(seqs, codes, hashes, numbers, merged.names, origins)
    return columns.of(run_id, types)


def merge_spent(blocks: Blocks, names: Names | None = None) -> Spent | None:
    """Return the spending in *blocks*; None if an event has another form than its type.

    :param names: names of the ledger that other columns may share.
    :raises ValueError: if a block cannot be read.
    """
    merged = Merged(SPENT, Names() if names is None else names).add(blocks)
    if merged.odd:
        return None
    _, codes, numbers, (times, flags, amounts, tokens, calls, marks) = merged.columns()
    exact = {row: texts[0] for row, texts in merged.exact.items()}
    figures = amounts, tokens, calls, marks, numbers, merged.names
    return Spent(times, codes, flags, *figures, _origins(Payer, merged), exact)


def open_starts(blocks: Blocks) -> list[int]:
    """Return the numbers of the ``eval.started`` events of *blocks* without a verdict or failure yet, in ascending order.

    :raises ValueError: if a block cannot be read.
    """
    judgments: dict[str, list[int]] = {}
    for first, stored in blocks:
        try:
            for eval_id in stored.ended(judgments) if judgments else ():
                judgments.pop(eval_id, None)
            for eval_id, places in stored.started().items():
                judgments.setdefault(eval_id, []).extend(first + place for place in places)
        except UNREADABLE as error:
            raise unreadable(first, error) from error
    return sorted(seq for seqs in judgments.values() for seq in seqs)


def _origins(origin: Callable[..., Any], merged: Merged) -> list[Any]:
    return [origin(*facts) for facts in merged.facts]
