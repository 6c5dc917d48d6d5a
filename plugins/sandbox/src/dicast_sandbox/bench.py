"""Running programs about subjects, for one run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from dicast import MISSING, Cost, Execution, Failure, Program, Score, Subject, locate

from .kept import Kept
from .patches import PatchError, patched
from .workspace import Given, Workspaces, takes_output

if TYPE_CHECKING:
    from .metric import SandboxMetric

COST = Cost(500, "msat")
"""What a run in a sandbox is reckoned at (document 003)."""

WAITING_SECONDS = 3600
"""How long a program may wait for its turn, where many run."""

SHOWN = 500
"""How many characters of the output's end the details show."""

_COUNTS = 100_000


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
        bench, given = self.bench, self.given
        if takes_output(bench.metric.files):
            emptied = await bench.workspaces.given(self.subject, "")
            if isinstance(emptied, Failure):
                return emptied
            given = emptied

        async def run() -> int | Failure | None:
            execution = await bench.metric.backend.execute(program(given))
            return execution if isinstance(execution, Failure) else read(execution)

        return await bench.counts.get(given.key, run)

    def signals(self) -> dict[str, object]:
        """What is said of every run."""
        execution, commit = self.execution, self.given.archive.key
        said: dict[str, object] = {"exit_code": execution.exit, "seconds": round(execution.seconds, 3)}
        said |= {} if execution.limit is None else {"limit": execution.limit}
        return said | ({"commit": commit} if self.bench.metric.repository else {})

    def details(self, more: str = "") -> str:
        """The command with its exit code, the limit that was struck, and the end of the output."""
        execution, command = self.execution, self.bench.metric.command
        limit = f", struck its limit on {execution.limit.replace('_', ' ')}" if execution.limit else ""
        tail = execution.output.strip()[-SHOWN:]
        line = f"{command if isinstance(command, str) else ' '.join(command)} (exit {execution.exit}){limit}{more}"
        return f"{line}\n{tail}" if tail else line


@attrs.frozen
class Bench:
    """Runs the programs of *metric*, and has it judge what comes of them."""

    metric: SandboxMetric
    workspaces: Workspaces = attrs.Factory(lambda self: Workspaces(self.metric), takes_self=True)
    counts: Kept[int | Failure | None] = attrs.Factory(lambda: Kept(_COUNTS))

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
        return await self.metric.judge(Trial(self, subject, given, execution))


def _output(subject: Subject, field: str | None) -> str | None:
    """What is judged, as text; None where the field is missing, or there is no output."""
    found = subject.output if field is None else locate(subject.output, field)
    if found is MISSING or found is None:
        return None
    return found if isinstance(found, str) else json.dumps(found)
