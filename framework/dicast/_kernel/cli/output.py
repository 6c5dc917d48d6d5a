"""Output of commands: one JSON document or plain text; errors on stderr."""

from __future__ import annotations

import errno
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import Any

import click
import orjson

from ...toolkit.printable import one_line, short_name
from ...toolkit.terminal import print_wrapped
from ..values.errors import DicastError, RequestError

_ADVICE = {
    errno.ENAMETOOLONG: "; give it a shorter path",
    errno.ENOSPC: "; free some space, and run the command again",
    getattr(errno, "EDQUOT", errno.ENOSPC): "; free some space, and run the command again",
}

MOST = 2**53
"""Largest number that a command accepts. Every JSON reader and every ledger represents it exactly."""

MOST_PROBLEMS = 200
"""Largest number of problems printed as text. The check of one file lists at most 100 problems and their total number."""

MOST_CHARACTERS = 4000
"""Length at which a printed problem is cut."""


@contextmanager
def only_document(as_json: bool) -> Iterator[None]:
    """Send the output of components to stderr while the block runs, if stdout is for one JSON document alone.

    This includes file descriptor 1, which C libraries and child processes write to.
    """
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr), ExitStack() as stack:
        with suppress(OSError):  # stdout or stderr is closed
            stdout_copy = os.dup(1)
            stack.callback(os.close, stdout_copy)
            os.dup2(2, 1)
            stack.callback(os.dup2, stdout_copy, 1)
        yield


def print_json(document: object) -> None:
    """Print one JSON document, and nothing else, to stdout."""
    click.echo(document_bytes(document))  # bytes are written unchanged


def document_bytes(document: object) -> bytes:
    """Return *document* as indented JSON."""
    return orjson.dumps(document, default=_plain, option=orjson.OPT_INDENT_2)


def _plain(value: object) -> Any:
    from ..values.json_form import unstructure  # cattrs takes 30 ms to import, and most documents hold plain data

    return unstructure(value)


def print_error(error: BaseException, code: int, *, as_json: bool) -> None:
    """Print an error; for a defect of dicast, add how to report it."""
    message = _message(error, code)
    if as_json:
        print_json({"error": {"kind": _kind(error, code), "message": message, "errors": problems_json(error)}})
    else:
        print_wrapped(message, err=True)


def problems_text(error: RequestError) -> str:
    """Return the problems of *error*, one per line, at most :data:`MOST_PROBLEMS`, with the number of omitted problems."""
    lines = [_cut(one_line(str(problem))) for problem in error.problems[:MOST_PROBLEMS]]
    if omitted := len(error.problems) - len(lines):
        lines.append(
            f"… and {omitted:,} more problems (--json has all)"
            if omitted > 1
            else "… and 1 more problem (--json has all)"
        )
    return "\n".join(lines)


def _cut(line: str) -> str:
    """Return *line* without its middle if it is too long. Its start names the place, its end the reason."""
    half = MOST_CHARACTERS // 2
    return line if len(line) <= 2 * half else f"{line[:half]}… ({len(line):,} characters) …{line[-half:]}"


def problems_json(error: BaseException) -> list[dict[str, Any]]:
    """Return the problems of *error* as ``check --json`` lists them."""
    names = ("file", "line", "column", "path", "value", "message", "hint")
    problems = error.problems if isinstance(error, RequestError) else ()
    return [{name: _writable(getattr(problem, name)) for name in names} for problem in problems]


def _writable(value: object) -> object:
    """Return *value*, or its ``repr`` if JSON cannot hold it, so that a bad value never hides the message."""
    try:
        orjson.dumps(value)
    except TypeError:
        return repr(value)
    return value


def _kind(error: BaseException, code: int) -> str:
    if code == 70:
        return "defect"
    return "UsageError" if isinstance(error, click.ClickException) else type(error).__name__


def _message(error: BaseException, code: int) -> str:
    if isinstance(error, click.UsageError) and error.ctx is not None and "--help" not in error.format_message():
        return f"{one_line(error.format_message())} ({error.ctx.command_path} --help)"
    if isinstance(error, click.ClickException):
        return one_line(error.format_message())
    if isinstance(error, RequestError):
        return problems_text(error)
    if isinstance(error, DicastError):
        return one_line(str(error))
    if code == 130:
        return "interrupted"
    if code == 2 and isinstance(error, OSError):
        advice = _ADVICE.get(error.errno or 0, "")
        name = os.fsdecode(error.filename)
        path = short_name(name) if error.errno == errno.ENAMETOOLONG else one_line(name)
        return f"{path}: {error.strerror}{advice}"
    return (
        f"this is a defect in dicast, not in your files: {one_line(f'{type(error).__name__}: {error}')}\n"
        "Please report it with the output of the same command under --traceback, and with: "
        f"dicast {_version()}, Python {platform.python_version()}, {platform.platform()}"
    )


def _version() -> str:
    from importlib.metadata import version

    return version("dicast-kernel")
