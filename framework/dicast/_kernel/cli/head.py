"""Rows that ``dicast run --head`` tries, with the columns of a file of rows, and a table for a reader."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from ...toolkit.run_table import RunTable
from ...toolkit.terminal import Drawing
from ...toolkit.text_table import TextTable
from ..contract.protocols import Ledger
from ..values import Query

Row = Mapping[str, object]

_FIRST = ("id", "subject_id", "input", "output", "reference")
"""Columns that are shown first."""

_OMITTED = re.compile("(subject_kind|session_id|tier|security_level|retry_.*|llm_.*_metric_.*)$")
"""Columns that the table leaves out; their names are listed below it."""


def head_rows(ledger: Ledger, run_id: str) -> list[Row]:
    """Return the rows of the run with the columns of a file of rows, including judged content and reasons."""
    table = RunTable(Path(tempfile.gettempdir()), content=True)
    try:
        table.take([entry.event for entry in ledger.read(Query(run_id, types=RunTable.wants))])
        table.end()
        columns = table.columns()
        return [dict(zip(columns, row, strict=True)) for row in table.rows()]
    finally:
        table.close()


def head_parts(done: Mapping[str, Any]) -> Iterator[str | Drawing]:
    """Yield the table of the tried rows of a run's document, after an empty line."""
    table, omitted = _head_table(done["head"])
    yield ""
    yield Drawing(table, [*table.lines()])
    if omitted:
        yield f"  more columns with --json: {', '.join(omitted)}"


def _head_table(rows: Sequence[Row]) -> tuple[TextTable, list[str]]:
    """Return *rows* as a table, and the names of the filled columns that the table leaves out."""
    filled = [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
    if "id" in filled and all(row["id"] == row["subject_id"] for row in rows):
        filled.remove("subject_id")
    free = all(row.get("cost_usd") == "0" for row in rows)
    omitted = [name for name in filled if _OMITTED.match(name) or (free and name == "cost_usd")]
    first = [name for name in _FIRST if name in filled]
    columns = first + [name for name in filled if name not in (*first, *omitted)]
    return TextTable(columns, [[_cell(row[name]) for name in columns] for row in rows], uncut=("failure",)), omitted


def _cell(value: object) -> object:
    plain = value is None or isinstance(value, str | int | float)
    return value if plain else orjson.dumps(value, default=str).decode()
