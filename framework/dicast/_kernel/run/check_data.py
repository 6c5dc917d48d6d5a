"""Check of the data of pipelines that are not run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from ..pipeline.slots import ledger_slot
from ..plan.sections import Pipeline
from ..records.baseline import find_baseline
from ..resume.named_runs import LAST
from ..source.columns import checked_data
from ..source.source import is_live
from ..stream.opening import open_component
from ..stream.opening_context import opening
from ..timing.event_loop import in_loop
from ..values import RunContext
from ..values.clock import Clock
from ..values.errors import ConfigError, DataError, Problem, RequestError

_MOST_BYTES = 64 * 2**20
"""Size of the largest data file that is read."""

_SOURCE = "source."
"""Start of the path of a problem in the options of the source."""


def check_data(pipelines: Iterable[Pipeline]) -> list[str]:
    """Look in the data files of *pipelines* for the columns that they name.

    Return a note for each file that is too large to be read here, and for data that ``dicast run`` refuses.
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
            in_loop(_check_file(pipeline))
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
    """Look up the run that each of *pipelines* is compared with; return a note for each that has no ledger file yet.

    :raises ConfigError: with every name that the ledger does not have.
    """
    problems: dict[Problem, None] = {}
    notes: dict[str, None] = {}
    experiments = {pipeline.experiment for pipeline in pipelines}
    for pipeline in pipelines:
        wanted = None if pipeline.baseline is None else pipeline.baseline.run
        path = getattr(ledger_slot(pipeline).component, "path", None)
        if wanted in (None, LAST, *experiments) or not isinstance(path, Path):
            continue
        if not path.is_file():
            is_known = (pipeline.base / str(wanted)).is_file()
            notes |= {} if is_known else {f"the baseline {wanted!r} was not looked up: there is no ledger yet": None}
            continue
        try:
            in_loop(_check_baseline(pipeline))
        except RequestError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise ConfigError(problems)
    return [*notes]


async def _check_baseline(pipeline: Pipeline) -> None:
    async with opening(ledger_slot(pipeline).component, None, create=False) as ledger:
        find_baseline(ledger, pipeline)


async def _check_file(pipeline: Pipeline) -> None:
    slot = pipeline.source
    assert slot is not None  # its path was looked up
    async with AsyncExitStack() as stack:
        context = RunContext(Clock().id(), pipeline.name, pipeline.base, trust=pipeline.trust)
        source = await open_component(slot.component, context, stack)
        if not is_live(source):
            # dicast init writes a file whose task is still to be added, and its next step is the check
            await checked_data(source, f"source {slot.name}", pipeline, needs_outputs=False)
