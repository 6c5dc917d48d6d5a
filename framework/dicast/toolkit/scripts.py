"""The scripts that a command runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path


def scripts(command: str | tuple[str, ...], base: Path) -> dict[str, Path]:
    """Return the files that *command*, started in *base*, runs, by the words that name them.

    For each program it is the first word that names a file: the program's own path, or an argument with the path of a file or the name of
    a Python module. Later arguments are ignored, because they may name outputs of the program.
    """
    commands = _commands(command) if isinstance(command, str) else [list(command)]
    items = [next(_named(words, base), None) for words in commands]
    return dict(item for item in items if item is not None)


def _commands(text: str) -> Iterator[list[str]]:
    """Return the commands in the shell's *text*, as far as it can be parsed."""
    for line in text.replace("\\\n", " ").splitlines():
        parts = shlex.shlex(line, posix=True, punctuation_chars=True)
        parts.whitespace_split = True
        words: list[str] = []
        try:
            for word in parts:
                if set(word) <= set("();|&"):
                    yield words
                    words = []
                else:
                    words.append(word)
        except ValueError:  # quotes that only a shell understands
            return
        yield words


def _named(words: Iterable[str], base: Path) -> Iterator[tuple[str, Path]]:
    before = ""
    for word in words:
        names = [word]
        if before == "-m":
            module = word.replace(".", "/")
            names = [f"{module}.py", module]
        yield from ((word, base / name) for name in names if _is_there(base / name, folder=before == "-m"))
        before = word


def _is_there(path: Path, *, folder: bool) -> bool:
    try:
        return path.is_file() or (folder and path.is_dir())
    except (OSError, ValueError):  # no name of a file: too long, or with a NUL
        return False
