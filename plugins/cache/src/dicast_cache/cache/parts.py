"""The parts of a key by name, and the difference between two keys."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import attrs
import orjson

from .store import Entry

AROUND = 20
"""The number of letters that are shown on each side of the first difference of two texts."""

_NONCE = re.compile("\0(\\d+)\0")


def parts(key: Mapping[str, Any]) -> dict[str, object]:
    """Return the parts of *key* by name: ``model.temperature``, ``messages[1].content``…; a schema as its digest."""
    schema = key["schema"]
    schema_digest = None if schema is None else f"sha256 {sha256(orjson.dumps(schema)).hexdigest()}"
    return dict(_flat("", {**key, "schema": schema_digest}))


def _flat(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flat(f"{path}.{name}" if path else name, item)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _flat(f"{path}[{number}]", item)
    else:
        yield path, _NONCE.sub(r"<nonce \1>", value) if isinstance(value, str) else value


@attrs.frozen
class Difference:
    """The *parts* that differ, each with both values; None also marks a missing part."""

    parts: Mapping[str, tuple[object, object]]

    @classmethod
    def between(cls, this: Mapping[str, object], other: Mapping[str, object]) -> Difference:
        """Compare the parts of two keys."""
        names = dict.fromkeys((*this, *other))
        both = {name: (this.get(name), other.get(name)) for name in names}
        return cls({name: pair for name, pair in both.items() if pair[0] != pair[1]})

    @property
    def size(self) -> tuple[int, int]:
        """The number of parts that differ, and the number of letters by which their texts differ. The nearest key has the least size."""
        return len(self.parts), sum(_letters(*pair) for pair in self.parts.values())

    def plain(self) -> dict[str, dict[str, object]]:
        """Return the difference as JSON data."""
        return {name: {"this": this, "other": other} for name, (this, other) in self.parts.items()}

    def lines(self) -> list[str]:
        """Return a line of text for each part. Long texts are shown around their first difference."""
        return [f"{name}: {_parting(*pair)}" for name, pair in self.parts.items()] or ["no part differs"]


def nearest(entry: Entry, candidates: Iterable[Entry]) -> Entry | None:
    """Return the entry of *candidates* that differs least from *entry*, the oldest of several; None if there is no other entry."""
    target = parts(entry.key)
    candidates_left = (other for other in candidates if other.digest != entry.digest)
    return min(candidates_left, key=lambda other: Difference.between(target, parts(other.key)).size, default=None)


def _letters(first: object, other: object) -> int:
    if not (isinstance(first, str) and isinstance(other, str)):
        return 1
    begin = _shared(first, other)
    end = _shared(first[begin:][::-1], other[begin:][::-1])
    return len(first) + len(other) - 2 * (begin + end)


def _shared(first: str, other: str) -> int:
    """Return the length of the common beginning of two texts."""
    low, high = 0, min(len(first), len(other))
    while low < high:  # comparing slices is quicker than comparing letters
        middle = (low + high + 1) // 2
        low, high = (middle, high) if first[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _parting(first: object, other: object) -> str:
    if not (isinstance(first, str) and isinstance(other, str)):
        return f"{_written(first)} / {_written(other)}"
    at = _shared(first, other)
    return (
        f"from letter {at + 1}: {_cut(first, at)} / {_cut(other, at)}" if at else f"{_cut(first, 0)} / {_cut(other, 0)}"
    )


def _cut(text: str, at: int) -> str:
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{_written(text[begin:end])}{'…' if end < len(text) else ''}"


def _written(value: object) -> str:
    return orjson.dumps(value).decode()
