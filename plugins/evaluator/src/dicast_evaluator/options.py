"""Options of all evaluators."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import ClassVar

import attrs

from dicast import ConfigError, Within

from .result import ScoreRange

GRACE_SECONDS = 10.0
"""Seconds that the kernel waits beyond an evaluator's time limit, so that the evaluator's own failure is recorded."""

NO_NUL = "has a NUL character in it, which no command can have"


@attrs.frozen(kw_only=True)
class EvaluatorOptions:
    """Options of every evaluator."""

    name: ClassVar[str]
    tier: ClassVar[str] = "truth"
    keeps_texts: ClassVar[bool] = True

    timeout: float = attrs.field(
        default=30.0,
        validator=Within(0, 1e6, "more than 0 and at most 1e6 seconds", open=True),
        metadata={"counts": False},
    )
    task_model: str | None = None
    score_range: ScoreRange = "unit"
    preflight: bool = attrs.field(default=True, metadata={"counts": False})

    @property
    def needs_range(self) -> bool:
        """True if scores are any numbers, which the slot's ``range`` maps to [0, 1]."""
        return self.score_range == "any"


def command_words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of *command*, a list of words or a text with a shell's quotes.

    :raises ConfigError: when there are none.
    """
    try:
        words = tuple(shlex.split(command)) if isinstance(command, str) else tuple(command)
    except ValueError as error:
        raise ConfigError(f"the command {command!r} cannot be split into words: {error}") from error
    if not words or not words[0].strip():
        raise ConfigError("the command is empty; write a command such as [python, evaluate.py]")
    if any("\0" in word for word in words):
        raise ConfigError(f"the command {NO_NUL}")
    return words


def check_env(component: object, attribute: attrs.Attribute[Mapping[str, str]], env: Mapping[str, str]) -> None:
    """Refuse variables that no process can have."""
    for variable, value in env.items():
        if not variable or "=" in variable or "\0" in variable + value:
            raise ConfigError(f"{variable!r} under env: a variable has a name without '=', and no NUL character")
