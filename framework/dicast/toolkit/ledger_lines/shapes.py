"""Shapes of payloads: the JSON text of a payload as constant pieces and variable values.

The pieces are texts and numbers. A text is constant. A number is the place of a value in the line, and the negative number
``-place`` is the text whose digest is the value at this place. The pieces in their order, with JSON in place of the numbers, are the payload, byte by
byte.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import orjson

Piece = str | int

_MARK = re.compile(rb'"\\u0001(-?\d+)\\u0001"')


_MARK_TEXT = re.compile("\x01(-?\\d+)\x01")


def mark(place: int) -> str:
    """Return the text that marks the place of a value in a payload, for :func:`pieces_of`."""
    return f"\x01{place}\x01"


def pieces_of(marked: bytes) -> list[Piece]:
    """Return the pieces of a payload whose values are replaced by :func:`mark`, from its JSON text."""
    parts = _MARK.split(marked)
    return [int(part) if index % 2 else part.decode() for index, part in enumerate(parts)]


def fill(pieces: Sequence[Piece], value: Callable[[int], bytes]) -> bytes:
    """Return the payload of *pieces*. *value* returns the JSON text of a place, and for a negative number the text of a content."""
    return b"".join([piece.encode() if isinstance(piece, str) else value(piece) for piece in pieces])


Build = Callable[[Sequence[Any], Callable[[str], Any]], Any]
"""Function of a line and of a function that returns the content with a digest. It returns a payload."""


def build_of(pieces: Sequence[Piece]) -> Build:
    """Return the function that makes the payload of *pieces* from the values of a line: parsing the text would take five times as long."""
    text = b"".join(piece.encode() if isinstance(piece, str) else orjson.dumps(mark(piece)) for piece in pieces)
    arguments = ast.arguments(
        posonlyargs=[], args=[ast.arg("line"), ast.arg("content")], kwonlyargs=[], defaults=[], kw_defaults=[]
    )
    expression = ast.Expression(ast.Lambda(arguments, _node(orjson.loads(text))))
    function: Build = eval(compile(ast.fix_missing_locations(expression), "<maker>", "eval"), {})  # noqa: S307  # constants and places alone
    return function


def _node(value: Any) -> ast.expr:
    if isinstance(value, dict):
        return ast.Dict([ast.Constant(key) for key in value], [_node(item) for item in value.values()])
    if isinstance(value, list):
        return ast.List([_node(item) for item in value], ast.Load())
    match = _MARK_TEXT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return ast.Constant(value)
    place = int(match[1])
    node = ast.Subscript(ast.Name("line", ast.Load()), ast.Constant(abs(place)), ast.Load())
    return node if place > 0 else ast.Call(ast.Name("content", ast.Load()), [node], [])


_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_ATOM = rb"[-+.\w]++"
_SCALAR = rb"(?>%b|%b)" % (_STRING, _ATOM)
_DEPTH = 4


def _nested() -> bytes:
    """Return the pattern of a JSON value with lists and objects, at most :data:`_DEPTH` of them inside one another."""
    inner = _STRING
    for _ in range(_DEPTH):
        inner = rb'(?>%b|[{\[](?:[^"{}\[\]]++|%b)*+[}\]])' % (_STRING, inner)
    return rb"(?>%b|%b)" % (inner, _ATOM)


_NESTED = _nested()


def pattern_of(texts: Sequence[Sequence[Piece]], nested: Collection[int]) -> re.Pattern[bytes]:
    """Return the pattern of several texts, joined by newlines, with a group for each place in the order of their first use.

    A content is ``null`` in the text. The value at a place in *nested* may be a list or an object. A value never matches in part, because the
    patterns of values are atomic and end where the JSON value ends.
    """
    groups = set[int]()
    parts = []
    for pieces in texts:
        parts.append(b"")
        for piece in pieces:
            if isinstance(piece, str):
                parts[-1] += re.escape(piece.encode())
            elif piece < 0:
                parts[-1] += b"null"
            elif piece in groups:
                parts[-1] += b"(?P=v%d)" % piece
            else:
                groups.add(piece)
                parts[-1] += b"(?P<v%d>%b)" % (piece, _NESTED if piece in nested else _SCALAR)
    return re.compile(b"\n".join(parts))


class Places:
    """Numbers of the values of one line, in the order of their first use. *first* is the first number, *fixed* has values with a number by their name."""

    def __init__(self, first: int, fixed: Mapping[object, tuple[int, object]]) -> None:
        self._next = first
        self._places: dict[object, tuple[int, bytes]] = {
            name: (place, orjson.dumps(value)) for name, (place, value) in fixed.items()
        }

    def place(self, name: object, value: object, plain: Callable[[object], object]) -> int:
        """Return the number of the value with this *name*. Another value of the same name gets a number of its own."""
        text = orjson.dumps(value, plain)
        while self._places.setdefault(name, (self._next, text))[1] != text:
            name = (name, "again")
        place, _ = self._places[name]
        self._next += place == self._next
        return place

    @property
    def values(self) -> dict[int, bytes]:
        """The JSON texts of the values by their number."""
        return dict(self._places.values())

    def mark(self, name: object, value: object, plain: Callable[[object], object]) -> str:
        """Return the mark of the value with this *name*."""
        return mark(self.place(name, value, plain))


Marks = Callable[[object, object], str]


def marked_read(payload: Mapping[str, Any], marks: Marks, content: int | None) -> dict[str, Any]:
    """Return the payload of ``subject.read`` with marks. *content* is the place of the digest of its content."""
    return {
        key: mark(-content) if key == "content" and content is not None else marks(key, value)
        for key, value in payload.items()
    }


def marked_judgment(payload: Mapping[str, Any], marks: Marks) -> dict[str, Any]:
    """Return the payload of ``eval.started`` or ``eval.completed`` with marks, in the order of the payload. Values that subjects seldom share have marks."""
    return {key: _marked_value(key, value, marks) for key, value in payload.items()}


_OF_SUBJECT = frozenset(
    (
        *("eval_id", "subject_id", "judge_latency_ms", "parent_eval_id", "score", "raw", "confidence", "created_at"),
        *("signals",),
    )
)
_OF_SCORE = frozenset(("confidence", "details", "signals", "feedback"))


def _marked_value(key: str, value: Any, marks: Marks) -> Any:
    if key == "scores" and isinstance(value, list | tuple):
        return [_marked_score(score, place, marks) for place, score in enumerate(value)]
    if key == "signals" and isinstance(value, Mapping) and "metrics" in value:
        return _marked_signals(value, marks)
    return marks(key, value) if key in _OF_SUBJECT else value


def _marked_score(score: Any, place: int, marks: Marks) -> Any:
    if not isinstance(score, Mapping):
        return marks(("score", place), score)
    metric = score.get("metric")
    is_shared = isinstance(metric, str) and score.get("rollout") == 0
    marked = {}
    for key, value in score.items():
        if key == "value":
            marked[key] = marks(("value", metric) if is_shared else ("value", place), value)
        else:
            marked[key] = marks((key, place), value) if key in _OF_SCORE else value
    return marked


def _marked_signals(signals: Mapping[str, Any], marks: Marks) -> dict[str, Any]:
    marked: dict[str, Any] = {}
    for key, value in signals.items():
        if key == "metrics" and isinstance(value, Mapping):
            marked[key] = {name: marks(("value", name), score) for name, score in value.items()}
        else:
            marked[key] = marks(("signal", key), value)
    return marked
