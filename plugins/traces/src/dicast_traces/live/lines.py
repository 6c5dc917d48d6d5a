"""Lines of trace events, from any input."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import orjson

from dicast import DataError, Problem, TraceEvent
from dicast.toolkit.json_values import inexact, too_deep

from ..payloads import read_event

LEVELS = "the line is nested too deeply to be recorded; flatten it, or keep its deep part as text"


@attrs.frozen
class Line:
    """A line of *source* with its physical *number*, counted from 1; *fault* is a fault that is already known."""

    source: str
    number: int
    data: bytes
    fault: str | None = None

    def problem(self, problem: Problem) -> Problem:
        """Return *problem* with the place of the line."""
        return attrs.evolve(problem, file=self.source, line=self.number)

    def event(self, *, calls_named: bool) -> TraceEvent | None:
        """Return the event of the line; None for a blank line.

        :raises DataError: (without a place) for a line that is no event; *calls_named* as in :func:`read_event`.
        """
        record = self.record()
        return None if record is None else read_event(record, calls_named=calls_named)

    def record(self) -> dict[str, Any] | None:
        """Return the object of the line; None for a blank line.

        :raises DataError: (without a place) for a line that is no object.
        """
        if self.fault is not None:
            raise DataError(self.fault)
        return _object(self.data) if self.data.strip() else None


class Splitter:
    """Splits bytes into lines; *rest* has the bytes after the last line end.

    A line longer than *max_line_bytes* is reported as a fault, once, and not stored. *skipping* is True until its end
    arrives.
    """

    def __init__(self, source: str, max_line_bytes: int) -> None:
        self.source, self.number, self.rest, self.skipping = source, 0, b"", False
        self.offset = 0
        self._most = max_line_bytes

    def cut(self, data: bytes) -> Iterator[Line]:
        """Yield the lines that *data* completes. *offset* is after a line when the line is yielded."""
        *complete, self.rest = (self.rest + data).split(b"\n")
        for line in complete:
            self.offset += len(line) + 1
            if self.skipping:
                self.skipping = False
                continue
            self.number += 1
            yield self._line(line)
        if len(self.rest) > self._most:
            yield from self._too_long()

    def last(self) -> Line | None:
        """Return the last line without a line end if it is a complete object, because no addition can make it longer."""
        rest = self.rest.strip()
        if self.skipping or not rest.endswith(b"}") or _parsed(rest) is None:
            return None
        return self.finish()

    def finish(self) -> Line | None:
        """Return the last bytes without a line end as a line; None if there are none."""
        rest, skipped = self.rest, self.skipping
        self.offset, self.rest, self.skipping = self.offset + len(rest), b"", False
        if skipped or not rest:
            return None
        self.number += 1
        return self._line(rest)

    def _line(self, line: bytes) -> Line:
        if self.number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        return _limited(self.source, self.number, line, self._most)

    def _too_long(self) -> Iterator[Line]:
        self.offset, self.rest = self.offset + len(self.rest), b""
        if not self.skipping:
            self.skipping = True
            self.number += 1
            yield Line(self.source, self.number, b"", _too_long(self._most))


def body_lines(source: str, body: bytes, max_line_bytes: int) -> Sequence[Line]:
    """Return the events of a request as lines: of JSON lines, of one JSON array of objects, or of one object.

    :raises DataError: (without a place) if *body* looks like an array and is not valid.
    """
    if body.lstrip()[:1] != b"[":
        if isinstance(_parsed(body), dict):
            return [_limited(source, 1, body, max_line_bytes)]
        return [_limited(source, number, line, max_line_bytes) for number, line in enumerate(body.split(b"\n"), 1)]
    try:
        values = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise DataError(f"the array is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from error
    if (digits := inexact(body)) is not None:
        raise DataError(f"the number {digits:.40} needs more than 64 bits; write it as a string")
    try:
        return [_limited(source, number, orjson.dumps(value), max_line_bytes) for number, value in enumerate(values, 1)]
    except orjson.JSONEncodeError as error:  # orjson reads deeper levels than it writes
        raise DataError(LEVELS) from error


def _limited(source: str, number: int, data: bytes, most: int) -> Line:
    return Line(source, number, b"", _too_long(most)) if len(data) > most else Line(source, number, data)


def _too_long(most: int) -> str:
    return f"the line is longer than max_line_bytes ({most:,})"


def _parsed(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(_not_json(data, error)) from error
    if type(value) is not dict:
        raise DataError("the line must be a JSON object")
    if too_deep(data, value):
        raise DataError(LEVELS)
    if (digits := inexact(data)) is not None:
        raise DataError(f"the number {digits:.40} needs more than 64 bits; write it as a string")
    return value


def _not_json(data: bytes, error: orjson.JSONDecodeError) -> Problem:
    try:
        data.decode()
    except UnicodeDecodeError as wrong:
        return Problem(f"byte 0x{data[wrong.start]:02x} is not UTF-8", column=wrong.start + 1)
    return Problem(f"the line is not JSON: {error.msg}", column=error.colno)
