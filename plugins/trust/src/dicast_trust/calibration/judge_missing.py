"""Asking the judges about labelled subjects that they have no verdict on: a run of the file over these alone."""

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

_WENT_ON = (0, 1, 3)
"""The exit codes of a run that has judged: its gate passed, failed or was undecided."""


_PARTS = ("turn", "tool_cycle")


@attrs.frozen
class Only:
    """The subjects of the source *whole* with the kinds and ids *wanted*, and what those are made of; a kind of "" is any."""

    whole: Any
    wanted: frozenset[tuple[str, str]]

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[_Chosen]:
        """Open the source."""
        async with AsyncExitStack() as stack:
            opened = getattr(self.whole, "open", None)
            live = self.whole if opened is None else await stack.enter_async_context(opened(run))
            yield _Chosen(live, self.wanted)


class _Chosen:
    """The live source of :class:`Only`."""

    def __init__(self, live: Any, wanted: frozenset[tuple[str, str]]) -> None:
        self._live, self._wanted = live, wanted
        self.kinds = tuple(getattr(live, "kinds", ()))

    async def check(self) -> str:
        """See that all of the source can be read; return its digest."""
        check = getattr(self._live, "check", None)
        return "" if check is None else str(await maybe_await(check()))

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield those that are wanted."""
        found = self._live.subjects()
        if hasattr(found, "__aiter__"):
            async for one in found:
                if self._is_wanted(one):
                    yield one
            return
        for one in found:
            if self._is_wanted(one):
                yield one

    def _is_wanted(self, one: Subject | Due) -> bool:
        subject = one.subject if isinstance(one, Due) else one
        names = [(subject.kind, subject.id)]
        if (
            subject.kind in _PARTS
        ):  # a session is judged by the verdicts on its turns, a turn by those on its calls of tools
            names += [("turn", str(subject.parent_id)), ("session", str(subject.session_id))]
        return any(name in self._wanted or ("", name[1]) in self._wanted for name in names)


def missing(gold: Gold, stages: Iterable[Stage]) -> frozenset[tuple[str, str]]:
    """The labelled subjects that some stage has neither a verdict nor a failure on."""
    stages = list(stages)
    found = set()
    for kind, id in gold.subjects:
        for stage in stages:
            known = any(id == other and kind in ("", of) for of, other in _named(stage, id))
            if not known:
                found.add((kind, id))
    return frozenset(found)


def _named(stage: Stage, id: str) -> list[tuple[str, str]]:
    kinds = {kind for kind, _ in stage.outcomes}
    return [(kind, id) for kind in kinds if (kind, id) in stage.outcomes]


def judge_missing(
    file: Path,
    judges: PipelineJudges,
    cascade: Slot | None,
    wanted: frozenset[tuple[str, str]],
    rules: Rules,
    overrides: tuple[str, ...],
) -> int:
    """Run *file* over the subjects *wanted*, with every stage asked, under the file's budget; return the exit code of that.

    :raises RequestError: when the request is wrong; nothing was judged then.
    """
    asked = list(overrides)
    if cascade is not None:
        place = f"{cascade.path}.{cascade.name}" if cascade.name not in cascade.path else cascade.path
        asked += [f"{place}.ask_all=true", f"{place}.calibration=null", f"{place}.audit=null"]

    def chosen(source: Any) -> Only:
        if source is None:
            raise ConfigError(
                f"{file} has no source to find the {len(wanted):,} labelled subjects in that nobody has judged"
            )
        return Only(source, wanted)

    with redirect_stdout(sys.stderr):  # the command's own document, or text, stands on stdout alone
        code = run_command(file, chosen, overrides=asked, kind="tool")
    if code not in _WENT_ON:
        raise DataError(
            f"the labelled subjects could not be judged (exit code {code} of dicast run {file}); nothing was calibrated"
        )
    return code
