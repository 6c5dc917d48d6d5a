"""A scanner of the values of a JSON document, which holds one value at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(rb'[{}\[\]]|"[^"\\]*+(?:\\.[^"\\]*+)*+"|"', re.DOTALL)
"""A bracket, a whole string, or the quote of one whose end has not come yet."""

_PLAIN = rb'[^{}\[\]"]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_INSIDE = rb"(?:" + _PLAIN + rb")*+"
for _ in range(8):
    _INSIDE = rb"(?:" + _PLAIN + rb"|[{\[]" + _INSIDE + rb"[}\]])*+"
_SHALLOW = re.compile(rb"[{\[]" + _INSIDE + rb"[}\]]", re.DOTALL)
"""A whole value with eight levels of others inside, as most records are: one step in place of many."""

_SPACE = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb"[^ \t\r\n,:\[\]{}]++")
_OPENS, _CLOSES = b"{[", b"}]"


class TooLong(Exception):
    """A value is longer than may be held; it begins on *line*."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class Scanner:
    """Scanner over the *chunks* of a document; *line* and *column*, from 1, are the current place.

    It looks at brackets and strings alone: whether a value is JSON is for its reader to see.
    """

    def __init__(self, chunks: Iterator[bytes], most: int) -> None:
        self.line, self.column = 1, 1
        self._chunks, self._most = chunks, most
        self._buffer, self._at = b"", 0

    def peek(self) -> bytes:
        """Return the next byte that is not white space without taking it; empty at the end."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            assert match is not None  # it matches nothing, too
            self._take(match.end())
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._read_more():
                return b""

    def skip(self, byte: bytes) -> bool:
        """Take *byte* if it is next."""
        if match := self.peek() == byte:
            self._take(self._at + 1)
        return match

    def value(self) -> bytes:
        """Take the next value as it is written; empty where there is none. One without an end goes to the end of the document.

        :raises TooLong: when it is longer than may be held.
        """
        first = self.peek()
        if not first or first in b",:" or first in _CLOSES:
            return b""
        if shallow := _SHALLOW.match(self._buffer, self._at):
            end = shallow.end()
        else:
            end = self._end(0) if first in b'"{[' else self._end_of_scalar()
        value = self._buffer[self._at : end]
        if len(value) > self._most:
            raise TooLong(self.line)
        self._take(end)
        return value

    def leave(self, depth: int) -> bool:
        """Take all up to the end of the *depth* containers that the place is in; False where the document ends before."""
        while depth:
            match = _TOKEN.search(self._buffer, self._at)
            if match is None or match[0] == b'"':
                self._take(len(self._buffer) if match is None else match.start())
                if not self._read_more():
                    return False
                continue
            depth += (match[0] in _OPENS) - (match[0] in _CLOSES)
            self._take(match.end())
        return True

    def _end(self, depth: int) -> int:
        """Where the value that begins here ends."""
        behind = 0  # from the beginning, which stays in its place in the buffer
        while True:
            match = _TOKEN.search(self._buffer, self._at + behind)
            if match is None or match[0] == b'"':
                behind = (len(self._buffer) if match is None else match.start()) - self._at
                if not self._read_more():
                    return len(self._buffer)
                continue
            behind = match.end() - self._at
            depth += (match[0] in _OPENS) - (match[0] in _CLOSES)
            if not depth:
                return match.end()

    def _end_of_scalar(self) -> int:
        while (
            (match := _SCALAR.match(self._buffer, self._at)) and match.end() == len(self._buffer) and self._read_more()
        ):
            pass
        return match.end() if match else self._at + 1

    def _take(self, end: int) -> None:
        lines = self._buffer.count(b"\n", self._at, end)
        self.line += lines
        self.column = end - self._buffer.rfind(b"\n", self._at, end) if lines else self.column + end - self._at
        self._at = end

    def _read_more(self) -> bool:
        """Double the buffer, so that scanning it again costs no more than reading."""
        rest = self._buffer[self._at :]
        if len(rest) > self._most:
            raise TooLong(self.line)
        match, size = [rest], 0
        while size <= len(rest) and (chunk := next(self._chunks, b"")):
            match.append(chunk)
            size += len(chunk)
        self._buffer, self._at = b"".join(match), 0
        return size > 0
