"""Evaluation of a Python program's rows in one call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import attrs

from ..contract.protocols import Task
from ..run.finished_run import Run
from ..values import Subject
from ..values.errors import ConfigError, DataError, Problem
from ..values.names import identifier, nearest
from .runs import run

_FIELDS = ("id", "input", "output", "reference", "session_id", "context")


def evaluate(
    rows: Iterable[Mapping[str, object] | Subject],
    metrics: Sequence[object] = (),
    *,
    fields: Mapping[str, str] | None = None,
    task: Callable[..., Any] | Task | None = None,
    **pipeline: object,
) -> Run:
    """Judge *rows* with *metrics*, wait, and return the finished run.

    :param rows: mappings of columns (``input``, ``output``, ``reference``, ``id``, ``session_id``; others are context), a pandas data
        frame, or subjects.
    :param metrics: names (``"diff/match"``), ``{name: {options}}``, or components made in Python, such as a function with ``@metric``.
    :param fields: the columns of ``input``, ``output`` and so on, if they have other names.
    :param task: as for :func:`run`.
    :param pipeline: further sections, by name: ``judges=[…]``, ``gate={…}``, ``name="nightly"``.
    :raises RequestError: when the request is invalid; nothing was judged or spent then.
    """
    sections = {"name": "evaluate", **({"metrics": metrics} if len(metrics) else {}), **pipeline}
    return run(sections, subjects=_subjects(rows, fields or {}), task=task, kind="evaluate")


def _subjects(rows: Any, fields: Mapping[str, str]) -> list[Subject]:
    """Return the subjects for *rows*, mappings or a data frame, as ``rows/jsonl`` reads them.

    *fields* maps ``id``, ``input``, ``output``, ``reference``, ``session_id`` and ``context`` to columns. ``id`` defaults to the row's
    number; other columns are context. A missing value of a data frame (NaN) is None.

    :raises DataError: with every invalid row.
    """
    for name in fields:
        if name not in _FIELDS:
            raise ConfigError(
                [Problem(f"unknown field {name!r}; a row has {', '.join(_FIELDS)}", hint=nearest(name, _FIELDS))]
            )
    if hasattr(rows, "to_dict"):
        records = rows.to_dict(orient="records")
        rows = [
            {str(key): None if isinstance(value, float) and isnan(value) else value for key, value in row.items()}
            for row in records
        ]
    subjects, problems = list[Subject](), list[Problem]()
    for number, row in enumerate(rows, 1):
        try:
            subjects.append(row if isinstance(row, Subject) else _subject(number, row, fields))
        except DataError as error:
            problems += [
                attrs.evolve(problem, message=f"row {number}: {problem.message}") for problem in error.problems
            ]
    if problems:
        raise DataError(problems)
    return subjects


def _subject(number: int, row: object, fields: Mapping[str, str]) -> Subject:
    if not isinstance(row, Mapping):
        raise DataError(f"not a mapping of columns: {row!r:.80}")
    columns = {name: fields.get(name, name) for name in _FIELDS}
    if missing := [column for column in fields.values() if column not in row]:
        names = ", ".join(map(str, row)) or "nothing"
        raise DataError(Problem(f"it has no {missing[0]!r}; it has {names}", hint=nearest(missing[0], map(str, row))))
    rest = {key: value for key, value in row.items() if key not in columns.values()}
    values = {name: row.get(column) for name, column in columns.items()}
    context_value = values["context"]
    context = (
        context_value
        if isinstance(context_value, Mapping)
        else {}
        if context_value is None
        else {"context": context_value}
    )
    session = values["session_id"]
    return Subject(
        "row",
        str(number) if values["id"] is None else identifier(values["id"], columns["id"]),
        values["input"],
        values["output"],
        values["reference"],
        {**context, **rest},
        session_id=None if session in (None, "") else identifier(session, columns["session_id"]),
        columns={column: row[column] for name, column in fields.items() if column != name},
    )
