"""The encoding of the text in a file."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

import attrs
import click

from .._kernel.values.errors import ConfigError, DataError, Problem
from ..toolkit.encodings import UTF_8, fitting_encodings, known_encoding, marked_encoding
from ..toolkit.input_file import InputFile


def text_encoding(path: Path, encoding: str | None, *, is_asked: bool, command: str = "init") -> str:
    """Return the encoding of the text in the file at *path*: *encoding*, else that of its byte order mark, else UTF-8.

    With *is_asked* the user of the terminal can confirm a likely encoding for a file that is not UTF-8. *command* is the command in the message.

    :raises DataError: if the file is not UTF-8 and the user names no encoding; the message has the command that reads it.
    """
    if encoding is not None:
        try:
            known_encoding(encoding)
        except ConfigError as error:
            raise ConfigError(attrs.evolve(problem, file=str(path), path=None) for problem in error.problems) from error
        return encoding
    with InputFile.opened(path) as file:
        with file.binary() as stream:
            start = stream.read(64)
        if marked := marked_encoding(start):
            return marked
        if b"\0" in start or start.startswith((b"PK\x03\x04", b"PAR1", b"%PDF")):
            return UTF_8
        first, count = _first_broken(file)
    if first is None:
        return UTF_8
    number, line = first
    (fits, *_) = fitting_encodings(line)
    lines = f"line {number}" if count == 1 else f"{count:,} lines, the first is line {number}"
    if is_asked:
        excerpt = line.decode(fits, errors="replace").strip()[:60]
        if click.confirm(
            f"{path} is not UTF-8 ({lines}). Read it as {fits}? Line {number} is then: {excerpt}",
            default=True,
            err=True,
        ):
            return fits
    message = (
        f"the file is not UTF-8 ({lines}); {fits} might fit: dicast {command} {quote(str(path))} --encoding {fits}"
    )
    raise DataError(Problem(message, str(path)))


def _first_broken(file: InputFile) -> tuple[tuple[int, bytes] | None, int]:
    """Return the first line that is not UTF-8, with its number, and the count of such lines."""
    first, count = None, 0
    for number, line in file.lines():
        if not _is_utf8(line):
            first, count = first or (number, line), count + 1
    return first, count


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
