"""Running programs about subjects, for one run."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, Protocol

import attrs

from dicast import Cost, Execution, Failure, Program, Sandbox, Score, Subject
from dicast.toolkit.json_values import MISSING, locate

from ..commands.discovery import LOOKED_FOR, test_command
from ..commands.starts import Start, in_workspace, starts
from ..commands.words import command_text
from ..workspace.archive import Archive
from ..workspace.cache import Kept
from ..workspace.patches import PatchError, patched
from ..workspace.workspace import Given, Setup, Workspaces, takes_output

COST = Cost(500, "msat")
"""Estimated cost of a run in a sandbox."""

WAITING_SECONDS = 3600
"""How long a program may wait for its turn, where many run."""

SHOWN = 500
"""How many characters of the output's end the details show."""

NO_COMMAND = f"nothing in the workspace says how it is tested (looked for: {LOOKED_FOR}); give the command as 'command'"
"""What is said where no command was given, and none is found."""

_COUNTS = 100_000
_ADVICE = "name another command, or a backend that has it (its mounts, its image)"


class Tested(Setup, Protocol):
    """A metric whose programs are run: :class:`~dicast_sandbox.metrics.metric.SandboxMetric` explains its members."""

    @property
    def command(self) -> str | tuple[str, ...] | None:
        """What is run; None where the workspace is to say it."""
        ...

    @property
    def commands(self) -> tuple[str | tuple[str, ...], ...]:
        """All commands that have to start."""
        ...

    @property
    def field(self) -> str | None:
        """The only place in the output that is judged."""
        ...

    @property
    def output_as(self) -> Literal["file", "patch"]:
        """What the output is to the workspace."""
        ...

    @property
    def backend(self) -> Sandbox:
        """The sandbox."""
        ...

    def refused(self, subject: Subject) -> Failure | None:
        """Why nothing is run about *subject*."""
        ...

    def program(self, given: Given, archive: Archive, written: Mapping[str, bytes]) -> Program:
        """What is run about an output."""
        ...

    async def judge(self, trial: Trial) -> Score | Failure:
        """The score of what came of a program."""
        ...


@attrs.frozen
class Trial:
    """A program that has run about *subject*, in what became of the workspace that was *given*."""

    bench: Bench
    subject: Subject
    given: Given
    execution: Execution

    async def without_candidate(
        self, program: Callable[[Given], Program], read: Callable[[Execution], int | None]
    ) -> int | Failure | None:
        """What *read* finds when *program* runs where nothing is of the candidate; once in a run for equal workspaces."""
        bench = self.bench
        given = await bench.without_output(self.subject, self.given)
        if isinstance(given, Failure):
            return given

        async def run() -> int | Failure | None:
            execution = await bench.metric.backend.execute(program(given))
            return execution if isinstance(execution, Failure) else read(execution)

        return await bench.counts.get(given.key, run)

    def signals(self) -> dict[str, object]:
        """What is said of every run."""
        execution, commit = self.execution, self.given.archive.key
        told: dict[str, object] = {"exit_code": execution.exit, "seconds": round(execution.seconds, 3)}
        told |= {} if execution.limit is None else {"limit": execution.limit}
        return told | ({"commit": commit} if self.bench.metric.repository else {})

    def details(self, more: str = "") -> str:
        """The command with its exit code, the limit that was struck, and the end of the output."""
        execution = self.execution
        limit = f", struck its limit on {execution.limit.replace('_', ' ')}" if execution.limit else ""
        tail = execution.output.strip()[-SHOWN:]
        line = f"{command_text(self.bench.metric.command or ())} (exit {execution.exit}){limit}{more}"
        return f"{line}\n{tail}" if tail else line


