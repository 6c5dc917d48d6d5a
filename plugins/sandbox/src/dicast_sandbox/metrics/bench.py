"""Execution of a metric's programs for the subjects of one run."""

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
"""Longest wait of a program for a slot, in seconds."""

TAIL_CHARACTERS = 500
"""Number of characters from the end of the output in the details."""

NO_COMMAND = f"no file in the workspace determines its test command (searched for: {SEARCHED_FILES}); set 'command'"
"""Message if there is no command, and none is detected."""

_COUNTS = 100_000
_ADVICE = "name another command, or a backend that has it (its mounts, its image)"


class TestedMetric(WorkspaceOptions, Protocol):
    """Metric whose programs are run; :class:`~dicast_sandbox.metrics.metric.SandboxMetric` explains its members."""

    @property
    def command(self) -> str | tuple[str, ...] | None:
        """Return the command to run; None if the workspace determines it."""
        ...

    @property
    def commands(self) -> tuple[str | tuple[str, ...], ...]:
        """Return all commands that have to start."""
        ...

    @property
    def field(self) -> str | None:
        """Return the only place in the output that is judged."""
        ...

    @property
    def output_as(self) -> Literal["file", "patch"]:
        """Return the role of the output in the workspace."""
        ...

    @property
    def backend(self) -> Sandbox:
        """Return the sandbox."""
        ...

    def refusal(self, subject: Subject) -> Failure | None:
        """Return the reason for not judging *subject*, or None."""
        ...

    def program(self, workspace: Workspace, archive: Archive, written: Mapping[str, bytes]) -> Program:
        """Return the program that judges an output."""
        ...

    async def judge(self, trial: Trial) -> Score | Failure:
        """Return the score of a program's result."""
        ...


@attrs.frozen
class Trial:
    """Result of a program on *subject*; *workspace* is its workspace without the output."""

    bench: Bench
    subject: Subject
    workspace: Workspace
    execution: Execution

    async def run_without_candidate(
        self, program: Callable[[Workspace], Program], read: Callable[[Execution], int | None]
    ) -> int | Failure | None:
        """Return the count that *read* finds when *program* runs without the candidate; run once for equal workspaces of a run."""
        bench = self.bench
        workspace = await bench.workspace_without_output(self.subject, self.workspace)
        if isinstance(workspace, Failure):
            return workspace

        async def run() -> int | Failure | None:
            execution = await bench.metric.backend.execute(program(workspace))
            return execution if isinstance(execution, Failure) else read(execution)

        return await bench.counts.get(workspace.key, run)

    def signals(self) -> dict[str, object]:
        """Return the signals of every run."""
        execution, commit = self.execution, self.workspace.archive.key
        signals: dict[str, object] = {"exit_code": execution.exit, "seconds": round(execution.seconds, 3)}
        signals |= {} if execution.limit is None else {"limit": execution.limit}
        return signals | ({"commit": commit} if self.bench.metric.repository else {})

    def details(self, suffix: str = "") -> str:
        """Return the command with its exit code, the exceeded limit, and the end of the output."""
        execution = self.execution
        limit = f", exceeded its limit on {execution.limit.replace('_', ' ')}" if execution.limit else ""
        tail = execution.output.strip()[-TAIL_CHARACTERS:]
        line = f"{command_text(self.bench.metric.command or ())} (exit {execution.exit}){limit}{suffix}"
        return f"{line}\n{tail}" if tail else line


@attrs.frozen
class Bench:
    """Runner of the programs of *metric*, which judges their results."""

    metric: TestedMetric
    workspaces: Workspaces = attrs.Factory(lambda self: Workspaces(self.metric), takes_self=True)
    counts: Cache[int | Failure | None] = attrs.Factory(lambda: Cache(_COUNTS))
    missing_programs: Cache[str | Failure | None] = attrs.Factory(lambda: Cache(_COUNTS))

    @property
    def default_timeout(self) -> float:
        """Return the time limit of one call in seconds: the wait for a slot, its run, and the run of the tests without the candidate."""
        return WAITING_SECONDS + 2 * self.metric.limits.wall

    def estimate(self, subject: Subject) -> Cost:
        """Return the estimated cost of one run."""
        return COST

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the program on *subject*, and return its score."""
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
        """Return a bench with a command: this one, or one with the test command that is detected in the workspace."""
        if self.metric.command is not None:
            return self
        before = await self.workspace_without_output(subject, workspace)
        if isinstance(before, Failure):
            return before
        command = find_test_command(before.names, before.file)
        if command is None:
            return Failure("missing_input", f"{subject.kind} {subject.id}: {NO_COMMAND}")
        metric = copy.copy(self.metric)
        object.__setattr__(metric, "command", command)  # the metric is frozen, and the command is checked
        return attrs.evolve(self, metric=metric)

    async def workspace_without_output(self, subject: Subject, workspace: Workspace) -> Workspace | Failure:
        """Return the part of *workspace* that does not depend on the candidate."""
        return await self.workspaces.prepare(subject, "") if takes_output(self.metric.files) else workspace

    async def judge_output(self, subject: Subject, workspace: Workspace, output: str) -> Score | Failure:
        """Run the *output* of *subject* in *workspace*, and return its score."""
        archive, written = workspace.archive, {self.metric.output_file: output.encode(errors="surrogatepass")}
        if self.metric.output_as == "patch":
            try:
                archive, written = await asyncio.to_thread(apply_patch, archive, output), {}
            except PatchError as error:
                # The message may have a file name that is not valid text.
                message = str(error).encode(errors="backslashreplace").decode()
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
        """Return the reason why no candidate at all can run in *workspace*; None if that is not certain."""
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
    """Return the judged output as text; None if the field is missing, or there is no output."""
    output = subject.output if field is None else locate(subject.output, field)
    if output is MISSING or output is None:
        return None
    return output if isinstance(output, str) else json.dumps(output)
