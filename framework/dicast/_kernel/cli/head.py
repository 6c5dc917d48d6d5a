"""The rows that ``dicast run --head`` tries: what a file of rows would have of them, and a table for a reader."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson

from ...toolkit.run_table import RunTable
from ...toolkit.text_table import TextTable
from ..contract.protocols import Ledger
from ..values import Query

Row = Mapping[str, object]

_FIRST = ("id", "subject_id", "input", "output", "reference")
"""The columns that a reader looks for first."""

_BESIDE = re.compile("(subject_kind|session_id|tier|security_level|retry_.*|llm_.*_metric_.*)$")
"""The columns of which a reader is told the names alone."""


def head_rows(ledger: Ledger, run_id: str) -> list[Row]:
    """The rows of the run, by the columns that a file of rows has, with what was judged and why."""
    table = RunTable(Path(tempfile.gettempdir()), content=True)
    try:
        table.take([entry.event for entry in ledger.read(Query(run_id, types=RunTable.wants))])
        table.end()
        columns = table.columns()
        return [dict(zip(columns, row, strict=True)) for row in table.rows()]
    finally:
        table.close()


def head_table(rows: Sequence[Row]) -> tuple[TextTable, list[str]]:
    """*rows* as a table, and the columns that it leaves out though they hold something."""
    filled = [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
    if "id" in filled and all(row["id"] == row["subject_id"] for row in rows):
        filled.remove("subject_id")
    free = all(row.get("cost_usd") == "0" for row in rows)
    beside = [name for name in filled if _BESIDE.match(name) or (free and name == "cost_usd")]
    first = [name for name in _FIRST if name in filled]
    columns = first + [name for name in filled if name not in (*first, *beside)]
    return TextTable(columns, [[_cell(row[name]) for name in columns] for row in rows], whole=("failure",)), beside


def _cell(value: object) -> object:
    plain = value is None or isinstance(value, str | int | float)
    return value if plain else orjson.dumps(value, default=str).decode()
