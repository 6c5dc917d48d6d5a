"""Records of conversations in a file: one a line, the items of a JSON array, or whole JSON documents."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Literal

import orjson

from dicast import InputCheck, InputFile, Problem, inexact, too_deep
from dicast.toolkit.dialects import is_message
from dicast.toolkit.scanning import Scanner, TooLong

Layout = Literal["lines", "lists", "array", "documents"]
"""``lines``: an object a line. ``lists``: a list of messages a line. ``array``: a JSON array. ``documents``: objects over several lines."""

Placed = Iterator[tuple[int, int, dict[str, Any]]]
"""Records, each with its number and the line on which it begins."""

_CHUNK = 2**18
_SPACE = b" \t\r\n"


def layout_of(file: InputFile, most: int) -> Layout:
    """Return how *file* holds its records, by its first line and whether more follow; lines of up to *most* bytes are read.

    :raises DataError: if the file cannot be opened.
    """
    with file.binary() as data:
        try:
            line = b""
            while not line.strip(_SPACE):
                line = data.readline(most + 2)
                if not line:
                    return "lines"
            if line.lstrip(_SPACE)[:1] not in (b"[", b"{") or len(line) > most:
                return "lines"
            is_list = line.lstrip(_SPACE)[:1] == b"["
            if not _is_json(line):
                return "array" if is_list else _broken_layout(line)
            if not is_list:
                return "lines"
            rest = data.read(_CHUNK)
            while rest and not rest.strip(_SPACE):
                rest = data.read(_CHUNK)
        except (EOFError, OSError, zlib.error):
            return "lines"  # whose reader names the fault
        return "lists" if rest else "array"


def _broken_layout(line: bytes) -> Layout:
    """Return the layout of a file whose first *line* begins an object and does not end it."""
    return "documents" if _opens(line) else "lines"


def _opens(line: bytes) -> bool:
    """Return whether *line* is the beginning of a JSON object that goes on, and not a broken one."""
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return error.pos >= len(line.decode(errors="replace").rstrip())
    return False


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def records(file: InputFile, layout: Layout, most: int, check: InputCheck | None) -> Placed:
    """Yield the records of *file*; faults go to *check*, or are raised."""
    if layout == "lines":
        for line, record in file.objects(most, check):
            yield line, line, record
    elif layout == "lists":
        for line, data in file.lines(most, check):
            item = _parsed(file, data, line, check) if data.strip() else None
            if item is not None:
                yield line, line, item
    else:
        yield from _documents(file, layout == "array", most, check)


def _documents(file: InputFile, is_array: bool, most: int, check: InputCheck | None) -> Placed:
    scanner = Scanner(_chunks(file, check), most)
    try:
        if is_array:
            yield from _array(file, scanner, check)
        else:
            yield from _values(file, scanner, check)
    except TooLong as error:
        file.fault(f"a record is longer than max_line_bytes ({most:,})", error.line, check)


def _chunks(file: InputFile, check: InputCheck | None) -> Iterator[bytes]:
    with file.binary() as data:
        try:
            while chunk := data.read(_CHUNK):
                if check is not None:
                    check.digest.update(chunk)
                yield chunk
        except (EOFError, OSError, zlib.error) as error:
            file.fault(f"the data cannot be read to its end: {error}", 1, check)


def _values(file: InputFile, scanner: Scanner, check: InputCheck | None) -> Placed:
    number = 0
    while scanner.peek():
        line, number = scanner.line, number + 1
        value = scanner.value()
        if not value:
            file.fault("this is no JSON document", line, check)
            return
        record = _parsed(file, value, line, check)
        if record is not None:
            yield number, line, record


def _array(file: InputFile, scanner: Scanner, check: InputCheck | None) -> Placed:
    """Yield the items of an array; an array of messages is one record."""
    messages: list[Any] | None = None
    start = scanner.line
    for number, (line, value) in enumerate(_items(file, scanner, check), 1):
        item = _parsed(file, value, line, check, is_item=True)
        if item is None:
            continue
        if messages is None and number == 1 and is_message(item):
            messages = []
        if messages is None:
            yield number, line, item
        else:
            messages.append(item)
    if messages is not None:
        yield 1, start, {"messages": messages}


def _items(file: InputFile, scanner: Scanner, check: InputCheck | None) -> Iterator[tuple[int, bytes]]:
    scanner.peek()
    scanner.skip(b"[")
    if scanner.skip(b"]"):
        return
    while True:
        scanner.peek()
        line = scanner.line
        value = scanner.value()
        if not value:
            file.fault("the array has no value here", line, check)
            return
        yield line, value
        if scanner.skip(b","):
            continue
        if not scanner.skip(b"]"):
            file.fault("the array has no end, or a comma is missing", scanner.line, check)
        elif scanner.peek():
            file.fault("something follows the end of the array", scanner.line, check)
        return


def _parsed(
    file: InputFile, data: bytes, line: int, check: InputCheck | None, *, is_item: bool = False
) -> dict[str, Any] | None:
    """Return the record that *data* is, a list as its ``messages``; else what is wrong with it is reported."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        file.fault(Problem(f"it is not JSON: {error.msg}", column=error.colno), line + error.lineno - 1, check)
        return None
    if isinstance(value, list):
        value = {"messages": value}
    if not isinstance(value, dict):
        file.fault(f"{'an item of the array' if is_item else 'it'} is no object and no list of messages", line, check)
    elif check is not None and too_deep(data, value):
        file.fault("it is nested too deeply to be recorded; flatten it, or keep its deep part as text", line, check)
    elif check is not None and (digits := inexact(data)) is not None:
        file.fault(f"the number {digits:.40} needs more than 64 bits; write it as a string", line, check)
    else:
        return value
    return None
