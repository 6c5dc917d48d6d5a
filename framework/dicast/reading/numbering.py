"""Columns as arrays of numpy, which whoever reads them brings along; and numbers in place of names: equal ones are equal names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from .names import MARK_BYTES, Names, mark_of, marks_joined

Array = Any
"""An array of numpy."""

_TURNS, _BITS = (0, 20, 40), 24
"""From which bit on a mark is a place in a table, each time for what the last table did not tell apart; a table has 2^24 places at most."""


def view(np: ModuleType, column: Any) -> Array:
    """*column* as an array of numpy, without a copy."""
    return np.asarray(column)


def parts_by_key(np: ModuleType, keys: Array) -> Iterator[tuple[int, slice | Array]]:
    """Each of *keys*, with what chooses its places in their order from an array."""
    if not len(keys):
        return
    ascend = bool((keys[1:] >= keys[:-1]).all())  # such as the runs of a ledger
    order, ordered = None, keys
    if not ascend:
        small = keys.astype("h") if keys.min() >= -(2**15) and keys.max() < 2**15 else keys  # these are sorted by radix
        order = np.argsort(small, kind="stable")
        ordered = keys[order]
    starts = (np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist()
    for start, end in zip([0, *starts], [*starts, len(keys)], strict=True):
        yield int(ordered[start]), slice(start, end) if order is None else order[start:end]


def rows_by_key(np: ModuleType, keys: Array) -> Iterator[tuple[int, Array]]:
    """Each of *keys*, with the places that have it in their order."""
    for key, part in parts_by_key(np, keys):
        yield key, np.arange(part.start, part.stop) if isinstance(part, slice) else part


def exact_sum(np: ModuleType, amounts: Array) -> int:
    """The exact sum of whole numbers, which may not fit into 8 bytes."""
    return (int((amounts >> 32).sum()) << 32) + int((amounts & 0xFFFFFFFF).sum())


def first_places(np: ModuleType, *columns: Array) -> Array:
    """For each place the first one at which all *columns*, which are of 8 bytes, have the same. Sorting would take five times as long."""
    found, left = np.empty(len(columns[0]), "i"), np.arange(len(columns[0]), dtype="i")
    for turn in _TURNS:
        here = [column[left] for column in columns] if turn else columns
        bits = min(_BITS, len(left).bit_length())
        slots = here[0] >> turn & (1 << bits) - 1
        table = np.empty(1 << bits, "i")
        table[slots[::-1]] = left[::-1]  # of several the first
        first = table[slots]
        same = np.logical_and.reduce([column[first] == own for column, own in zip(columns, here, strict=True)])
        found[left[same]] = first[same]
        left = left[~same]
    if not len(left):
        return found
    _, firsts, same = np.unique(
        np.stack([column[left] for column in columns]), axis=1, return_index=True, return_inverse=True
    )
    found[left] = left[firsts[same.ravel()]]
    return found


class Numbering:
    """Numbers the names of several columns together, from 0 to below *size*: each by its first place among all of them.

    Where a ledger keeps marks of its names they are told apart by these, without the names themselves.
    """

    def __init__(self, np: ModuleType, *names: Names) -> None:
        self._np = np
        self._names = list({id(one): one for one in names}.values())
        self._starts = [0]
        for one in self._names:
            self._starts.append(self._starts[-1] + len(one))
        self.size = self._starts[-1]
        self._marks = self._marked()
        self._numbers = self._by_texts() if self._marks is None else first_places(np, *self._marks)

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
        names = list(wanted)
        if self._marks is None:
            there = {name: one for one in self._names for name in names if one.find(name) is not None}
            return {name: int(self.of(one)[one.find(name)]) for name, one in there.items()}
        np, (first, second) = self._np, self._marks
        marks = np.frombuffer(b"".join(map(mark_of, names)), "q").reshape(-1, 2)
        halves = np.unique(marks[:, 0])
        if not names or not self.size:
            return {}
        near = np.searchsorted(halves, first)
        near[near == len(halves)] = 0
        likely = np.flatnonzero(halves[near] == first)
        known = dict(
            zip(zip(first[likely].tolist(), second[likely].tolist(), strict=True), likely.tolist(), strict=True)
        )
        found = zip(names, map(tuple, marks.tolist()), strict=True)
        return {name: int(self._numbers[known[mark]]) for name, mark in found if mark in known}

    def named(self, numbers: Array) -> tuple[Array, list[str]]:
        """The names with these numbers, in an order that takes little time, and that order: the places in *numbers*."""
        np = self._np
        ascends = bool((numbers[1:] >= numbers[:-1]).all())
        order = np.arange(len(numbers)) if ascends else np.argsort(numbers)
        ascending = numbers if ascends else numbers[order]
        found: list[Any] = []
        for one, start, end in zip(self._names, self._starts, self._starts[1:], strict=False):
            low, high = np.searchsorted(ascending, (start, end))
            found += one.texts_at((ascending[low:high] - start).tolist())
        return order, found

    def _marked(self) -> tuple[Array, Array] | None:
        """Both halves of the mark of each name; None where marks are missing."""
        np = self._np
        marks = [one.marks for one in self._names]
        if not marks or any(
            one is None or len(one) != MARK_BYTES * len(names) for one, names in zip(marks, self._names, strict=True)
        ):
            return None
        pairs = [np.frombuffer(one or b"", "q").reshape(-1, 2) for one in marks]
        first, second = (np.concatenate([pair[:, half] for pair in pairs]) for half in (0, 1))
        return first, second

    def _by_texts(self) -> Array:
        np = self._np
        parts: Sequence[Sequence[int]] = marks_joined(self._names)
        return np.concatenate([np.array(part, "i") for part in parts]) if parts else np.zeros(0, "i")
