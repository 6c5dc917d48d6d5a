"""METRIC and ASI lines in the output of a command: measured values and further information about them.

Streams of any length are read in constant memory. The search works on bytes: only possible METRIC and ASI lines become text.
"""

from __future__ import annotations

import math
import re
from typing import Any, Literal, get_args

import orjson

from .._kernel.classes import field, frozen
from .json_values import too_deep

Syntax = Literal["lenient", "strict"]

LONGEST_LINE = 1024 * 1024
"""The most bytes of a METRIC or ASI line."""

MOST_KEPT = 16 * 1024 * 1024
"""The most bytes of names and ASI values that are kept from one stream."""

_NAME = rb"([\w.\x80-\xff]++)"  # whether bytes beyond ASCII are letters is seen once for each name
_METRIC = {
    # Possessive, so that a line of a million digits takes no more time than it is long.
    "strict": (rb"\nMETRIC ", rb"=([-+]?(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++))(?=\n)"),
    "lenient": (
        rb"\nMETRIC[ \t]++",
        rb"=([-+]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][-+]?[0-9]++)?)[ \t]*+\r?(?=\n)",
    ),
}
_ASI = re.compile(rb"\nASI[ \t]++([\w.\x80-\xff-]++)=[ \t\r]*+([^\n]++)")
_LETTERS = re.compile(r"[\w.µ-]+")
_RESERVED = {"__proto__", "constructor", "prototype"}
_NUMBER = re.compile(r"-?[0-9]++(\.[0-9]++)?")
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_BEGINNINGS = (b"\nMETRIC", b"\nASI")
_BEGINNING = max(map(len, _BEGINNINGS))
_END = 2048


@frozen
class Measurements:
    """Content of METRIC and ASI lines.

    :ivar metrics: the last value of each name, in the order in which the names occurred first.
    :ivar asi: the actionable side information, in the same form.
    :ivar dropped: the number of METRIC and ASI lines that were dropped, because they were too long or too many.
    """

    metrics: dict[str, float] = field(factory=dict)
    asi: dict[str, Any] = field(factory=dict)
    dropped: int = 0


class MetricLines:
    """Reader of METRIC and ASI lines from a stream of bytes, piece by piece.

    *syntax* is ``lenient`` (blanks, ``5.``, ``1e3`` and a carriage return are allowed) or ``strict`` (the protocol's own expression).

    :raises ValueError: for another *syntax*.
    """

    def __init__(self, syntax: Syntax = "lenient") -> None:
        if syntax not in get_args(Syntax):
            raise ValueError(f"{syntax!r} is no syntax of METRIC lines, choose lenient or strict")
        self._before, self._after = _METRIC[syntax]
        self._metric = re.compile(self._before + _NAME + self._after)
        self._metrics: dict[bytes, float] = {}
        self._asi: dict[bytes, bytes] = {}
        self._unfinished = _Line()
        self._room, self._dropped = MOST_KEPT, 0

    def feed(self, data: bytes) -> None:
        """Read *data*, the next piece; a line counts when its end arrives."""
        for start in range(0, len(data), LONGEST_LINE):
            if (lines := self._unfinished.add(data[start : start + LONGEST_LINE])) is not None:
                self._scan(lines)

    def result(self) -> Measurements:
        """Return the measurements; a last line without its newline counts, so nothing may be fed afterwards."""
        self.feed(b"\n")
        metrics = {name.decode(): value for name, value in self._metrics.items()}
        asi = {name.decode(): _asi_value(text) for name, text in self._asi.items()}
        return Measurements(metrics, asi, self._dropped + self._unfinished.dropped)

    def _scan(self, lines: bytes) -> None:
        for name, value in self._last_values(lines).items():
            if name in self._metrics or (_is_name(name) and self._fits(len(name))):
                self._metrics[name] = value
        if _BEGINNINGS[1] in lines:
            for name, text in dict(_ASI.findall(lines)).items():
                self._keep_asi(name, text.rstrip(b" \t\r"))

    def _last_values(self, lines: bytes) -> dict[bytes, float]:
        """Return the last finite value of each name in *lines*, in the order of first occurrence."""
        values = {name: float(number) for name, number in self._known_numbers(lines).items()}
        if values.keys() <= self._metrics.keys() and all(map(math.isfinite, values.values())):
            return values
        pairs = ((name, float(number)) for name, number in self._metric.findall(lines))
        return {name: value for name, value in pairs if math.isfinite(value)}

    def _known_numbers(self, lines: bytes) -> dict[bytes, bytes]:
        """Return the last number of each name in *lines*, in any order.

        In a stream with few names, the last lines have nearly all of them. The lines before are then searched for other names only, which
        is ten times as fast.
        """
        last = lines.rfind(b"\n", 0, max(0, len(lines) - _END))
        if last < max(1, len(lines) - 2 * _END) or not (values := dict(self._metric.findall(lines, last))):
            return dict(self._metric.findall(lines))
        other_names = b"(?!(?:" + b"|".join(map(re.escape, sorted(values))) + b")=)"
        rest = re.compile(self._before + other_names + _NAME + self._after)
        return dict(rest.findall(lines, 0, last + 1)) | values

    def _keep_asi(self, name: bytes, text: bytes) -> None:
        if not _is_name(name):
            return
        freed = len(name) + len(self._asi[name]) if name in self._asi else 0
        if self._fits(len(name) + len(text) - freed):
            self._asi[name] = text

    def _fits(self, size: int) -> bool:
        fits = size <= self._room
        self._room -= size if fits else 0
        self._dropped += not fits
        return fits


class _Line:
    """The unfinished line, with the newline before it; only lines that may be METRIC or ASI lines are kept."""

    def __init__(self) -> None:
        self._text, self._skipping = bytearray(b"\n"), False
        self.dropped = 0

    def add(self, piece: bytes) -> bytes | None:
        """Return the lines that *piece* ends, each between newlines; None if it ends none."""
        end = piece.rfind(b"\n")
        if end < 0:
            self._append(piece)
            return None
        begin = piece.find(b"\n")
        self._append(piece[:begin])
        lines = bytes(self._text) + piece[begin : end + 1]
        self._text, self._skipping = bytearray(b"\n"), False
        self._append(piece[end + 1 :])
        return lines

    def _append(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._text += piece
        ours = any(map(self._text[:_BEGINNING].startswith, _BEGINNINGS))
        if len(self._text) > LONGEST_LINE or (len(self._text) >= _BEGINNING and not ours):
            self.dropped += ours
            self._text, self._skipping = bytearray(), True


def _is_name(name: bytes) -> bool:
    try:
        text = name.decode()
    except UnicodeDecodeError:
        return False
    return _LETTERS.fullmatch(text) is not None and text not in _RESERVED


def _asi_value(text: bytes) -> Any:
    plain = text.decode(errors="replace")
    if plain in _WORDS:
        return _WORDS[plain]
    if number := _NUMBER.fullmatch(plain):
        return _number(plain, is_strict=number[1] is None)
    if plain[0] not in '{["':
        return plain
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return plain
    return plain if too_deep(text, value) else value


def _number(text: str, *, is_strict: bool) -> int | float | str:
    """Return a number that can be written as JSON, or *text* itself."""
    value = float(text)
    if not math.isfinite(value):
        return text
    return int(text) if is_strict and abs(value) < 2**63 else value
