"""Documents in JSON with a list of records at a place, read one record at a time."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from dicast.toolkit.scanning import Scanner, TooLong
from dicast.toolkit.session_reading import SessionReading

_CHUNK = 2**18
_END = (b"}", b"")

Item = tuple[int, tuple[str, ...], Any]
"""The line, the path and the value of a part of a document. The path of an item is the path of its list."""


def parts(reading: SessionReading, places: Sequence[tuple[str, ...]]) -> Iterator[Item]:
    """Yield the items of the lists at *places* of a document, and its other members, in their order.

    An object that contains a place is not yielded, but its members are. The items of a document that is a list have the path ``()``. Faults
    are reported to *reading*.
    """
    scanner = Scanner(_chunks(reading), reading.max_bytes)
    try:
        if scanner.peek() == b"[":
            yield from _items(reading, scanner, ())
        elif not scanner.skip(b"{"):
            reading.refuse("this is no JSON document", scanner.line)
            return
        elif not (yield from _members(reading, scanner, (), places)):
            reading.refuse("the document ends before its end: it was cut while it was written", scanner.line)
        if scanner.peek():
            reading.refuse("text follows the end of the document", scanner.line)
    except TooLong as error:
        reading.refuse(f"a record is longer than max_line_bytes ({reading.max_bytes:,})", error.line)


def _members(
    reading: SessionReading, scanner: Scanner, path: tuple[str, ...], places: Sequence[tuple[str, ...]]
) -> Generator[Item, None, bool]:
    """Yield the parts of the object around the scanner's place; return whether the object has an end."""
    while scanner.peek() not in _END:
        line = scanner.line
        key = reading.value(scanner.value(), line)
        if not isinstance(key, str) or not scanner.skip(b":"):
            reading.refuse("the document is not JSON: a key or a colon is missing", line)
            return True
        place = (*path, key)
        is_on_the_way = any(target[: len(place)] == place and len(target) > len(place) for target in places)
        if place in places and scanner.peek() == b"[":
            yield from _items(reading, scanner, place)
        elif is_on_the_way and scanner.skip(b"{"):
            yield from _members(reading, scanner, place, places)
        else:
            line = scanner.line
            if data := scanner.value():
                yield line, place, reading.value(data, line)
        scanner.skip(b",")
    return scanner.skip(b"}")


def _items(reading: SessionReading, scanner: Scanner, place: tuple[str, ...]) -> Iterator[Item]:
    scanner.skip(b"[")
    while scanner.peek() not in (b"]", b""):
        line, data = scanner.line, scanner.value()
        if not data:
            reading.refuse("the list has no value here", line)
            return
        value = reading.value(data, line)
        if isinstance(value, dict):
            yield line, place, value
        elif value is not None:
            reading.unknown("record", type(value).__name__, ".".join(place))
        reading.settle(line)
        scanner.skip(b",")
    if not scanner.skip(b"]"):
        reading.refuse("the list has no end: the file was cut while it was written", scanner.line)


def _chunks(reading: SessionReading) -> Iterator[bytes]:
    with reading.file.binary() as stream:
        try:
            while chunk := stream.read(_CHUNK):
                if reading.check is not None:
                    reading.check.digest.update(chunk)
                yield chunk
        except (EOFError, OSError, zlib.error) as error:
            reading.refuse(f"the data cannot be read to its end: {error}", 1)
