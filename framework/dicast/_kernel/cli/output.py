"""What commands print: one JSON document, or plain text; errors on stderr."""

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
from ..values.errors import DicastError, RequestError

_ADVICE = {
    errno.ENAMETOOLONG: "; give it a shorter path",
    errno.ENOSPC: "; make room, and run the command again",
    getattr(errno, "EDQUOT", errno.ENOSPC): "; make room, and run the command again",
}

MOST = 2**53
"""The largest number that a command takes: every reader of JSON knows it exactly, and so does a ledger."""

MOST_PROBLEMS = 200
"""The number of problems that are printed as text. A check of a file has 100 problems and their total number."""

MOST_CHARACTERS = 4000
"""The length at which a printed problem is cut."""


@contextmanager
def only_document(as_json: bool) -> Iterator[None]:
    """While the block runs, send what components print to stderr, if stdout is for one JSON document alone.

    That goes for the file descriptor, too, which libraries in C and programs that a component starts write to.
    """
    if not as_json:
        yield
        return
    with redirect_stdout(sys.stderr), ExitStack() as stack:
        with suppress(OSError):  # one of the two is closed
            kept = os.dup(1)
            stack.callback(os.close, kept)
            os.dup2(2, 1)
            stack.callback(os.dup2, kept, 1)
        yield


def print_json(document: object) -> None:
    """Print one JSON document, and nothing else, to stdout."""
    click.echo(
        orjson.dumps(document, default=_plain, option=orjson.OPT_INDENT_2)
    )  # as bytes: they are written as they are


def _plain(value: object) -> Any:
    from ..values.json_form import unstructure  # cattrs takes 30 ms to import, and most documents hold plain data

    return unstructure(value)


def print_error(error: BaseException, code: int, *, as_json: bool) -> None:
    """Say what went wrong, and with a defect of dicast what to report."""
    message = _message(error, code)
    if as_json:
        print_json({"error": {"kind": _kind(error, code), "message": message, "errors": problems_json(error)}})
    else:
        click.echo(message, err=True)


def problems_text(error: RequestError) -> str:
    """Return the problems that *error* carries, one a line, at most :data:`MOST_PROBLEMS`, with the number of others."""
    lines = [_cut(one_line(str(problem))) for problem in error.problems[:MOST_PROBLEMS]]
    if more := len(error.problems) - len(lines):
        lines.append(
            f"… and {more:,} more problems (--json has all)" if more > 1 else "… and 1 more problem (--json has all)"
        )
    return "\n".join(lines)


def _cut(line: str) -> str:
    """Return *line* without its middle if it is too long. The start names the place, the end the reason."""
    half = MOST_CHARACTERS // 2
    return line if len(line) <= 2 * half else f"{line[:half]}… ({len(line):,} characters) …{line[-half:]}"


def problems_json(error: BaseException) -> list[dict[str, Any]]:
    """The problems that *error* carries, as ``check --json`` lists them."""
    names = ("file", "line", "column", "path", "value", "message", "hint")
    problems = error.problems if isinstance(error, RequestError) else ()
    return [{name: _writable(getattr(problem, name)) for name in names} for problem in problems]


def _writable(value: object) -> object:
    """*value*, or how Python writes it where JSON cannot hold it: whatever was wrong with it must not hide the message."""
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
        shown = short_name(name) if error.errno == errno.ENAMETOOLONG else one_line(name)
        return f"{shown}: {error.strerror}{advice}"
    return (
        f"this is a defect in dicast, not in your files: {one_line(f'{type(error).__name__}: {error}')}\n"
        "Please report it with the output of the same command under --traceback, and with: "
        f"dicast {_version()}, Python {platform.python_version()}, {platform.platform()}"
    )


def _version() -> str:
    from importlib.metadata import version

    return version("dicast-kernel")
