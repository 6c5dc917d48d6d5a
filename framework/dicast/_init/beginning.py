"""The beginning of a file: its first JSON values, the members of an archive, and the encoding of its text."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any, Literal

import attrs
import click
import orjson

from .._kernel.values.errors import ConfigError, DataError, Problem
from ..toolkit.encodings import UTF_8, fitting_encodings, known_encoding, marked_encoding
from ..toolkit.input_file import InputFile
from ..toolkit.scanning import Scanner, TooLong

MOST_RECORDS = 50
"""How many JSON values of a file are looked at."""

_MOST_BYTES = 64 * 2**20
_PIECE = 2**18

Layout = Literal["lines", "array", "document", "other"]


@attrs.frozen
class Beginning:
    """The first *records* of a file: its JSON lines, the items of its array, or its one document; *lines* are its first lines.

    *members* are the names in a zip archive. *start* has the first bytes, without gzip.
    """

    start: bytes
    lines: tuple[bytes, ...] = ()
    layout: Layout = "other"
    records: tuple[object, ...] = ()
    members: tuple[str, ...] = ()

    @property
    def objects(self) -> list[Mapping[str, Any]]:
        """The records that are objects."""
        return [record for record in self.records if isinstance(record, dict)]


def read_beginning(path: Path, encoding: str) -> Beginning:
    """Return the beginning of the file at *path*.

    :raises DataError: if it cannot be opened, or is not in *encoding*.
    """
    with InputFile.opened(path, encoding) as file:
        with file.binary() as stream:
            start = stream.read(64)
        if start.startswith(b"PK\x03\x04"):
            return Beginning(start, members=_members(file))
        if b"\0" in start or (encoding == UTF_8 and marked_encoding(start)):
            return Beginning(start)
        lines = tuple(_first_lines(file))
        layout, records = _records(file, lines)
        return Beginning(start, lines, layout, records)


def _members(file: InputFile) -> tuple[str, ...]:
    try:
        with file.binary() as stream, zipfile.ZipFile(stream) as archive:
            return tuple(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return ()


def _first_lines(file: InputFile) -> Iterator[bytes]:
    for _, line in file.lines():
        if line.strip():
            yield line.strip()
        if _ >= MOST_RECORDS:
            return


def _records(file: InputFile, lines: tuple[bytes, ...]) -> tuple[Layout, tuple[object, ...]]:
    first = lines[0] if lines else b""
    if first[:1] not in (b"{", b"["):
        return "other", ()
    values = [value for line in lines if (value := _parsed(line)) is not None]
    if values and _parsed(first) is not None and (first[:1] == b"{" or len(lines) > 1):
        is_document = len(lines) == 1
        return ("document" if is_document else "lines"), tuple(values)
    if first[:1] == b"[":
        return "array", tuple(_items(file))
    with file.binary() as stream:
        document = _parsed(stream.read(_MOST_BYTES))
    return ("other", ()) if document is None else ("document", (document,))


def _items(file: InputFile) -> Iterator[object]:
    """Yield the first items of a JSON array."""
    with file.binary() as stream:
        scanner = Scanner(iter(lambda: stream.read(_PIECE), b""), _MOST_BYTES)
        scanner.peek()
        scanner.skip(b"[")
        try:
            for _ in range(MOST_RECORDS):
                value = _parsed(scanner.value()) if scanner.peek() not in (b"]", b"") else None
                if value is None:
                    return
                yield value
                scanner.peek()
                scanner.skip(b",")
        except TooLong:
            return


def _parsed(text: bytes) -> object:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None


def text_encoding(path: Path, encoding: str | None, *, is_asked: bool) -> str:
    """Return the encoding of the text in the file at *path*: as *encoding*, by its byte order mark, or UTF-8.

    With *is_asked* the user of the terminal confirms another one.

    :raises DataError: where the file is not UTF-8 and no encoding was given: one line with the command that reads it.
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
            f"{path} is not UTF-8 ({lines}). Read it as {fits}? Line {number} is then: {excerpt}", default=True
        ):
            return fits
    message = f"the file is not UTF-8 ({lines}); {fits} might fit: dicast init {quote(str(path))} --encoding {fits}"
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
