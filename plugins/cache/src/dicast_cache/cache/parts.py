"""The parts that a key is made of, by name, and in which of them two keys differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import attrs
import orjson

from .store import Entry

AROUND = 20
"""How many letters are shown on each side of where two texts part."""

_NONCE = re.compile("\0(\\d+)\0")


def parts(key: Mapping[str, Any]) -> dict[str, object]:
    """What *key* is made of: ``model.temperature``, ``messages[1].content``…; a schema by its digest."""
    schema = key["schema"]
    told = None if schema is None else f"sha256 {sha256(orjson.dumps(schema)).hexdigest()}"
    return dict(_flat("", {**key, "schema": told}))


def _flat(path: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _flat(f"{path}.{name}" if path else name, each)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _flat(f"{path}[{number}]", each)
    else:
        yield path, _NONCE.sub(r"<nonce \1>", value) if isinstance(value, str) else value


@attrs.frozen
class Difference:
    """The *parts* that differ, each with both values; None stands for a part that one does not have, too."""

    parts: Mapping[str, tuple[object, object]]

    @classmethod
    def between(cls, one: Mapping[str, object], other: Mapping[str, object]) -> Difference:
        """Compare the parts of two keys."""
        names = dict.fromkeys((*one, *other))
        both = {name: (one.get(name), other.get(name)) for name in names}
        return cls({name: pair for name, pair in both.items() if pair[0] != pair[1]})

    @property
    def size(self) -> tuple[int, int]:
        """For finding the nearest: in how many parts, and by how many letters of texts."""
        return len(self.parts), sum(_letters(*pair) for pair in self.parts.values())

    def plain(self) -> dict[str, dict[str, object]]:
        """As JSON data."""
        return {name: {"this": this, "other": other} for name, (this, other) in self.parts.items()}

    def lines(self) -> list[str]:
        """For readers: texts from where they part."""
        return [f"{name}: {_parting(*pair)}" for name, pair in self.parts.items()] or ["no part differs"]


def nearest(entry: Entry, others: Iterable[Entry]) -> Entry | None:
    """The one of *others* that differs least from *entry*, the oldest of several; None when there is no other."""
    own = parts(entry.key)
    there = (other for other in others if other.digest != entry.digest)
    return min(there, key=lambda other: Difference.between(own, parts(other.key)).size, default=None)


def _letters(one: object, other: object) -> int:
    if not (isinstance(one, str) and isinstance(other, str)):
        return 1
    begin = _shared(one, other)
    end = _shared(one[begin:][::-1], other[begin:][::-1])
    return len(one) + len(other) - 2 * (begin + end)


def _shared(one: str, other: str) -> int:
    """How many letters both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # comparing slices is quicker than comparing letters
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _parting(one: object, other: object) -> str:
    if not (isinstance(one, str) and isinstance(other, str)):
        return f"{_written(one)} / {_written(other)}"
    at = _shared(one, other)
    return f"from letter {at + 1}: {_cut(one, at)} / {_cut(other, at)}" if at else f"{_cut(one, 0)} / {_cut(other, 0)}"


def _cut(text: str, at: int) -> str:
    begin, end = max(0, at - AROUND), at + AROUND
    return f"{'…' if begin else ''}{_written(text[begin:end])}{'…' if end < len(text) else ''}"


def _written(value: object) -> str:
    return orjson.dumps(value).decode()
