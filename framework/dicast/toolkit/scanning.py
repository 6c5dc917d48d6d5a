"""A scanner of the values of a JSON document that holds one value in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

_TOKEN = re.compile(rb'[{}\[\]]|"[^"\\]*+(?:\\.[^"\\]*+)*+"|"', re.DOTALL)
"""A bracket, a whole string, or the opening quote of a string whose end is not in the buffer."""

_STRING = r'"(?:[^"\\]|\\(?s:.))*"'
_PLAIN = r'[^{}\[\]"]|' + _STRING
_LEVELS = 64
_LEAST = 2**20
_RETRIED = 2**24
"""A longer value is scanned bracket by bracket, so that a value with more levels does not fill the memory."""


@cache
def _shallow() -> Any:
    """Return an expression for a whole object or list with up to :data:`_LEVELS` nested levels, as nearly all records are; None without RE2.

    RE2 scans it as one automaton, ten times as fast as the brackets one by one.
    """
    try:
        import re2  # type: ignore[import-untyped]  # 1.6 MB, which only some inputs need
    except ImportError:  # the kernel alone is installed
        return None
    inside = f"(?:{_PLAIN})*"
    for _ in range(_LEVELS):
        inside = rf"(?:{_PLAIN}|[{{\[]{inside}[}}\]])*"
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(rf"[{{\[]{inside}[}}\]]".encode(), options)


_SPACE = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb"[^ \t\r\n,:\[\]{}]++")
_OPENS, _CLOSES = b"{[", b"}]"


def is_balanced(text: bytes) -> bool:
    """Return whether *text* is one object or list by its brackets and strings. False is no proof: it may have more than 64 levels."""
    shallow = _shallow()
    return shallow is not None and shallow.fullmatch(text) is not None


class TooLong(Exception):
    """A value that begins on *line* is longer than the limit."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class Scanner:
    """Scanner over the *chunks* of a document; *line* and *column*, from 1, are the current place.

    It recognizes brackets and strings only, so a value may be invalid JSON: its reader checks it.
    """

    def __init__(self, chunks: Iterator[bytes], most: int) -> None:
        self.line, self.column = 1, 1
        self._chunks, self._most = chunks, most
        self._buffer, self._at = b"", 0

    def peek(self) -> bytes:
        """Move to the next byte that is not white space and return it, empty at the end."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            assert match is not None  # it also matches an empty text
            self._take(match.end())
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._read_more():
                return b""

    def skip(self, byte: bytes) -> bool:
        """Move behind *byte* if it is the next byte that is not white space, and return whether it is."""
        if is_next := self.peek() == byte:
            self._take(self._at + 1)
        return is_next

    def value(self) -> bytes:
        """Move behind the next value and return its text, empty if there is no value here. A value without an end extends to the end of the document.

        :raises TooLong: if it is longer than the limit.
        """
        first = self.peek()
        if not first or first in b",:" or first in _CLOSES:
            return b""
        if first in _OPENS:
            end = self._end_of_container()
        else:
            end = self._end(0) if first == b'"' else self._end_of_scalar()
        value = self._buffer[self._at : end]
        if len(value) > self._most:
            raise TooLong(self.line)
        self._take(end)
        return value

    def leave(self, depth: int) -> bool:
        """Move behind the end of the innermost *depth* containers around the place; return False if the document ends before."""
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

    def _end_of_container(self) -> int:
        shallow = _shallow()
        while shallow is not None and len(self._buffer) - self._at <= _RETRIED:
            if match := shallow.match(self._buffer, self._at):
                end: int = match.end()
                return end
            if not self._read_more():
                break
        return self._end(0)

    def _end(self, depth: int) -> int:
        """Return the position in the buffer behind the value that begins at the place."""
        offset = 0  # relative to the place, because reading more moves the value in the buffer
        while True:
            match = _TOKEN.search(self._buffer, self._at + offset)
            if match is None or match[0] == b'"':
                offset = (len(self._buffer) if match is None else match.start()) - self._at
                if not self._read_more():
                    return len(self._buffer)
                continue
            offset = match.end() - self._at
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
        """Double the buffer, and return whether there was more to read.

        Doubling, from :data:`_LEAST` bytes, keeps the time of repeated scans proportional to the document.
        """
        rest = self._buffer[self._at :]
        if len(rest) > self._most:
            raise TooLong(self.line)
        pieces, size = [rest], 0
        while size <= max(len(rest), _LEAST) and (chunk := next(self._chunks, b"")):
            pieces.append(chunk)
            size += len(chunk)
        self._buffer, self._at = b"".join(pieces), 0
        return size > 0
