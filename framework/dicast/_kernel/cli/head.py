"""Rows that ``dicast run --head`` tries, with the columns of a file of rows, and a table for a reader."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any

import orjson

from ...toolkit.run_table import RunTable
from ...toolkit.terminal import Drawing
from ...toolkit.text_table import TextTable
from ..contract.protocols import Ledger
from ..values import Query

Row = Mapping[str, object]

_FIELDS = ("id", "subject_id", "input", "output", "reference")
"""Columns that a pipeline maps; the data may have them under another name too."""

_IDS = ("id", "subject_id")
"""Columns that are shown first; the failure and the deciding value follow."""

_QUESTION = ("input", "output")
"""Columns that are shown next; the outputs of a task follow."""

_RESULT = ("reference", "score")
"""Columns that are shown after the outputs of a task."""

_CONTENT = "llm_content"
"""The first output of a task; it may have a column of its own too."""

_VERDICTS = "subject_kind"
"""The first column of the verdicts; the columns of the record come before it."""

_LEAST_BLOCKS = 2
"""The blocks of columns that are shown even if they have too many lines."""

_OTHER_LINES = 3
"""The lines around the table: the empty line, and the names of further columns."""

_NAMED = 6
"""Largest number of named columns that the table leaves out."""

_SMALL = 0.00005
"""Numbers below it have more digits than the four decimals of other numbers."""

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


def head_parts(done: Mapping[str, Any], label: str | None, most: int | None = None) -> Iterator[str | Drawing]:
    """Yield the table of the tried rows of a run's document, after an empty line, in at most *most* lines if possible.

    The failure and the deciding value come first, so that no narrow screen cuts them, then the answers, then the scores with their reasons,
    then the other columns of the rows. *label* is the label of the gate or the score. The last columns are left out if the lines are too many. A column with the same texts as the input, the output, the reference or the id is left out too.
    """
    rows = done["head"]
    columns, omitted = _columns(rows, label)
    table = _table(rows, columns)
    limit = inf if most is None else most - _OTHER_LINES
    while len(lines := [*table.lines()]) > limit and lines.count("") >= _LEAST_BLOCKS:
        omitted.insert(0, columns.pop())
        table = _table(rows, columns)
    yield ""
    yield Drawing(table, lines)
    if omitted:
        rest = f" and {len(omitted) - _NAMED:,} more" if len(omitted) > _NAMED else ""
        yield f"  more columns with --json: {', '.join(omitted[:_NAMED])}{rest}"


def _deciding(columns: Sequence[str], label: str | None) -> list[str]:
    """Return the column of the value that decides: of *label*, the label of the gate or the score, else the score or the first judge's."""
    judged = (name for name in columns if name.startswith("judge_") and name.endswith("_score"))
    names = (f"judge_{label}_score", f"metric_{label}", "score", *judged)
    return [name for name in names if name in columns][:1]


def _columns(rows: Sequence[Row], label: str | None) -> tuple[list[str], list[str]]:
    """Return the filled columns of *rows* that the table shows, with the value of *label* near the start, and the names of the others."""
    filled = [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
    if "id" in filled and all(row["id"] == row["subject_id"] for row in rows):
        filled.remove("subject_id")
    outputs = [name for name in filled if name.startswith("llm_") and name != _CONTENT and not _OMITTED.match(name)]
    has_copy = any(all(row[name] == row[_CONTENT] for row in rows) for name in outputs if _CONTENT in filled)
    answers = [*_QUESTION, *([] if has_copy else [_CONTENT]), *outputs]
    order = dict.fromkeys([*_IDS, "failure", *_deciding(filled, label), *answers, *_RESULT])
    first = [name for name in order if name in filled]
    verdicts = [*rows[0]].index(_VERDICTS) if rows and _VERDICTS in rows[0] else 0
    judged = {name for number, name in enumerate(rows[0] if rows else ()) if number >= verdicts}
    rest = sorted((name for name in filled if name not in first), key=lambda name: name not in judged)
    free = all(row.get("cost_usd") == "0" for row in rows)
    texts = [[row[name] for row in rows] for name in first if name in _FIELDS]
    columns, omitted = list[str](), list[str]()
    for name in (*first, *rest):
        values = [row[name] for row in rows]
        is_copy = name in rest and values in texts and all(isinstance(value, str) for value in values)
        is_hidden = is_copy or (name == _CONTENT and has_copy) or _OMITTED.match(name) or (free and name == "cost_usd")
        (omitted if is_hidden else columns).append(name)
    return columns, omitted


def _table(rows: Sequence[Row], columns: Sequence[str]) -> TextTable:
    return TextTable(columns, [[_cell(row[name]) for name in columns] for row in rows], uncut=("failure",))


def _cell(value: object) -> object:
    if isinstance(value, float) and 0 < abs(value) < _SMALL:
        return Decimal(f"{value:.3g}")
    plain = value is None or isinstance(value, str | int | float)
    return value if plain else orjson.dumps(value, default=str).decode()
