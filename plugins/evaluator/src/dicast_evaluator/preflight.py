"""Test of an evaluator before judging starts. Problems are reported in the protocol's order and words."""

from __future__ import annotations

import logging
import os
import shlex
import shutil
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import orjson

from dicast import ConfigError
from dicast.toolkit.command import CommandEnd, OutputTooLong

from .payload import PREFLIGHT_CANDIDATE, payload
from .result import BadResult, ScoreRange, excerpt, parsed, problem, read

PREFLIGHT_SECONDS = 10.0
_INTERPRETERS = {"bash", "sh", "zsh", "python", "python3", "node", "ruby", "perl"}
_EXCERPT_CHARS = 300

Ask = Callable[[bytes, float], Awaitable[CommandEnd]]


def preflight_payload(task_model: str | None) -> dict[str, object]:
    """Return the payload of the preflight."""
    return payload(PREFLIGHT_CANDIDATE, None, task_model)


async def check_command(
    words: Sequence[str], folder: Path, ask: Ask, task_model: str | None, score_range: ScoreRange
) -> None:
    """Test the command *words* in *folder*.

    :raises ConfigError: with the first problem.
    """
    detail = missing(words, folder) or await _answer_problem(ask, task_model, score_range, words)
    if detail:
        raise refused(words, folder, detail)


def refused(words: Sequence[str], folder: Path, detail: str) -> ConfigError:
    """Return the error of a command's preflight."""
    return ConfigError(
        f"evaluator preflight failed for command '{shlex.join(words)}' (cwd: {folder.absolute()}): {detail}"
    )


def missing(words: Sequence[str], folder: Path) -> str | None:
    """Return the missing part of a command: its folder, its executable, or its script; None if all exist."""
    if not folder.exists():
        return f"working directory does not exist: {folder}"
    if not folder.is_dir():
        return f"working directory is not a directory: {folder}"
    program = words[0]
    executable = shutil.which(str(folder / program) if os.sep in program else program)
    if executable is None:
        return f"executable not found: {program}"
    script = words[1] if len(words) > 1 else "-"
    if Path(program).name not in _INTERPRETERS or script.startswith("-"):
        return None
    if not (folder / script).exists():
        return f"script not found: {script}"
    return f"script is a directory: {script}" if (folder / script).is_dir() else None


async def _answer_problem(
    ask: Ask, task_model: str | None, score_range: ScoreRange, words: Sequence[str]
) -> str | None:
    try:
        end = await ask(orjson.dumps(preflight_payload(task_model)), PREFLIGHT_SECONDS)
    except TimeoutError:
        return f"command timed out after {PREFLIGHT_SECONDS:g}s"
    except OSError as error:
        return f"command failed to start: {error.strerror or error}"
    except OutputTooLong as error:
        return f"command output is too long: {error}"
    if end.code:
        errors = excerpt(end.errors, _EXCERPT_CHARS)
        return f"command exited with code {end.code}" + (f": {errors}" if errors else "")
    return answer_problem(end.output, score_range, "command output", "<empty stdout>", shlex.join(words))


def answer_problem(data: bytes, score_range: ScoreRange, what: str, empty: str, who: str) -> str | None:
    """Return the problem with the reply *data* of the evaluator *who*; None for a valid result."""
    try:
        value = parsed(data)
    except ValueError:
        return f"{what} is not valid JSON: {excerpt(data, _EXCERPT_CHARS) or empty}"
    if (message := problem(value, score_range)) is not None:
        return message
    warn_if_coerced(value, score_range, who)
    return None


def warn_if_coerced(value: object, score_range: ScoreRange, who: str) -> None:
    """Log a warning if the score is not a JSON number, which is accepted."""
    try:
        coerced = read(value, score_range).coerced
    except BadResult:
        return
    if coerced:
        logging.getLogger(__name__).warning(
            "evaluator %s answers its score as text or a boolean; it is taken as a number, with coerced: true", who
        )
