"""Subjects of a pipeline, read and not judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Literal, overload

from ..pipeline.build import load_pipeline
from ..run.plan import lookahead
from ..source.columns import checked_data
from ..source.source import is_live, read
from ..stream.opening import open_component
from ..timing.event_loop import in_loop
from ..values import Due, RunContext, Subject
from ..values.clock import Clock
from ..values.errors import ConfigError
from .runs import as_source


@overload
def subjects(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    dues: Literal[False] = False,
) -> list[Subject]: ...


@overload
def subjects(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    dues: Literal[True],
) -> list[Due]: ...


def subjects(
    pipeline: Path | str | Mapping[str, object],
    *,
    overrides: Mapping[str, object] | Sequence[str] = (),
    dues: bool = False,
) -> list[Subject] | list[Due]:
    """Return the subjects of the source of *pipeline*, in its order, for a program that judges some of them by ``run(…, subjects=…)``.

    :param pipeline: as for :func:`~dicast.run`; no suite.
    :param dues: return each subject as a :class:`~dicast.Due`, which also has the failure of a record that was recorded as failed.
    :raises RequestError: when the pipeline or its data is invalid, or its source is live.
    """
    items = in_loop(_read(as_source(pipeline), overrides))
    return items if dues else [due.subject for due in items]


async def _read(
    pipeline: Path | str | Mapping[str, object], overrides: Mapping[str, object] | Sequence[str]
) -> list[Due]:
    built = load_pipeline(pipeline, overrides)
    if built.source is None:
        raise ConfigError("the pipeline has no source to read subjects from; add the section source")
    context = RunContext(Clock().id(), built.name, built.base, lookahead=lookahead(built))
    async with AsyncExitStack() as stack:
        opened = await open_component(built.source.component, context, stack)
        if is_live(opened):
            raise ConfigError(f"{built.source.name} is a live source: its subjects cannot be listed")
        await checked_data(opened, built.source.name, built)
        return [due async for due in read(opened, built.source.name)]
