"""Commands as texts, as words, and as they are executed."""

from __future__ import annotations

import re
import shlex

_WORDS = re.compile(r"[\w./-]+")


def command_text(command: str | tuple[str, ...]) -> str:
    """Return *command* as a text."""
    return command if isinstance(command, str) else " ".join(command)


def command_words(command: str | tuple[str, ...]) -> list[str]:
    """Return the words of *command*, without quotes."""
    try:
        return shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError:  # quotes that only a shell understands
        return _WORDS.findall(str(command))


def executed_words(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the words to execute: a text is run by a shell."""
    return ("/bin/sh", "-c", command) if isinstance(command, str) else command
