"""Records of conversations in a file: one a line, the items of a JSON array, or whole JSON documents."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, Literal

import attrs
import orjson

from dicast import Problem
from dicast.toolkit.files import error_reason
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.json_values import inexact, too_deep
from dicast.toolkit.message_formats import is_message
from dicast.toolkit.scanning import Scanner, TooLong, is_balanced
from dicast.toolkit.surrogates import with_lone_surrogates

Layout = Literal["lines", "lists", "array", "documents"]
"""``lines``: an object a line. ``lists``: a list of messages a line. ``array``: a JSON array. ``documents``: objects over several lines."""

Placed = Iterator[tuple[int, int, dict[str, Any]]]
"""Records, each with its number and the line on which it begins."""

_CHUNK = 2**18
_LONG = 2**23
"""The bytes of a first line that is read as a document without line breaks, item by item."""

_SPACE = b" \t\r\n"


def layout_of(file: InputFile, most: int) -> Layout:
    """Return the layout of *file*, from its first line and whether others follow; lines of up to *most* bytes are read.

    :raises DataError: if the file cannot be opened.
    """
    with file.binary() as data:
        try:
            line = b""
            while not line.strip(_SPACE):
                line = data.readline(min(_LONG, most + 2))
                if not line:
                    return "lines"
            if line.lstrip(_SPACE)[:1] not in (b"[", b"{"):
                return "lines"
            is_list = line.lstrip(_SPACE)[:1] == b"["
            if len(line) >= min(_LONG, most):
                return "array" if is_list else "documents"
            if not _is_json(line):
                return "array" if is_list else _broken_layout(line)
            if not is_list:
                return "lines"
            rest = data.read(_CHUNK)
            while rest and not rest.strip(_SPACE):
                rest = data.read(_CHUNK)
        except (EOFError, OSError, zlib.error):
            return "lines"  # the reader of lines reports the fault
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
    if is_balanced(line.strip(_SPACE)):  # the reader parses it, and reports its faults
        return True
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return with_lone_surrogates(line) is not None
    return True


@attrs.frozen
class Records:
    """The records of *file*, in the layout *layout*; a record of up to *most* bytes is read.

    Faults are reported to *check*; without *check* they are raised. A record with a lone surrogate is read with its escape, and
    *failures* has the reason of its failure by its line. Without *joins_messages*, each message of an array is a record.
    """

    file: InputFile
    layout: Layout
    most: int
    check: InputCheck | None
    failures: dict[int, str] = attrs.field(factory=dict)
    joins_messages: bool = True

    def __iter__(self) -> Placed:
        if self.layout == "lines":
            for line, record in self.file.objects(self.most, self.check, self.failures, unique=True):
                yield line, line, record
        elif self.layout == "lists":
            for line, data in self.file.lines(self.most, self.check):
                item = self._parsed(data, line) if data.strip() else None
                if item is not None:
                    yield line, line, item
        else:
            yield from self._documents()

    def _documents(self) -> Placed:
        scanner = Scanner(self._chunks(), self.most)
        try:
            yield from self._array(scanner) if self.layout == "array" else self._values(scanner)
        except TooLong as error:
            self._fault(f"a record is longer than max_line_bytes ({self.most:,})", error.line)

    def _chunks(self) -> Iterator[bytes]:
        with self.file.binary() as data:
            try:
                while chunk := data.read(_CHUNK):
                    if self.check is not None:
                        self.check.digest.update(chunk)
                    yield chunk
            except (EOFError, OSError, zlib.error) as error:
                self._fault(f"the data cannot be read to its end: {error_reason(error)}", 1)

    def _values(self, scanner: Scanner) -> Placed:
        """Yield the objects that follow each other."""
        number = 0
        while scanner.peek():
            line, number = scanner.line, number + 1
            value = scanner.value()
            if not value:
                self._fault("this is no JSON document", line)
                return
            record = self._parsed(value, line)
            if record is not None:
                yield number, line, record

    def _array(self, scanner: Scanner) -> Placed:
        """Yield the items of an array; an array of messages is one record with *joins_messages*."""
        messages: list[Any] | None = None
        start = scanner.line
        for number, (line, value) in enumerate(self._items(scanner), 1):
            item = self._parsed(value, line)
            if item is None:
                continue
            if number == 1 and self.joins_messages and is_message(item):
                messages = []
            if messages is None:
                yield number, line, item
                continue
            messages.append(item)
            if (why := self.failures.pop(line, None)) is not None:
                self.failures[start] = why
        if messages is not None:
            yield 1, start, {"messages": messages}

    def _items(self, scanner: Scanner) -> Iterator[tuple[int, bytes]]:
        scanner.peek()
        scanner.skip(b"[")
        if scanner.skip(b"]"):
            return
        while True:
            scanner.peek()
            line = scanner.line
            value = scanner.value()
            if not value:
                self._fault("the array has no value here", line)
                return
            yield line, value
            if scanner.skip(b","):
                continue
            if not scanner.skip(b"]"):
                self._fault("the array has no end, or a comma is missing", scanner.line)
            elif scanner.peek():
                self._fault("something follows the end of the array", scanner.line)
            return

    def _parsed(self, data: bytes, line: int) -> dict[str, Any] | None:
        """Return the record that *data* is, a list as its ``messages``; else its fault is reported."""
        try:
            value = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            escaped = with_lone_surrogates(data)
            if escaped is None:
                self._not_json(data, error, line)
                return None
            value, self.failures[line] = escaped.value, escaped.why
        record = {"messages": value} if isinstance(value, list) else value
        if not isinstance(record, dict):
            self._fault("this is no object and no list of messages", line)
        elif self.check is not None and too_deep(data, record):
            self._fault("it is nested too deeply to be recorded; flatten it, or keep its deep part as text", line)
        elif self.check is not None and (digits := inexact(data)) is not None:
            self._fault(f"the number {digits:.40} needs more than 64 bits; write it as a string", line)
        else:
            return record
        return None

    def _not_json(self, data: bytes, error: orjson.JSONDecodeError, line: int) -> None:
        try:
            data.decode()
        except UnicodeDecodeError as wrong:
            byte, before = data[wrong.start], data[: wrong.start].count(b"\n")
            what = Problem(f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8")
            self.file.undecodable(what, line + before, self.check)
        else:
            problem = Problem(f"it is not JSON: {error.msg}", column=error.colno)
            self._fault(problem, line + error.lineno - 1)

    def _fault(self, what: str | Problem, line: int) -> None:
        self.file.fault(what, line, self.check)
