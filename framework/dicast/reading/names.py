"""The names that columns are about, each with a number; equal ones may have several numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import count
from typing import Any

import attrs
import orjson

Name = str | None

MARK_BYTES = 16


def mark_of(name: Name) -> bytes:
    """What tells a name from others: 16 bytes of a digest."""
    return blake2b(b"\xff" if name is None else name.encode(), digest_size=MARK_BYTES).digest()


@attrs.define(eq=False)
class Names:
    """Names by their numbers, which only grow: several columns may share them.

    Those that a ledger keeps stay as it has them, JSON lists in *_kept*, until somebody asks for their *texts*; *marks* tell them apart before
    that, :data:`MARK_BYTES` each. They are None once a name was added here.
    """

    _texts: list[Name] = attrs.field(factory=list)
    numbering: Any = attrs.field(default=None, init=False)
    """What numbers these names alone, kept by whoever has made it."""
    marks: bytearray | None = attrs.field(factory=bytearray, init=False)
    _kept: list[str] = attrs.field(factory=list, init=False)
    _starts: list[int] = attrs.field(factory=lambda: [0], init=False)
    _first: array[int] = attrs.field(factory=lambda: array("i"), init=False)
    _known: dict[Name, int] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        if self._texts:
            self.marks = None

    def __len__(self) -> int:
        return self._starts[-1] if self._kept else len(self._texts)

    def keep(self, size: int, texts: str, marks: bytes) -> None:
        """Add so many names of a ledger: a JSON list, and their marks."""
        self._kept.append(texts)
        self._starts.append(self._starts[-1] + size)
        if self.marks is not None:
            self.marks += marks

    @property
    def texts(self) -> list[Name]:
        """All names by their numbers."""
        while len(self._texts) < self._starts[-1]:
            self._texts += orjson.loads(self._kept[bisect_left(self._starts, len(self._texts) + 1) - 1])
        return self._texts

    def texts_of(self, numbers: Iterable[int]) -> list[Name]:
        """The names with these numbers."""
        return list(map(self.texts.__getitem__, numbers))

    def texts_at(self, numbers: Sequence[int]) -> list[Name]:
        """The names with these numbers, which ascend, without keeping the texts of the others."""
        if not self._kept or len(self._texts) == self._starts[-1]:
            return self.texts_of(numbers)
        found: list[Name] = []
        low = 0
        for place, texts in enumerate(self._kept):
            start, end = self._starts[place : place + 2]
            high = bisect_left(numbers, end, low)
            if high > low:
                names = orjson.loads(texts)
                found += [names[number - start] for number in numbers[low:high]]
                low = high
        return found

    @property
    def first(self) -> array[int]:
        """For each number the first number of the same name, which so tells names apart."""
        start, texts = len(self._first), self.texts
        if start < len(texts):
            new = texts[start:]
            self._first.extend(map(self._known.setdefault, new, count(start)))
        return self._first

    def number(self, name: Name) -> int:
        """The number of a name, which it is given if it has none."""
        if len(self._first) < len(self):
            _ = self.first
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = len(self.texts)
            self.texts.append(name)
            self._first.append(found)
            self.marks = None
        return found

    def find(self, name: Name) -> int | None:
        """The first number of a name; None where it has none."""
        _ = self.first
        return self._known.get(name)

    def copied(self) -> Names:
        """The same names, to which others may be added without changing these."""
        return Names(list(self.texts))


def marks_joined(names: Sequence[Names]) -> Sequence[Sequence[int]]:
    """For each number of each of *names*, one that tells names apart across them."""
    whole = Names([name for one in names for name in one.texts]).first
    found, start = [], 0
    for one in names:
        found.append(whole[start : start + len(one)])
        start += len(one)
    return found
