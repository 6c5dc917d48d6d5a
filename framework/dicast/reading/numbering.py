"""Columns as arrays of numpy, which whoever reads them brings along; and numbers in place of names: equal ones are equal names."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from .names import Names, mark_of, marks_joined

Array = Any
"""An array of numpy."""


def view(np: ModuleType, column: array[Any]) -> Array:
    """*column* as an array of numpy, without a copy."""
    return np.frombuffer(column, column.typecode) if len(column) else np.empty(0, column.typecode)


def rows_by_key(np: ModuleType, keys: Array) -> Iterator[tuple[int, Array]]:
    """Each of *keys*, with the places that have it in their order."""
    if not len(keys):
        return
    small = keys.astype("h") if keys.min() >= -(2**15) and keys.max() < 2**15 else keys  # these are sorted by radix
    order = np.argsort(small, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
        yield int(ordered[start]), order[start:end]


def exact_sum(np: ModuleType, amounts: Array) -> int:
    """The exact sum of whole numbers, which may not fit into 8 bytes."""
    return (int((amounts >> 32).sum()) << 32) + int((amounts & 0xFFFFFFFF).sum())


class Numbering:
    """Numbers the names of several columns together, from 0 to below *size*.

    Where a ledger keeps marks of its names they are told apart by these, without the names themselves: by 8 bytes, and where these are equal
    by 8 more. Should these differ the names decide, as they do where there are no marks.
    """

    def __init__(self, np: ModuleType, *names: Names) -> None:
        self._np = np
        self._names = list({id(one): one for one in names}.values())
        self._starts = [0]
        for one in self._names:
            self._starts.append(self._starts[-1] + len(one))
        self._marks: Array = None
        self._numbers = self._by_marks()
        if self._numbers is None:
            self._marks, self._numbers = None, self._by_texts()
        self.size = int(self._numbers.max(initial=-1)) + 1

    @classmethod
    def made(cls, np: ModuleType, *names: Names) -> Numbering:
        """The numbering of *names*, made once where it is of the names of one ledger alone."""
        first, *others = names
        if any(one is not first for one in others):
            return cls(np, *names)
        kept = first.numbering
        if kept is None or len(kept.of(first)) != len(first):
            kept = first.numbering = cls(np, first)
        found: Numbering = kept
        return found

    def of(self, names: Names) -> Array:
        """The number of each of *names*, by the number that it has there."""
        place = next(place for place, one in enumerate(self._names) if one is names)
        return self._numbers[self._starts[place] : self._starts[place + 1]]

    def find(self, wanted: Iterable[str | None]) -> dict[str | None, int]:
        """The numbers of the *wanted* names, of those that have one."""
        if self._marks is None:
            there = {name: one for one in self._names for name in wanted if one.find(name) is not None}
            return {name: int(self.of(one)[one.find(name)]) for name, one in there.items()}
        np = self._np
        names = list(wanted)
        marks = np.frombuffer(b"".join(map(mark_of, names)), "q").reshape(-1, 2)
        places = np.searchsorted(self._marks[:, 0], marks[:, 0])
        inside = np.flatnonzero(places < len(self._marks))
        same = inside[(self._marks[places[inside]] == marks[inside]).all(axis=1)]
        return {names[place]: int(places[place]) for place in same.tolist()}

    def named(self, numbers: Array) -> tuple[Array, list[str]]:
        """The names with these numbers, in an order that takes little time, and that order: the places in *numbers*."""
        np = self._np
        holders = np.empty(self.size, "q")
        holders[self._numbers[::-1]] = np.arange(len(self._numbers))[::-1]  # the first
        places = holders[numbers]
        order = np.argsort(places)
        ascending = places[order]
        found: list[Any] = []
        for one, start, end in zip(self._names, self._starts, self._starts[1:], strict=False):
            low, high = np.searchsorted(ascending, (start, end))
            found += one.texts_at((ascending[low:high] - start).tolist())
        return order, found

    def _by_marks(self) -> Array:
        """The number of each name by its mark; None where marks are missing, or do not tell names apart."""
        np = self._np
        marks = [one.marks for one in self._names]
        if not marks or any(
            one is None or len(one) != 16 * len(names) for one, names in zip(marks, self._names, strict=True)
        ):
            return None
        pairs = np.frombuffer(b"".join([bytes(one or b"") for one in marks]), "q").reshape(-1, 2)
        order = np.argsort(pairs[:, 0])
        first, second = pairs[order, 0], pairs[order, 1]
        differs = first[1:] != first[:-1]
        if (second[1:] != second[:-1])[~differs].any():
            return None
        new = np.concatenate(([True], differs)) if len(order) else np.zeros(0, bool)
        numbers = np.empty(len(order), "i")
        numbers[order] = np.cumsum(new) - 1
        self._marks = pairs[order[new]]
        return numbers

    def _by_texts(self) -> Array:
        np = self._np
        parts: Sequence[Sequence[int]] = marks_joined(self._names)
        return np.concatenate([np.array(part, "i") for part in parts]) if parts else np.zeros(0, "i")
