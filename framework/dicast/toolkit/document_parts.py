"""Documents in JSON with a list of records at a place, read one record at a time."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from .files import error_reason
from .scanning import Scanner, TooLong
from .session_reading import SessionReading

_CHUNK = 2**18
_END = (b"}", b"")

Item = tuple[int, tuple[str, ...], Any]
"""The line, the path and the value of a part of a document. The path of an item is the path of its list."""


class _Broken(Exception):
    """A *line* on which the structure of the document ends."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message, self.line = message, line


def document_parts(reading: SessionReading, places: Sequence[tuple[str, ...]]) -> Iterator[Item]:
    """Yield the items of the lists at *places* of a document, and its other members, in their order.

    An object that contains a place is not yielded, but its members are. The items of a document that is a list have the path ``()``. Faults
    are reported to *reading*.
    """
    scanner = Scanner(_chunks(reading), reading.max_bytes)
    try:
        yield from _document(reading, scanner, places, [])
        if scanner.peek():
            reading.refuse("text follows the end of the document", scanner.line)
    except TooLong as error:
        reading.refuse(f"a record is longer than max_line_bytes ({reading.max_bytes:,})", error.line)
    except _Broken as error:
        reading.refuse(error.message, error.line)


def split_documents(
    reading: SessionReading, places: Sequence[tuple[str, ...]]
) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Yield each document of a file once for each item of its lists at *places*, with only this item in the list, so that one item is in memory.

    The values are the line and the number of the item, and the document with the members before the list. A document without items is
    yielded as it is. Faults are reported to *reading*.
    """
    scanner = Scanner(_chunks(reading), reading.max_bytes)
    try:
        while scanner.peek():
            start, number, members, lists = scanner.line, 0, dict[str, Any](), list[tuple[str, ...]]()
            for line, path, value in _document(reading, scanner, places, lists):
                reading.line = reading.record_line = line
                if path not in places:
                    _put(members, path, value)
                    continue
                _put(members, path, [value])
                yield line, number, members
                _put(members, path, [])
                number += 1
            if not number:
                for path in lists:
                    _put(members, path, [])
                reading.record_line = start
                yield start, 0, members
            reading.settle(start)
            reading.record_line = None
    except TooLong as error:
        reading.refuse(f"a record is longer than max_line_bytes ({reading.max_bytes:,})", error.line)
    except _Broken as error:
        reading.refuse(error.message, error.line)


def _put(members: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        members = members.setdefault(name, {})
    members[path[-1]] = value


def _document(
    reading: SessionReading, scanner: Scanner, places: Sequence[tuple[str, ...]], lists: list[tuple[str, ...]]
) -> Iterator[Item]:
    """Yield the parts of the next document; *lists* gets the places of its lists."""
    if scanner.peek() == b"[":
        yield from _items(reading, scanner, ())
    elif not scanner.skip(b"{"):
        raise _Broken("this is no JSON document", scanner.line)
    else:
        yield from _members(reading, scanner, (), places, lists)


def _members(
    reading: SessionReading,
    scanner: Scanner,
    path: tuple[str, ...],
    places: Sequence[tuple[str, ...]],
    lists: list[tuple[str, ...]],
) -> Iterator[Item]:
    """Yield the parts of the object around the scanner's place."""
    while scanner.peek() not in _END:
        line = scanner.line
        key = reading.value(scanner.value(), line)
        if not isinstance(key, str) or not scanner.skip(b":"):
            raise _Broken("the document is not JSON: a key or a colon is missing", line)
        place = (*path, key)
        is_on_the_way = any(target[: len(place)] == place and len(target) > len(place) for target in places)
        if place in places and scanner.peek() == b"[":
            lists.append(place)
            yield from _items(reading, scanner, place)
        elif is_on_the_way and scanner.skip(b"{"):
            yield from _members(reading, scanner, place, places, lists)
        else:
            line = scanner.line
            if data := scanner.value():
                yield line, place, reading.value(data, line)
        scanner.skip(b",")
    if not scanner.skip(b"}"):
        raise _Broken("the document ends before its end: it was cut while it was written", scanner.line)


def _items(reading: SessionReading, scanner: Scanner, place: tuple[str, ...]) -> Iterator[Item]:
    scanner.skip(b"[")
    while scanner.peek() not in (b"]", b""):
        line, data = scanner.line, scanner.value()
        if not data:
            raise _Broken("the list has no value here", line)
        value = reading.value(data, line)
        if isinstance(value, dict):
            yield line, place, value
        elif value is not None:
            reading.unknown("record", type(value).__name__, ".".join(place))
        reading.settle(line)
        scanner.skip(b",")
    if not scanner.skip(b"]"):
        raise _Broken("the list has no end: the file was cut while it was written", scanner.line)


def _chunks(reading: SessionReading) -> Iterator[bytes]:
    with reading.file.binary() as stream:
        try:
            while chunk := stream.read(_CHUNK):
                if reading.check is not None:
                    reading.check.digest.update(chunk)
                yield chunk
        except (EOFError, OSError, zlib.error) as error:
            reading.refuse(f"the data cannot be read to its end: {error_reason(error)}", 1)
