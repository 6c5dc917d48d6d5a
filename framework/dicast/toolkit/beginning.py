"""The beginning of a file, by which a format is detected: its first bytes, lines and JSON values, or the members of an archive."""

from __future__ import annotations

import itertools
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
from .input_file import InputFile
from .scanning import Scanner, TooLong
from .surrogates import with_lone_surrogates

MOST_RECORDS = 50
"""The most JSON values of a file that a detection sees."""

_MOST_BYTES = 64 * 2**20
_PIECE = 2**18
_LONG_DOCUMENT = 2**20
_FIRST_ITEMS = 10
_ENOUGH = 4 * 2**20
"""The bytes of lines after which no further line is read; the first two lines are read whole."""

_LONG_LINE = 2**23


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
    """Return whether the first line is very long, as in a large document without line breaks."""
    with file.binary() as stream:
        try:
            return len(stream.readline(_LONG_LINE)) == _LONG_LINE
        except (EOFError, OSError, zlib.error):
            return False  # the reader of lines reports the fault


def _first_lines(file: InputFile) -> Iterator[bytes]:
    size = 0
    for number, line in file.lines():
        if line.strip():
            yield line.strip()
        size += len(line)
        if number >= MOST_RECORDS or (size >= _ENOUGH and number > 1):
            return


def _records(file: InputFile, lines: tuple[bytes, ...]) -> tuple[Layout, tuple[object, ...]]:
    first = lines[0] if lines else b""
    if first[:1] not in (b"{", b"["):
        return "other", ()
    is_long = len(lines) == 1 and len(first) >= _LONG_DOCUMENT
    values = [] if is_long else [*map(_parsed, lines)]
    if values and values[0] is not None and (first[:1] == b"{" or len(lines) > 1):
        layout: Layout = "document" if len(lines) == 1 else "lines"
        return layout, tuple(value for value in values if value is not None)
    if first[:1] == b"[":
        return "array", tuple(_values(file, is_array=True))
    documents = tuple(_values(file, is_array=False))
    return ("document" if documents else "other"), documents


def _sampled(scanner: Scanner, levels: int = 3) -> Any:
    """Return the next value of a long document, with only the first items of the lists in its first *levels*."""
    first = scanner.peek()
    if not levels or not (scanner.skip(b"{") or scanner.skip(b"[")):
        return _parsed(scanner.value())
    members: dict[Any, Any] = {}
    items: list[Any] = []
    while scanner.peek() not in (b"}", b"]", b""):
        if first == b"{":
            key = _parsed(scanner.value())
            if not isinstance(key, str) or not scanner.skip(b":"):
                break
            members[key] = _sampled(scanner, levels - 1)
        elif len(items) < _FIRST_ITEMS:
            items.append(_parsed(scanner.value()))
        elif not scanner.value():
            break
        scanner.skip(b",")
    scanner.skip(b"}" if first == b"{" else b"]")
    return members if first == b"{" else items


def _values(file: InputFile, *, is_array: bool) -> Iterator[object]:
    """Yield the first items of a JSON array, or the first of several JSON documents in a row. The lists of a long file are cut."""
    with file.binary() as stream:
        pieces = [stream.read(_LONG_DOCUMENT)]
        is_long = len(pieces[0]) == _LONG_DOCUMENT
        rest = (stream.read(_PIECE) for _ in range(_MOST_BYTES // _PIECE))
        scanner = Scanner(itertools.chain(pieces, rest), _MOST_BYTES)
        scanner.peek()
        if is_array:
            scanner.skip(b"[")
        try:
            for _ in range(MOST_RECORDS):
                if scanner.peek() in (b"]", b""):
                    return
                value = _sampled(scanner) if is_long and not is_array else _parsed(scanner.value())
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
