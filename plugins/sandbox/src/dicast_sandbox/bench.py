"""What the metrics share: the program that an output is tested by, and running it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import attrs

from dicast import ConfigError, Cost, Execution, Failure, Limits, Program, Sandbox, Score, Subject

from .inside import CALLED, CALLING, text
from .profiles import limits
from .workspace import Workspace, is_inside

Mode = Literal["shared", "isolated"]
Judged = Callable[[Execution, Subject], Score | Failure]
Refused = Callable[[Subject], Failure | None]

COST = Cost(500, "msat")
"""What a run in a sandbox is reckoned at (document 003)."""

FORGEABLE_CONFIDENCE = 0.5
"""How sure a score is at most that the candidate could have made itself: it ran in one process with what tests it."""

WAITING_SECONDS = 3600
"""How long a program may wait for its turn, where many run."""

SHOWN = 500
"""How many characters of the output's end the details show."""

_SERVER = ".dicast/candidate.py"
_VALUES = ".dicast/candidate_values.py"


@attrs.frozen
class Bench:
    """A metric's options, made ready."""

    command: tuple[str, ...]
    workspace: Workspace
    limits: Limits
    peer: tuple[str, ...] | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)
    collect: str | None = None

    def program(self, subject: Subject) -> Program | Score | Failure:
        """What is run about *subject*: 0 where it has no output."""
        output = self.workspace.output(subject)
        if output is None:
            return Score(0.0, details="no output", signals={"output": False})
        files = self.workspace.written(subject, output)
        if isinstance(files, Failure):
            return files
        written = {self.workspace.output_file: output.encode(errors="surrogatepass")}
        peer = None
        if self.peer is not None:
            peer = Program(self.peer, self.limits, {**written, _SERVER: text(CALLED)})
            written = {self.workspace.output_file: text(CALLING), _VALUES: text(CALLED)}
        return Program(
            self.command,
            self.limits,
            {**files, **written},
            self.workspace.archive,
            self.environment,
            self.collect,
            peer,
        )


@attrs.frozen
class Live:
    """Runs programs in *sandbox*, and scores what comes of them; *refused* says why nothing is run about a subject."""

    bench: Bench
    sandbox: Sandbox
    judged: Judged
    refused: Refused | None = attrs.field(default=None)

    @property
    def default_timeout(self) -> float:
        """How many seconds one call may take: its turn has to come first."""
        return WAITING_SECONDS + self.bench.limits.wall

    def estimate(self, subject: Subject) -> Cost:
        """What one run costs."""
        return COST

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the program about *subject*."""
        refusal = None if self.refused is None else self.refused(subject)
        program = refusal or self.bench.program(subject)
        if not isinstance(program, Program):
            return program
        execution = await self.sandbox.execute(program)
        return execution if isinstance(execution, Failure) else self.judged(execution, subject)


def bench(metric: Any, **more: Any) -> Bench:
    """The bench of *metric*, a component with the options that all of them have."""
    files = Workspace(f"sandbox/{metric.name}", metric.files, metric.template, metric.output_file, metric.field)
    return Bench(words(metric.command), files, limits(metric.profile, metric.timeout), **more)


@asynccontextmanager
async def opened(metric: Any, made: Bench, judged: Judged, refused: Refused | None = None) -> AsyncIterator[Live]:
    """The live object of *metric* for one run."""
    yield Live(made, metric.backend, judged, refused)


def words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """What is executed: a text by a shell."""
    return ("/bin/sh", "-c", command) if isinstance(command, str) else command


def shown(command: str | tuple[str, ...]) -> str:
    """*command* for a reader."""
    return command if isinstance(command, str) else " ".join(command)


def check(metric: Any) -> None:
    """Check the options that all metrics have, and that the sandbox works here.

    :raises ConfigError: with what is wrong.
    """
    if not metric.command:
        raise ConfigError("command is empty")
    if metric.timeout is not None and metric.timeout <= 0:
        raise ConfigError(f"timeout is more than 0 seconds, not {metric.timeout:g}")
    names = [metric.output_file, *(metric.files if isinstance(metric.files, Mapping) else ())]
    for name in names:
        if not is_inside(name):
            raise ConfigError(f"{name!r} is not the name of a file in the workspace: relative, and without '..'")
    if getattr(metric.backend, "unsafe", False) and not metric.unsafe:
        raise ConfigError(
            "sandbox/none runs untrusted output with all your rights; name another backend, or, if you would run it yourself, "
            "say so with unsafe: true"
        )
    tried = getattr(metric.backend, "check", None)
    if tried is not None:
        tried()


def evidence(execution: Execution) -> dict[str, object]:
    """What the signals say of every run."""
    signals: dict[str, object] = {"exit_code": execution.exit, "seconds": round(execution.seconds, 3)}
    return signals if execution.limit is None else {**signals, "limit": execution.limit}


def told(command: str | tuple[str, ...], execution: Execution, more: str = "") -> str:
    """The details: the command with its exit code, the limit that was struck, and the end of the output."""
    limit = f", struck its limit on {execution.limit.replace('_', ' ')}" if execution.limit else ""
    tail = execution.output.strip()[-SHOWN:]
    line = f"{shown(command)} (exit {execution.exit}){limit}{more}"
    return f"{line}\n{tail}" if tail else line


def peer(metric: Any) -> tuple[str, ...] | None:
    """What runs the candidate in a sandbox of its own; None where it shares the tests'.

    :raises ConfigError: when the tests would have the candidate's code with them, or there is no way to call it.
    """
    if metric.mode == "shared":
        if metric.candidate is not None:
            raise ConfigError("candidate belongs to mode: isolated")
        return None
    if Workspace("", metric.files, None, "", None).takes_output():
        raise ConfigError("mode: isolated keeps the output out of the tests' sandbox, and one of the files contains it")
    if metric.candidate is not None:
        return words(metric.candidate)
    if Path(metric.output_file).suffix != ".py":
        raise ConfigError(
            f"mode: isolated calls Python functions in output_file, and {metric.output_file!r} is no Python file: "
            "give the command that runs the candidate as 'candidate'"
        )
    return "python3", _SERVER, metric.output_file
