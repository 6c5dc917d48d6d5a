"""Run of a pipeline file over the labeled subjects that its judges have no verdict on."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, DataError, Due, PipelineJudges, RunContext, Slot, Subject, maybe_await
from dicast.commands import run_command

from ..labels.gold import Gold
from ..verdicts.rules import Rules
from ..verdicts.stages import Stage

_JUDGED = (0, 1, 3)
"""Exit codes of a run that has judged: its gate passed, failed or was undecided."""


_PARTS = ("turn", "tool_cycle")


@attrs.frozen
class Only:
    """Source restricted to the subjects with the kinds and ids in *names*, and their parts; a kind of "" matches any kind."""

    source: Any
    names: frozenset[tuple[str, str]]

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[_Chosen]:
        """Open the source."""
        async with AsyncExitStack() as stack:
            opened = getattr(self.source, "open", None)
            live = self.source if opened is None else await stack.enter_async_context(opened(run))
            yield _Chosen(live, self.names)


class _Chosen:
    """Live source of :class:`Only`."""

    def __init__(self, live: Any, names: frozenset[tuple[str, str]]) -> None:
        self._live, self._names = live, names
        self.kinds = tuple(getattr(live, "kinds", ()))

    async def check(self) -> str:
        """Check that the whole source can be read, and return its digest; "" for a source without a check."""
        check = getattr(self._live, "check", None)
        return "" if check is None else str(await maybe_await(check()))

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield the selected subjects."""
        stream = self._live.subjects()
        if hasattr(stream, "__aiter__"):
            async for item in stream:
                if self._is_selected(item):
                    yield item
            return
        for item in stream:
            if self._is_selected(item):
                yield item

    def _is_selected(self, item: Subject | Due) -> bool:
        subject = item.subject if isinstance(item, Due) else item
        names = [(subject.kind, subject.id)]
        if (
            subject.kind in _PARTS
        ):  # a session is judged by the verdicts on its turns, a turn by the verdicts on its tool calls
            names += [("turn", str(subject.parent_id)), ("session", str(subject.session_id))]
        return any(name in self._names or ("", name[1]) in self._names for name in names)


def missing(gold: Gold, stages: Iterable[Stage]) -> frozenset[tuple[str, str]]:
    """Return the labeled subjects that some stage has neither a verdict nor a failure on."""
    stages = list(stages)
    subjects = set()
    for kind, id in gold.subjects:
        for stage in stages:
            has_outcome = any(kind in ("", outcome_kind) for outcome_kind in _outcome_kinds(stage, id))
            if not has_outcome:
                subjects.add((kind, id))
    return frozenset(subjects)


def _outcome_kinds(stage: Stage, id: str) -> set[str]:
    """Return the kinds of the subjects called *id* that have an outcome of the stage."""
    kinds = {kind for kind, _ in stage.outcomes}
    return {kind for kind in kinds if (kind, id) in stage.outcomes}


def judge_missing(
    file: Path,
    judges: PipelineJudges,
    cascade: Slot | None,
    subjects: frozenset[tuple[str, str]],
    rules: Rules,
    overrides: tuple[str, ...],
) -> int:
    """Run *file* over *subjects*, with every stage asked, under the file's budget; return the exit code of the run.

    :raises RequestError: if the request is invalid; nothing was judged then.
    """
    changes = list(overrides)
    if cascade is not None:
        place = f"{cascade.path}.{cascade.name}" if cascade.name not in cascade.path else cascade.path
        changes += [f"{place}.ask_all=true", f"{place}.calibration=null", f"{place}.audit=null"]

    def chosen(source: Any) -> Only:
        if source is None:
            raise ConfigError(f"{file} has no source to read the {len(subjects):,} unjudged labeled subjects from")
        return Only(source, subjects)

    with redirect_stdout(sys.stderr):  # stdout is for the document or text of this command
        code = run_command(file, chosen, overrides=changes, kind="tool")
    if code not in _JUDGED:
        raise DataError(
            f"the labeled subjects could not be judged (exit code {code} of dicast run {file}); nothing was calibrated"
        )
    return code