@attrs.frozen
class Bench:
    """Runs the programs of *metric*, and has it judge what comes of them."""

    metric: Tested
    workspaces: Workspaces = attrs.Factory(lambda self: Workspaces(self.metric), takes_self=True)
    counts: Kept[int | Failure | None] = attrs.Factory(lambda: Kept(_COUNTS))
    lacking: Kept[str | Failure | None] = attrs.Factory(lambda: Kept(_COUNTS))

    @property
    def default_timeout(self) -> float:
        """How many seconds one call may take: its turn has to come first, and that of the tests without the candidate."""
        return WAITING_SECONDS + 2 * self.metric.limits.wall

    def estimate(self, subject: Subject) -> Cost:
        """What one run costs."""
        return COST

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the program about *subject*."""
        if subject.output is None:
            return Failure("missing_input", f"{subject.kind} {subject.id} has no output to run")
        output = _output(subject, self.metric.field)
        if output is None:
            return Score(0.0, details="no output", signals={"output": False})
        refusal = self.metric.refused(subject)
        given = refusal or await self.workspaces.given(subject, output)
        if isinstance(given, Failure):
            return given
        known = await self._commanded(subject, given)
        return known if isinstance(known, Failure) else await known.judged(subject, given, output)

    async def _commanded(self, subject: Subject, given: Given) -> Bench | Failure:
        """The same with a command: that which the workspace is tested by, where none was given."""
        if self.metric.command is not None:
            return self
        before = await self.without_output(subject, given)
        if isinstance(before, Failure):
            return before
        found = test_command(before.names, before.file)
        if found is None:
            return Failure("missing_input", f"{subject.kind} {subject.id}: {NO_COMMAND}")
        metric = copy.copy(self.metric)
        object.__setattr__(metric, "command", found)  # frozen, and checked already
        return attrs.evolve(self, metric=metric)

    async def without_output(self, subject: Subject, given: Given) -> Given | Failure:
        """What of *given* is there whatever the candidate is."""
        return await self.workspaces.given(subject, "") if takes_output(self.metric.files) else given

    async def judged(self, subject: Subject, given: Given, output: str) -> Score | Failure:
        """What comes of the *output* of *subject* in what is *given*."""
        archive, written = given.archive, {self.metric.output_file: output.encode(errors="surrogatepass")}
        if self.metric.output_as == "patch":
            try:
                archive, written = await asyncio.to_thread(patched, archive, output), {}
            except PatchError as error:
                said = str(error).encode(errors="backslashreplace").decode()  # it may name a file whose name is no text
                return Score(0.0, details=said, signals={"patched": False})
        execution = await self.metric.backend.execute(self.metric.program(given, archive, written))
        if isinstance(execution, Failure):
            return execution
        if execution.exit != 0 and execution.struck is None:
            before = await self.without_output(subject, given)
            lacking = before if isinstance(before, Failure) else await self._lacking(before)
            if lacking is not None:
                return lacking
        return await self.metric.judge(Trial(self, subject, given, execution))

    async def _lacking(self, given: Given) -> Failure | None:
        """Why no candidate at all could be run in *given*; None where that is not certain."""
        metric = self.metric
        wanted = [(command_text(command), start) for command in metric.commands for start in starts(command, given)]
        for command, start in wanted:
            here = in_workspace(start, given, metric.output_file, patch=metric.output_as == "patch")
            if here is True:
                continue
            lacking = here or await self.lacking.get(start, partial(self._looked_up, start))
            if isinstance(lacking, Failure):
                return lacking
            if lacking:
                return Failure("crashed", f"{command!r} cannot start: {lacking}; {_ADVICE}", cost=COST)
        return None

    async def _looked_up(self, start: Start) -> str | Failure | None:
        execution = await self.metric.backend.execute(start.probe(self.metric.limits))
        return execution if isinstance(execution, Failure) else start.lacking(execution)


def _output(subject: Subject, field: str | None) -> str | None:
    """What is judged, as text; None where the field is missing, or there is no output."""
    found = subject.output if field is None else locate(subject.output, field)
    if found is MISSING or found is None:
        return None
    return found if isinstance(found, str) else json.dumps(found)
