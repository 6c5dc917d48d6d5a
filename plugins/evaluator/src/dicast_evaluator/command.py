"""The metric ``evaluator/command``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from dicast import Failure, Metric, RawScore, RunContext, Subject, Within
from dicast.toolkit.command import CommandEnd, OutputTooLong, call_command
from dicast.toolkit.scripts import scripts

from .options import GRACE_SECONDS, EvaluatorOptions, check_env, command_words
from .payload import environment, of_subject
from .preflight import check_command
from .result import answer, excerpt

_EXCERPT_CHARS = 500


@attrs.frozen(kw_only=True)
class Command(EvaluatorOptions):
    """Score with a command in any language: the payload as JSON on its stdin, ``{"score": …}`` on its stdout.

    The payload is version 2 of the evaluator protocol: the candidate is the row's output, the example is the row without it.
    All keys of the answer but ``score`` are kept as signals, ``reasoning`` as the score's details. A command that is missing, ends with a
    non-zero exit code, takes too long or gives an invalid answer is a Failure; with the slot key ``on_failure: zero`` it scores 0, as
    in version 1 of the protocol. After the time limit, dicast ends the command and every process it started.

    Before judging starts, dicast sends it one preflight candidate.

    :param command: a list of words, or a text that is split like a shell's and run without a shell.
    :param cwd: the folder to start in; the pipeline file's by default.
    :param env: variables in addition to dicast's own environment.
    :param timeout: time limit of one answer in seconds.
    :param task_model: the model whose work is judged: in the payload, and in the variables ``OPTIMIZE_ANYTHING_TASK_MODEL`` and
        ``DICAST_TASK_MODEL``.
    :param score_range: ``unit``: scores are in [0, 1]. ``any``: any finite numbers. The slot key ``range`` maps them to [0, 1]; without it they stay raw.
    :param preflight: whether it is tested before judging starts.
    :param max_output_bytes: the longest answer in bytes.
    """

    name = "command"

    command: str | tuple[str, ...] = attrs.field(kw_only=False)
    cwd: Path | None = None
    env: Mapping[str, str] = attrs.field(factory=dict, validator=check_env)
    max_output_bytes: int = attrs.field(default=10_000_000, validator=Within(1, 2**40, "1 or more"))

    def __attrs_post_init__(self) -> None:
        command_words(self.command)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """Yield the evaluator for one run, after the preflight."""
        live = CommandEvaluator(self, run.base)
        if self.preflight:
            await check_command(live.words, live.folder, live.ask, self.task_model, self.score_range)
        yield live

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the script named in the command."""
        return scripts(command_words(self.command), self.cwd or base)

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Score *subject* in the current folder, outside of any run."""
        return await CommandEvaluator(self, Path()).score(subject)


class CommandEvaluator:
    """Live object that runs the command of *options*, with folders relative to *base*."""

    def __init__(self, options: Command, base: Path) -> None:
        self._options = options
        self.words = command_words(options.command)
        self.folder = base if options.cwd is None else options.cwd
        self.default_timeout = options.timeout + GRACE_SECONDS
        self._env = {**options.env, **environment(options.task_model)}

    async def ask(self, payload: bytes, seconds: float) -> CommandEnd:
        """Run the command on *payload* and return its end.

        :raises OSError: when it cannot be started.
        :raises TimeoutError: after *seconds*.
        """
        async with asyncio.timeout(seconds):
            return await call_command(
                self.words, payload, folder=self.folder, env=self._env, most=self._options.max_output_bytes
            )

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Score *subject*."""
        try:
            end = await self.ask(of_subject(subject, self._options.task_model), self._options.timeout)
        except TimeoutError:
            return Failure("timeout", f"Command timed out after {self._options.timeout:g}s", retryable=True)
        except FileNotFoundError:
            if not self.folder.is_dir():
                return Failure("crashed", f"Command failed to start: there is no folder {self.folder}")
            return Failure("crashed", f"Command executable not found: {self.words[0]}")
        except OSError as error:
            return Failure("crashed", f"Command failed to start: {error.strerror or error}")
        except OutputTooLong as error:
            return Failure("judge_output_invalid", f"Command output is too long: {error} (max_output_bytes)")
        if end.code:
            errors = excerpt(end.errors, _EXCERPT_CHARS)
            return Failure("crashed", f"Command exited with code {end.code}" + (f": {errors}" if errors else ""))
        return answer(end.output, self._options.score_range, "Command output")
