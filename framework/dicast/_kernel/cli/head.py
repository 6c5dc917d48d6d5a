"""Rows that ``dicast run --head`` tries, with the columns of a file of rows, and a table for a reader."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from math import inf
from pathlib import Path
from typing import Any

import orjson

from ...toolkit.run_table import RunTable
from ...toolkit.terminal import Drawing
from ...toolkit.text_table import TextTable
from ..contract.protocols import Ledger
from ..report.failure_words import task_kind
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

_OMITTED = re.compile("(subject_kind|session_id|tier|security_level|retry_.*)$")
"""Columns that the table leaves out; their names are listed below it."""

_COPIES = re.compile("llm_.*_metric_.*$")
"""Columns with the figures of one output; the columns ``metric_*`` have their sums."""

_VALUE = re.compile("metric_.+|judge_.+_score")
"""Columns with the value of a metric or of a judge."""

_JUDGE_FAILURE = re.compile("judge_.+_failure")
"""Columns with the failure of a judge."""

_TASK = "task: "
"""Start of a judge's failure if the judge was not asked, because the task failed."""

_TASK_REASON = "reason_record"
"""The column with the reason of a failure of the task."""

_WORDS = [
    (re.compile(pattern), words)
    for pattern, words in (
        ("subject_id", "id"),
        (_TASK_REASON, "reason: task"),
        ("judge_(.+)_(confidence|failure)", r"\1: \2"),
        ("judge_(.+)_kind", r"\1: judged by"),
        ("judge_(.+)_score", r"\1"),
        ("metric_(.+)", r"\1"),
        ("(reason|rationale|hidden_media|cut_evidence|finish_reason)_(.+)", r"\1: \2"),
    )
]
"""Headings of columns of the verdicts, by a pattern of the column's name in files."""


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
    score = (done["score"] or {}).get("label")
    columns, omitted = _columns(rows, label, score)
    table = _table(rows, columns, score)
    limit = inf if most is None else most - _OTHER_LINES
    while len(lines := [*table.lines()]) > limit and lines.count("") >= _LEAST_BLOCKS:
        omitted.insert(0, columns.pop())
        table = _table(rows, columns, score)
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


def _columns(rows: Sequence[Row], label: str | None, score: str | None) -> tuple[list[str], list[str]]:
    """Return the filled columns of *rows* that the table shows, with the value of *label* near the start, and the names of the others.

    *score* is the label of the column ``score``.
    """
    filled = [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
    if "id" in filled and all(row["id"] == row["subject_id"] for row in rows):
        filled.remove("subject_id")
    if (original := _original(rows, filled, score)) is not None:
        filled.remove("score")
    outputs = [name for name in filled if name.startswith("llm_") and name != _CONTENT and not _COPIES.match(name)]
    has_copy = any(_is_equal(rows, name, _CONTENT) for name in outputs if _CONTENT in filled)
    answers = [*_QUESTION, *([] if has_copy else [_CONTENT]), *outputs]
    order = dict.fromkeys([*_IDS, "failure", *(_deciding(filled, label) or [original or "score"]), *answers, *_RESULT])
    first = [name for name in order if name in filled]
    judged = _judged(rows)
    remaining = (name for name in filled if name not in first)
    rest = sorted(remaining, key=lambda name: (name not in judged, name.startswith("finish_reason")))
    free = all(row.get("cost_usd") == "0" for row in rows)
    texts = [[row[name] for row in rows] for name in first if name in _FIELDS]
    columns, omitted = list[str](), list[str]()
    for name in (*first, *rest):
        values = [row[name] for row in rows]
        is_copy = name in rest and values in texts and all(isinstance(value, str) for value in values)
        if is_copy or _COPIES.match(name) or (name == _CONTENT and has_copy):
            continue
        (omitted if _OMITTED.match(name) or (free and name == "cost_usd") else columns).append(name)
    return columns, omitted


def _original(rows: Sequence[Row], columns: Sequence[str], score: str | None) -> str | None:
    """Return the column that ``score`` is a copy of: the only metric's or judge's, or that of the label *score*."""
    names = [name for name in _judged(rows) if _VALUE.fullmatch(name)]
    names = names if len(names) == 1 else [name for name in names if _heading(name, None) == score]
    return next((name for name in names if {"score", name} <= {*columns} and _is_equal(rows, "score", name)), None)


def _is_equal(rows: Sequence[Row], name: str, other: str) -> bool:
    return all(row[name] == row[other] for row in rows)


def _judged(rows: Sequence[Row]) -> set[str]:
    """Return the columns of the verdicts; the columns of the record come before them."""
    names = [*rows[0]] if rows else []
    return {*names[names.index(_VERDICTS) :]} if _VERDICTS in names else {*names}


def _headings(columns: Sequence[str], judged: Collection[str], label: str | None) -> list[str]:
    """Return a heading in words for each of *columns*; *label* is the label of the column ``score``. Equal headings keep their names."""
    words = {name: _heading(name, label) if name in judged else _data_heading(name) for name in columns}
    counts = Counter(words.values())
    return [words[name] if counts[words[name]] == 1 else name for name in columns]


def _heading(name: str, label: str | None) -> str:
    if name == "score":
        return label or name
    for pattern, words in _WORDS:
        if (match := pattern.fullmatch(name)) is not None:
            return match.expand(words)
    return name


def _data_heading(name: str) -> str:
    if name == _CONTENT:
        return "output"
    return (
        f"output {name.removeprefix('llm_')}" if name.startswith("llm_") else re.sub("^row_(?=[a-z])", "data: ", name)
    )


def _table(rows: Sequence[Row], columns: Sequence[str], label: str | None) -> TextTable:
    headings = _headings(columns, _judged(rows), label)
    return TextTable(headings, [[_cell(name, row) for name in columns] for row in rows], uncut=("failure",))


def _cell(name: str, row: Row) -> object:
    value = row[name]
    if name == "failure" and value is not None and row.get(_TASK_REASON) is not None:
        return task_kind(str(value))
    if _JUDGE_FAILURE.fullmatch(name) and str(value).startswith(_TASK):
        return task_kind(str(value).removeprefix(_TASK))
    if isinstance(value, float) and 0 < abs(value) < _SMALL:
        return Decimal(f"{value:.3g}")
    plain = value is None or isinstance(value, str | int | float)
    return value if plain else orjson.dumps(value, default=str).decode()
