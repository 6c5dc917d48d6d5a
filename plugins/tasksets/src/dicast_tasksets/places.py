"""The place of a value in a JSON text: line and column for a path of keys and indices."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Path = tuple[str | int, ...]

Place = tuple[int, int]
"""Line and column, both counted from 1."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]|[^][{},:\s"]+', re.DOTALL)


def json_place(text: str, path: Path, *, key: bool = False) -> Place:
    """Return the place of the value at *path* in the JSON *text*, or with *key* of its key; of its nearest ancestor if it is missing.

    The function reads *text* up to the place, so it is for messages alone.
    """
    best, depth = 0, -1
    for value_path, offset, is_key in _walk(text):
        if is_key and not key:
            continue
        if value_path == path:
            return _line_and_column(text, offset)
        if not is_key and len(value_path) > depth and value_path == path[: len(value_path)]:
            best, depth = offset, len(value_path)
    return _line_and_column(text, best)


def _walk(text: str) -> Iterator[tuple[Path, int, bool]]:
    """Yield each value of the JSON *text* with its path and offset. A member's key comes before its value, marked as a key."""
    steps: list[str | int] = []  # for each container that is open, the member that is being read
    expects_key = False
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "}]":
            steps.pop()
            expects_key = False
        elif word == ",":
            expects_key = isinstance(steps[-1], str)
            if isinstance(steps[-1], int):
                steps[-1] += 1
        elif word == ":":
            expects_key = False
        elif expects_key:
            steps[-1] = json.loads(word)
            yield tuple(steps), token.start(), True
        else:
            yield tuple(steps), token.start(), False
            if word in "{[":
                steps.append("" if word == "{" else 0)
                expects_key = word == "{"


def _line_and_column(text: str, offset: int) -> Place:
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
