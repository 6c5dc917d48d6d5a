"""Blank texts in columns that a task's prompt prints, found before the first call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from shlex import quote
from typing import Any

from ..asking.record import columns
from ..contract.protocols import Source
from ..plan.sections import Pipeline
from .filters import column_key
from .source import is_live, read

BLANK_COLUMN = "blank_column"
"""Kind of the warning about rows whose text in a column of the prompt is blank."""

_TEXT = "~\\S"
"""End of a filter that accepts texts that are not blank."""

_SHOWN = 5
"""The number of ids in a warning."""


async def blank_columns(source: Source, name: str, pipeline: Pipeline, most: int | None = None) -> list[dict[str, Any]]:
    """Return a warning for each column that the task always reads and that is blank in some of the first *most* subjects of *source*.

    A blank text is a value, so the row is sent to the model and paid. A source that can be read only once, or waits for subjects, is not read.
    """
    needs = getattr(pipeline.task and pipeline.task.component, "needed_columns", None)
    needed: Mapping[str, str] = needs() if callable(needs) else {}
    if not needed or is_live(source) or not hasattr(source, "check"):
        return []
    blank: dict[str, list[str]] = {column: [] for column in needed}
    keys = dict[str, str | None]()
    total = 0
    async with aclosing(read(source, name)) as dues:
        async for due in dues:
            if total == most:
                break
            total += 1
            values = columns(due.subject) if due.failure is None else {}
            for column in needed:
                value = values.get(column)
                if isinstance(value, str) and not value.strip():
                    blank[column].append(due.subject.id)
                    keys.setdefault(column, column_key(due.subject, column, value))
    return [*_warnings(needed, blank, keys, total)]


def _warnings(
    needed: Mapping[str, str], blank: Mapping[str, list[str]], keys: Mapping[str, str | None], total: int
) -> Iterator[dict[str, Any]]:
    for column, ids in blank.items():
        if ids:
            rows = f"{len(ids):,} of {total:,} row{'s' * (total != 1)}"
            shown = ", ".join(f"{id_!r:.60}" for id_ in ids[:_SHOWN]) + ", …" * (len(ids) > _SHOWN)
            place = f"{column!r}, which the prompt uses (task.{needed[column]})"
            message = f"{rows} have a blank {place}: {shown}"
            if (key := keys[column]) is not None:
                message += f"; to leave them out: --filter {quote(key + _TEXT)}"
            yield {"kind": BLANK_COLUMN, "column": column, "message": message, "count": len(ids), "ids": ids[:_SHOWN]}
