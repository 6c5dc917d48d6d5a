"""Check of the data of pipelines that are not run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from ..pipeline.slots import ledger_slot
from ..plan.sections import Pipeline
from ..records.baseline import find_baseline, find_gate_runs, is_file_name
from ..resume.named_runs import LAST
from ..source.blank_columns import blank_columns
from ..source.columns import checked_data
from ..source.source import is_live
from ..stream.opening import open_component
from ..stream.opening_context import opening
from ..timing.event_loop import in_loop
from ..values import RunContext
from ..values.clock import Clock
from ..values.errors import ConfigError, DataError, Problem, RequestError
from ..values.names import path_from_here

_MOST_BYTES = 64 * 2**20
"""Size of the largest data file that is read."""

_SOURCE = "source."
"""Start of the path of a problem in the options of the source."""


def check_data(pipelines: Iterable[Pipeline]) -> list[str]:
    """Look in the data files of *pipelines* for the columns that they name.

    Return a note for each file that is too large to be read here, for data that ``dicast run`` refuses, and for blank texts in a prompt.
    Such data may be right for ``dicast watch``, or be replaced before the run.

    :raises ConfigError: with every missing column of any pipeline.
    """
    problems: dict[Problem, None] = {}
    notes: dict[str, None] = {}
    for pipeline in pipelines:
        path = getattr(pipeline.source and pipeline.source.component, "path", None)
        if not isinstance(path, Path) or not path.is_file():
            continue
        if (size := path.stat().st_size) > _MOST_BYTES:
            notes[f"{path.name} was not read ({size // 2**20:,} MiB); dicast run reads it first"] = None
            continue
        try:
            notes |= dict.fromkeys(f"warning: {warning['message']}" for warning in in_loop(_check_file(pipeline)))
        except DataError as error:
            wrong = [problem for problem in error.problems if (problem.path or "").startswith(_SOURCE)]
            problems |= dict.fromkeys(wrong)
            if others := [problem for problem in error.problems if problem not in wrong]:
                more = f" (1 of {len(others):,} problems)" if len(others) > 1 else ""
                notes[f"dicast run refuses the data: {others[0]}{more}"] = None
        except RequestError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(problems)
    return [*notes]


def check_baselines(pipelines: Sequence[Pipeline]) -> list[str]:
    """Look up the runs that each of *pipelines* is compared with, in its section ``baseline`` and in its gate.

    Return a note for each name that was not looked up, because there is no ledger file yet, and for each missing file: another job may
    write it before the run.

    :raises ConfigError: with every other name that the ledger does not have.
    """
    problems: dict[Problem, None] = {}
    notes: dict[str, None] = {}
    experiments = {pipeline.experiment for pipeline in pipelines}
    for pipeline in pipelines:
        names = {name for _, name in pipeline.gate.baselines()}
        names |= {pipeline.baseline.run} if pipeline.baseline is not None else set()
        names -= {LAST, *experiments}
        path = getattr(ledger_slot(pipeline).component, "path", None)
        if not names or not isinstance(path, Path):
            continue
        if not path.is_file():
            notes |= dict.fromkeys(_unknown_names(pipeline, names))
            continue
        try:
            in_loop(_check_baselines(pipeline, names))
        except RequestError as error:
            for problem in error.problems:
                name = problem.value
                if isinstance(name, str) and is_file_name(name) and not (pipeline.base / name).exists():
                    notes[f"the baseline {name!r} is missing: {problem.message}"] = None
                else:
                    problems[problem] = None
    if problems:
        raise ConfigError(problems)
    return [*notes]


def _unknown_names(pipeline: Pipeline, names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names):
        if (pipeline.base / name).is_file():
            continue
        file = path_from_here(pipeline.base / name)
        place = (
            f"there is no file {file} yet, and dicast run needs it" if is_file_name(name) else "there is no ledger yet"
        )
        yield f"the baseline {name!r} was not looked up: {place}"


async def _check_baselines(pipeline: Pipeline, names: Collection[str]) -> None:
    async with opening(ledger_slot(pipeline).component, None, create=False) as ledger:
        if pipeline.baseline is not None and pipeline.baseline.run in names:
            find_baseline(ledger, pipeline)
        find_gate_runs(
            ledger,
            pipeline,
            experiments=dict.fromkeys({name for _, name in pipeline.gate.baselines()}.difference(names)),
        )


async def _check_file(pipeline: Pipeline) -> list[dict[str, Any]]:
    """Check the data of *pipeline*; return the warnings about it."""
    slot = pipeline.source
    assert slot is not None  # its path was looked up
    async with AsyncExitStack() as stack:
        context = RunContext(Clock().id(), pipeline.name, pipeline.base, trust=pipeline.trust)
        source = await open_component(slot.component, context, stack)
        if is_live(source):
            return []
        # dicast init writes a file whose task is still to be added, and its next step is the check
        await checked_data(source, f"source {slot.name}", pipeline, needs_outputs=False)
        return await blank_columns(source, f"source {slot.name}", pipeline)
