"""Values in the columns of a run's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from dicast import Record, Results
from dicast.toolkit.json_values import lookup

from .table import Key

_NAMES = {"id", "session_id"}


def row_values(results: Results, places: Sequence[str]) -> Callable[[Key, Record], Sequence[object]]:
    """Return a function that reads the values at the dotted *places* of a record's row.

    A missing value is ``dicast.toolkit.json_values.MISSING``. If *results* has the rows next to the records, the function reads only these rows.
    """
    columns = {key: [lookup(row, place) for place in places] for key, row in results.rows()}

    def values(key: Key, record: Record) -> Sequence[object]:
        return columns.get(key) or [lookup(record.get("row") or {}, place) for place in places]

    return values


def missing_columns_text(**sides: Results) -> str:
    """Return a note for a message on a missing column: which of *sides* have rows without columns; empty if all rows have columns."""
    bare = [side for side, results in sides.items() if _is_bare(results)]
    if not bare:
        return ""
    cause = "a file of dicast baseline save and a ledger with content: digest store none"
    return f"; the rows of {' and '.join(bare)} have no columns: {cause}"


def _is_bare(results: Results) -> bool:
    """Return whether the rows hold only the names of their subjects."""
    rows = chain((row for _, row in results.rows()), (record.get("row") or {} for _, record in results.records()))
    names = {name for row in rows for name in row}
    return bool(names) and names <= _NAMES
