"""Exceptions of a plugin's code: their distinction from exceptions that come from outside, and the author's lines for messages."""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from types import FrameType
from typing import Any

_LIBRARIES = frozenset(("dicast", "attr", "attrs", "cattr", "cattrs", "pluggy", "importlib", "click"))
"""Packages between dicast and a plugin: their lines are not the author's."""

_MOST_LISTED = 12
"""The most plugins that a message lists."""


def author_place(error: BaseException, package: str = "") -> str:
    """Return the line of a plugin's code where *error* came from, such as ``acme_judges/tone.py:12``; empty if there is none.

    :param package: the plugin's package or a module in it: its lines win over lines of libraries.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_below_path(error.filename)}:{error.lineno}"
    frames = list(_frames(error))
    lines = [place for module, place in frames if _root(module) == _root(package)]
    return (lines or [place for _, place in frames] or [""])[-1]


def frame_place(frame: FrameType | None, package: str) -> str:
    """Return the innermost line of *package* below *frame*, the innermost frame of a thread; empty if there is none."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        if _root(module) == _root(package):
            return f"{_file(module, frame.f_code.co_filename)}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _frames(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield the module and the place of each line of *error* that is neither dicast's nor generated."""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
        if _root(module) not in _LIBRARIES and not file.startswith("<"):
            yield module, f"{_file(module, file)}:{line}"


def _root(module: str) -> str:
    return module.partition(".")[0]


def place_of(definition: Any) -> str:
    """Return the file and line of a class, a function or a method of a plugin; empty if they are unknown."""
    if isinstance(definition, type):
        definition = function_of(definition) or definition
    definition = inspect.unwrap(getattr(definition, "__func__", definition))
    code = getattr(definition, "__code__", None)
    if code is not None:
        return f"{_file(definition.__module__, code.co_filename)}:{code.co_firstlineno}"
    try:
        file, line = inspect.getsourcefile(definition), inspect.getsourcelines(definition)[1]
    except (OSError, TypeError):  # no source, or an object that has none
        return ""
    return f"{_file(definition.__module__, file or '')}:{line}"


def function_of(cls: type[Any]) -> Any:
    """Return the function that a decorator made into the component *cls*, or None."""
    functions = (getattr(method, "__wrapped__", None) for method in vars(cls).values())
    return next((f for f in functions if f is not None and f.__qualname__ == cls.__qualname__), None)


def in_brackets(place: str) -> str:
    """Return *place* for the end of a message; empty if it is unknown."""
    return f" ({place})" if place else ""


def listed_plugins(names: Sequence[str]) -> str:
    """Return *names* as a list; if they are many, their number and the command that lists them."""
    return ", ".join(names) or "none" if len(names) <= _MOST_LISTED else f"{len(names)}, see: dicast plugins"


def describe_error(error: BaseException, package: str = "") -> str:
    """Return the type, the text and the author's line of *error*."""
    text = error.msg if isinstance(error, SyntaxError) else error_text(error)
    return f"{type(error).__name__}: {text}{in_brackets(author_place(error, package))}"


def error_text(error: BaseException) -> str:
    """Return the text of *error*, without the number of a system error."""
    try:
        return str(error).removeprefix(f"[Errno {getattr(error, 'errno', None)}] ")
    except Exception:  # the border: the text of an exception is code of a plugin too
        return "(its message cannot be shown)"


def _file(module: str, file: str) -> str:
    """Return *file* from the folder of the top-level package of *module*, so that no message has a path of the machine."""
    parts = PurePath(file).parts
    depth = len(module.split(".")) + (parts[-1:] == ("__init__.py",)) if module != "__main__" else 1
    return "/".join(parts[-depth:])


def _below_path(file: str) -> str:
    """Return *file* below the folder of the import path that has it; its name alone if no folder has it."""
    folders = [Path(folder or os.curdir).resolve() for folder in sys.path]
    path = Path(file).resolve()
    return min((path.relative_to(f).as_posix() for f in folders if path.is_relative_to(f)), key=len, default=path.name)


def raise_interruption(error: BaseException) -> None:
    """Raise KeyboardInterrupt if one caused *error*: Python before 3.12 wraps what ``__set_name__`` raises, and so do libraries.

    :raises KeyboardInterrupt: if a cause of *error* is one.
    """
    if is_interruption(error):
        raise KeyboardInterrupt from error


def is_interruption(error: BaseException | None) -> bool:
    """Return whether *error* or one of its causes is a KeyboardInterrupt."""
    seen = set[int]()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__
    return False


def is_plugins_own(error: BaseException) -> bool:
    """Return whether a plugin's code raised *error* itself; ``SystemExit`` and ``GeneratorExit`` count, and ``CancelledError`` for its own tasks.

    The user's interrupt, the cancellation of this task and the end of an abandoned coroutine come from outside.
    """
    import asyncio  # 30 ms, which a list of plugins does not need

    if isinstance(error, KeyboardInterrupt):
        return False
    if not isinstance(error, asyncio.CancelledError | GeneratorExit):
        return True
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs, so a coroutine is being closed
        return False
    return task is not None and not (isinstance(error, asyncio.CancelledError) and task.cancelling())
