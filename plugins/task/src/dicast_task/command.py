"""The task ``task/command``."""

from __future__ import annotations

import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import attrs

from dicast import Answered, ConfigError, Failure, RunContext, Subject, Within
from dicast.toolkit.command import OutputTooLong, call_command
from dicast.toolkit.scripts import scripts

from .answers import answered, row_json

_STDERR_CHARS = 500


def _check_command(
    task: Command, attribute: attrs.Attribute[str | tuple[str, ...]], command: str | tuple[str, ...]
) -> None:
    if not command or not (command if isinstance(command, str) else command[0]).strip():
        raise ConfigError("the command is empty; write the command to run, as in [python, answer.py]")
    if isinstance(command, tuple) and "/" not in command[0] and shutil.which(command[0]) is None:
        raise ConfigError(f"there is no command {command[0]!r} on the PATH; install it, or write its path")


@attrs.frozen
class Command:
    """Runs a command for each row: the row as JSON on its stdin, the answer on its stdout.

    The command receives one JSON object with the row's columns: ``id``, ``input``, ``output``, ``reference`` and ``session_id``
    if the row has them, and the others by their names. Its stdout is the output, as text without the last line
    break, unless it is a JSON object with ``content`` (text, or a JSON value that becomes text; it may have ``metrics``
    too), or with ``responses``, which are such objects by criterion. An empty answer is a failure, and so is an
    exit code other than 0; the failure has the end of its stderr. The command starts in the pipeline file's folder
    with dicast's own rights and environment, so it must be trusted. Processes that it leaves running are
    ended a second later. When its time is over (the slot key
    ``timeout``, 600 s by default), it is ended with all its processes.

    A script in the command (``python answer.py``, ``./answer.sh``, ``python -m answer``) is part of the task: a changed script is
    another task in comparisons of runs. Files that the script reads or imports are unknown: add their version to the words.

    :param command: a text for the shell, or a list of words.
    :param max_output_bytes: the longest answer.
    :param security_level: a text that is added to every record, such as ``official``.
    :param determinism_level: likewise, such as ``high``.
    """

    name = "command"

    command: str | tuple[str, ...] = attrs.field(validator=_check_command)
    max_output_bytes: int = attrs.field(default=10_000_000, validator=Within(1, inf, "1 or more"))
    security_level: str | None = attrs.field(default=None, metadata={"counts": False})
    determinism_level: str | None = attrs.field(default=None, metadata={"counts": False})

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Live]:
        """Ready for one run."""
        yield Live(self, run.base)

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the scripts in the command."""
        return scripts(self.command, base)

    async def produce(self, subject: Subject) -> Answered | Failure:
        """Run the command about *subject* in the current folder, outside of any run."""
        return await Live(self, Path()).produce(subject)


@attrs.frozen
class Live:
    """Runs the command of *options* in *folder*."""

    options: Command
    folder: Path

    async def produce(self, subject: Subject) -> Answered | Failure:
        """Run the command about *subject*."""
        command, start = self.options.command, time.monotonic()
        words = ("/bin/sh", "-c", command) if isinstance(command, str) else command
        try:
            most = self.options.max_output_bytes
            end = await call_command(words, row_json(subject), folder=self.folder, most=most)
        except OSError as error:
            return Failure("crashed", f"{words[0]} could not be started: {error.strerror or error}")
        except OutputTooLong as error:
            return Failure("judge_output_invalid", str(error))
        if end.code:
            stderr = end.errors.decode(errors="replace").strip()[-_STDERR_CHARS:]
            return Failure("crashed", f"{end.how}: {stderr}" if stderr else end.how)
        return answered(subject, end.output, time.monotonic() - start)
