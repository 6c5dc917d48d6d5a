"""Columns that a pipeline needs and its data lack, found before the run starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import aclosing

from ..asking.record import columns
from ..classes import evolve
from ..contract.protocols import Source
from ..plan.sections import Pipeline, Slot
from ..values import Subject
from ..values.errors import ConfigError, DataError, Problem
from ..values.names import nearest
from .source import data_digest, is_live, read

_MOST_NAMES = 10
"""Most columns in a message."""

_FIELDS = "fields."
"""Prefix of the path of a source's option that names columns."""


async def checked_data(source: Source, name: str, pipeline: Pipeline, *, needs_outputs: bool = True) -> dict[str, str]:
    """Return the digest of the input of *source* under the key ``data``, after a check of its rows and of the columns that *pipeline* needs.

    :raises RequestError: naming every invalid line, or every missing column with its place in the pipeline file.
    """
    try:
        digest = await data_digest(source, name, pipeline, needs_outputs=needs_outputs)
    except DataError as error:
        raise _at_options(pipeline, error) from error
    await _refuse_missing_columns(source, name, pipeline)
    return digest


async def _refuse_missing_columns(source: Source, name: str, pipeline: Pipeline) -> None:
    """Refuse templates and options that name columns without a value in any subject of *source*.

    A source that can be read only once, or waits for subjects, is not read. Other sources are read until each column was found.

    :raises ConfigError: naming each column with its place in the pipeline file.
    """
    needed = [*_needed(pipeline)]
    missing = {column for _, names in needed for column in names}
    if not missing or is_live(source) or not hasattr(source, "check"):
        return
    present: dict[str, None] = {}
    async with aclosing(read(source, name)) as dues:
        async for due in dues:
            if _has_all(due.subject, missing, present):
                break
    if missing and present:  # without subjects the run is refused with a message of its own
        raise ConfigError(
            _problem(pipeline, slot, column, option, [*present])
            for slot, names in needed
            for column, option in names.items()
            if column in missing
        )


def _has_all(subject: Subject, missing: set[str], present: dict[str, None]) -> bool:
    """Move the columns that *subject* has from *missing* to *present*; return True if none is missing."""
    names = [name for name, value in columns(subject).items() if value is not None]
    present.update(dict.fromkeys(names))
    missing.difference_update(names)
    return not missing


def _needed(pipeline: Pipeline) -> Iterator[tuple[Slot, Mapping[str, str]]]:
    """Yield each slot with the columns that its component needs from the source, by the option that names them."""
    for slot in (pipeline.task, *pipeline.metrics, *pipeline.judges, *pipeline.extractors):
        needs = getattr(slot and slot.component, "needed_columns", None)
        if slot is not None and callable(needs):
            produced = set() if slot is pipeline.task or pipeline.task is None else {"output"}
            yield slot, {column: option for column, option in needs().items() if column not in produced}


def _problem(pipeline: Pipeline, slot: Slot, name: str, option: str, seen: list[str]) -> Problem:
    names = ", ".join(seen[:_MOST_NAMES]) + ", …" * (len(seen) > _MOST_NAMES)
    file, line, column = _place(pipeline, slot, option)
    message = f"no row has a value for {name!r}; the rows have {names}"
    return Problem(message, file, line, column, f"{slot.path}.{option}", name, nearest(name, seen))


def _place(pipeline: Pipeline, slot: Slot, option: str) -> tuple[str, int | None, int | None]:
    """Return the file, the line and the column of an option of *slot*."""
    return pipeline.place((*slot.address, slot.name, *option.split(".")))


def _at_options(pipeline: Pipeline, error: DataError) -> DataError:
    """Return *error* with the place in the pipeline file of each column that ``fields`` of the source names and the data lack."""
    slot, problems = pipeline.source, []
    for problem in error.problems:
        if slot is None or not (problem.path or "").startswith(_FIELDS):
            problems.append(problem)
            continue
        file, line, column = _place(pipeline, slot, str(problem.path))
        name = str(problem.file).removeprefix(f"{pipeline.base}/")
        data = name if problem.line is None else f"{name}:{problem.line}"
        message, path = f"{data}: {problem.message}", f"{slot.path}.{problem.path}"
        problems.append(evolve(problem, message=message, file=file, line=line, column=column, path=path))
    return type(error)(problems)
