"""What stands in the columns of a run's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from dicast import Record, Results
from dicast.toolkit.json_values import lookup

from .table import Key

_NAMES = {"id", "session_id"}


def row_values(results: Results, places: Sequence[str]) -> Callable[[Key, Record], Sequence[object]]:
    """What gives the values at the dotted *places* in a record's row, ``dicast.toolkit.json_values.MISSING`` where there is none.

    Where *results* have the rows beside their records, it is these that are looked into, once.
    """
    known = {key: [lookup(row, place) for place in places] for key, row in results.rows()}

    def values(key: Key, record: Record) -> Sequence[object]:
        return known.get(key) or [lookup(record.get("row") or {}, place) for place in places]

    return values


def unkept(**sides: Results) -> str:
    """What to add where a column is in no row of a run: which of *sides* keep no columns of their rows at all; empty where all do."""
    bare = [side for side, results in sides.items() if _is_bare(results)]
    if not bare:
        return ""
    why = "a file of dicast baseline save and a ledger with content: digest keep none"
    return f"; the rows of {' and '.join(bare)} have no columns: {why}"


def _is_bare(results: Results) -> bool:
    """Whether there is nothing in the rows but what names their subjects."""
    rows = chain((row for _, row in results.rows()), (record.get("row") or {} for _, record in results.records()))
    there = {name for row in rows for name in row}
    return bool(there) and there <= _NAMES
