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

from ..commands.discovery import SEARCHED_FILES, find_test_command
from ..commands.starts import Start, find_in_workspace, required_starts
from ..commands.words import command_text
from ..workspace.archive import Archive
from ..workspace.cache import Cache
from ..workspace.patches import PatchError, apply_patch
from ..workspace.workspace import Workspace, WorkspaceOptions, Workspaces, takes_output

COST = Cost(500, "msat")
"""Estimated cost of a run in a sandbox."""

WAITING_SECONDS = 3600
"""How long a program may wait for its turn, where many run."""

TAIL_CHARACTERS = 500
"""How many characters of the output's end the details show."""

NO_COMMAND = (
    f"nothing in the workspace says how it is tested (looked for: {SEARCHED_FILES}); give the command as 'command'"
)
"""What is said where no command was given, and none is found."""

_COUNTS = 100_000
_ADVICE = "name another command, or a backend that has it (its mounts, its image)"


class TestedMetric(WorkspaceOptions, Protocol):
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

    def refusal(self, subject: Subject) -> Failure | None:
        """Why nothing is run about *subject*."""
        ...

    def program(self, workspace: Workspace, archive: Archive, written: Mapping[str, bytes]) -> Program:
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
    workspace: Workspace
    execution: Execution

    async def run_without_candidate(
        self, program: Callable[[Workspace], Program], read: Callable[[Execution], int | None]
    ) -> int | Failure | None:
        """What *read* finds when *program* runs where nothing is of the candidate; once in a run for equal workspaces."""
        bench = self.bench
        workspace = await bench.workspace_without_output(self.subject, self.workspace)
        if isinstance(workspace, Failure):
            return workspace

        async def run() -> int | Failure | None:
            execution = await bench.metric.backend.execute(program(workspace))
            return execution if isinstance(execution, Failure) else read(execution)

        return await bench.counts.get(workspace.key, run)

    def signals(self) -> dict[str, object]:
        """What is said of every run."""
        execution, commit = self.execution, self.workspace.archive.key
        signals: dict[str, object] = {"exit_code": execution.exit, "seconds": round(execution.seconds, 3)}
        signals |= {} if execution.limit is None else {"limit": execution.limit}
        return signals | ({"commit": commit} if self.bench.metric.repository else {})

    def details(self, suffix: str = "") -> str:
        """The command with its exit code, the limit that was struck, and the end of the output."""
        execution = self.execution
        limit = f", struck its limit on {execution.limit.replace('_', ' ')}" if execution.limit else ""
        tail = execution.output.strip()[-TAIL_CHARACTERS:]
        line = f"{command_text(self.bench.metric.command or ())} (exit {execution.exit}){limit}{suffix}"
        return f"{line}\n{tail}" if tail else line


@attrs.frozen
class Bench:
    """Runs the programs of *metric*, and has it judge what comes of them."""

    metric: TestedMetric
    workspaces: Workspaces = attrs.Factory(lambda self: Workspaces(self.metric), takes_self=True)
    counts: Cache[int | Failure | None] = attrs.Factory(lambda: Cache(_COUNTS))
    missing_programs: Cache[str | Failure | None] = attrs.Factory(lambda: Cache(_COUNTS))

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
        output = _judged_output(subject, self.metric.field)
        if output is None:
            return Score(0.0, details="no output", signals={"output": False})
        refusal = self.metric.refusal(subject)
        workspace = refusal or await self.workspaces.prepare(subject, output)
        if isinstance(workspace, Failure):
            return workspace
        bench = await self._with_command(subject, workspace)
        return bench if isinstance(bench, Failure) else await bench.judge_output(subject, workspace, output)

    async def _with_command(self, subject: Subject, workspace: Workspace) -> Bench | Failure:
        """The same with a command: that which the workspace is tested by, where none was given."""
        if self.metric.command is not None:
            return self
        before = await self.workspace_without_output(subject, workspace)
        if isinstance(before, Failure):
            return before
        command = find_test_command(before.names, before.file)
        if command is None:
            return Failure("missing_input", f"{subject.kind} {subject.id}: {NO_COMMAND}")
        metric = copy.copy(self.metric)
        object.__setattr__(metric, "command", command)  # frozen, and checked already
        return attrs.evolve(self, metric=metric)

    async def workspace_without_output(self, subject: Subject, workspace: Workspace) -> Workspace | Failure:
        """What of *workspace* is there whatever the candidate is."""
        return await self.workspaces.prepare(subject, "") if takes_output(self.metric.files) else workspace

    async def judge_output(self, subject: Subject, workspace: Workspace, output: str) -> Score | Failure:
        """What comes of the *output* of *subject* in what is *workspace*."""
        archive, written = workspace.archive, {self.metric.output_file: output.encode(errors="surrogatepass")}
        if self.metric.output_as == "patch":
            try:
                archive, written = await asyncio.to_thread(apply_patch, archive, output), {}
            except PatchError as error:
                message = (
                    str(error).encode(errors="backslashreplace").decode()
                )  # it may name a file whose name is no text
                return Score(0.0, details=message, signals={"patched": False})
        execution = await self.metric.backend.execute(self.metric.program(workspace, archive, written))
        if isinstance(execution, Failure):
            return execution
        if execution.exit != 0 and execution.struck is None:
            before = await self.workspace_without_output(subject, workspace)
            problem = before if isinstance(before, Failure) else await self._missing_program(before)
            if problem is not None:
                return problem
        return await self.metric.judge(Trial(self, subject, workspace, execution))

    async def _missing_program(self, workspace: Workspace) -> Failure | None:
        """Why no candidate at all could be run in *workspace*; None where that is not certain."""
        metric = self.metric
        required = [
            (command_text(command), start)
            for command in metric.commands
            for start in required_starts(command, workspace)
        ]
        for command, start in required:
            presence = find_in_workspace(start, workspace, metric.output_file, patch=metric.output_as == "patch")
            if presence is True:
                continue
            problem = presence or await self.missing_programs.get(start, partial(self._look_up, start))
            if isinstance(problem, Failure):
                return problem
            if problem:
                return Failure("crashed", f"{command!r} cannot start: {problem}; {_ADVICE}", cost=COST)
        return None

    async def _look_up(self, start: Start) -> str | Failure | None:
        execution = await self.metric.backend.execute(start.probe(self.metric.limits))
        return execution if isinstance(execution, Failure) else start.missing_text(execution)


def _judged_output(subject: Subject, field: str | None) -> str | None:
    """What is judged, as text; None where the field is missing, or there is no output."""
    output = subject.output if field is None else locate(subject.output, field)
    if output is MISSING or output is None:
        return None
    return output if isinstance(output, str) else json.dumps(output)
