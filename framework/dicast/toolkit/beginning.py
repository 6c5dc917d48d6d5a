"""The beginning of a file, by which a format is detected: its first bytes, lines and JSON values, or the members of an archive."""

from __future__ import annotations

import sqlite3
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import orjson

from .databases import SQLITE, open_database
from .encodings import UTF_8, marked_encoding
from .input_file import MAX_LINE_BYTES, InputFile
from .scanning import Scanner, TooLong
from .surrogates import with_lone_surrogates

MOST_RECORDS = 50
"""The most JSON values of a file that a detection sees."""

_MOST_BYTES = 64 * 2**20
_PIECE = 2**18

Layout = Literal["lines", "array", "document", "other"]


@attrs.frozen
class Beginning:
    """The first *records* of a file: its JSON lines, the items of its array, or its one document; *lines* are its first lines.

    *members* are the names in a zip archive, *tables* those of a SQLite database. *start* has the first bytes, without gzip.
    """

    start: bytes
    lines: tuple[bytes, ...] = ()
    layout: Layout = "other"
    records: tuple[object, ...] = ()
    members: tuple[str, ...] = ()
    tables: frozenset[str] = frozenset()

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
        if start.startswith(SQLITE):
            return Beginning(start, tables=_tables(file))
        if b"\0" in start or (encoding == UTF_8 and marked_encoding(start)):
            return Beginning(start)
        lines = () if _starts_long(file) else tuple(_first_lines(file))
        layout, records = _records(file, lines or (start.lstrip(),))
        return Beginning(start, lines, layout, records)


def _members(file: InputFile) -> tuple[str, ...]:
    try:
        with file.binary() as stream, zipfile.ZipFile(stream) as archive:
            return tuple(archive.namelist())
    except (zipfile.BadZipFile, OSError):
        return ()


def _tables(file: InputFile) -> frozenset[str]:
    """Return the names of the tables in a database, none if it cannot be read."""
    try:
        with open_database(file.path) as connection:
            return frozenset(
                name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            )
    except sqlite3.Error:
        return frozenset()


def _starts_long(file: InputFile) -> bool:
    """Return whether the first line has more than :data:`MAX_LINE_BYTES`, as a large document without line breaks has."""
    with file.binary() as stream:
        try:
            return len(stream.readline(MAX_LINE_BYTES + 2)) > MAX_LINE_BYTES
        except (EOFError, OSError, zlib.error):
            return False  # the reader of lines reports the fault


def _first_lines(file: InputFile) -> Iterator[bytes]:
    for number, line in file.lines():
        if line.strip():
            yield line.strip()
        if number >= MOST_RECORDS:
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
        return "array", tuple(_values(file, is_array=True))
    documents = tuple(_values(file, is_array=False))
    return ("document" if documents else "other"), documents


def _values(file: InputFile, *, is_array: bool) -> Iterator[object]:
    """Yield the first items of a JSON array, or the first of several JSON documents in a row."""
    with file.binary() as stream:
        scanner = Scanner(iter(lambda: stream.read(_PIECE), b""), _MOST_BYTES)
        scanner.peek()
        if is_array:
            scanner.skip(b"[")
        try:
            for _ in range(MOST_RECORDS):
                value = _parsed(scanner.value()) if scanner.peek() not in (b"]", b"") else None
                if value is None:
                    return
                yield value
                scanner.peek()
                if is_array:
                    scanner.skip(b",")
        except TooLong:
            return


def _parsed(text: bytes) -> object:
    try:
        return orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        escaped = with_lone_surrogates(text)
        return None if escaped is None else escaped.value
