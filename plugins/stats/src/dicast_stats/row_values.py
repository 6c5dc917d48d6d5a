"""What stands in the columns of a run's rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dicast import Record, Results, lookup

from .table import Key


def row_values(results: Results, places: Sequence[str]) -> Callable[[Key, Record], Sequence[object]]:
    """What gives the values at the dotted *places* in a record's row, ``dicast.MISSING`` where there is none.

    Where *results* have the rows beside their records, it is these that are looked into, once.
    """
    known = {key: [lookup(row, place) for place in places] for key, row in results.rows()}

    def values(key: Key, record: Record) -> Sequence[object]:
        return known.get(key) or [lookup(record.get("row") or {}, place) for place in places]

    return values
