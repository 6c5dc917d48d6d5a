"""Columns as numpy arrays, and numbers in place of names. The caller passes the numpy module; equal numbers mean equal names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

from .names import HASH_BYTES, Names, joined_numbers, name_hash

Array = Any
"""An array of numpy."""

_SHIFTS, _BITS = (0, 20, 40), 24
"""Shifts of a hash for its slot in the first, second and third table, and the most bits of a slot. Each table resolves rows whose slots collided
in the previous table."""


def view(np: ModuleType, column: Any) -> Array:
    """Return *column* as a numpy array, without a copy."""
    return np.asarray(column)


def parts_by_key(np: ModuleType, keys: Array) -> Iterator[tuple[int, slice | Array]]:
    """Yield each distinct key with the slice or index array that selects its rows, in their order."""
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
    """Yield each distinct key with its row numbers, in their order."""
    for key, part in parts_by_key(np, keys):
        yield key, np.arange(part.start, part.stop) if isinstance(part, slice) else part


def exact_sum(np: ModuleType, amounts: Array) -> int:
    """Return the exact sum of integers, even if it does not fit into 8 bytes."""
    return (int((amounts >> 32).sum()) << 32) + int((amounts & 0xFFFFFFFF).sum())


def first_places(np: ModuleType, *columns: Array) -> Array:
    """Return for each row the first row with equal values in all *columns* of 8-byte integers. Sorting would take five times as long."""
    places, rest = np.empty(len(columns[0]), "i"), np.arange(len(columns[0]), dtype="i")
    for shift in _SHIFTS:
        values = [column[rest] for column in columns] if shift else columns
        bits = min(_BITS, len(rest).bit_length())
        slots = values[0] >> shift & (1 << bits) - 1
        table = np.empty(1 << bits, "i")
        table[slots[::-1]] = rest[::-1]  # the first row of a slot wins
        first = table[slots]
        is_equal = np.logical_and.reduce(
            [column[first] == value for column, value in zip(columns, values, strict=True)]
        )
        places[rest[is_equal]] = first[is_equal]
        rest = rest[~is_equal]
    if not len(rest):
        return places
    _, firsts, inverse = np.unique(
        np.stack([column[rest] for column in columns]), axis=1, return_index=True, return_inverse=True
    )
    places[rest] = rest[firsts[inverse.ravel()]]
    return places


class Numbering:
    """Numbers of the names of several columns, from 0 to below *size*: a name's number is its first place among all names.

    If the names of the ledger have hashes, names are compared by hash, without decoding their texts.
    """

    def __init__(self, np: ModuleType, *names: Names) -> None:
        self._np = np
        self._names = list({id(part): part for part in names}.values())
        self._starts = [0]
        for part in self._names:
            self._starts.append(self._starts[-1] + len(part))
        self.size = self._starts[-1]
        self._hashes = self._joined_hashes()
        self._numbers = self._by_texts() if self._hashes is None else first_places(np, *self._hashes)

    @classmethod
    def cached(cls, np: ModuleType, *names: Names) -> Numbering:
        """Return the numbering of *names*; it is cached on the names if they are the names of one ledger."""
        first, *rest = names
        if any(other is not first for other in rest):
            return cls(np, *names)
        numbering: Numbering | None = first.numbering
        if numbering is None or len(numbering.of(first)) != len(first):
            numbering = first.numbering = cls(np, first)
        return numbering

    def of(self, names: Names) -> Array:
        """Return the number of each of *names*, indexed by the number that the name has in *names*."""
        place = next(place for place, part in enumerate(self._names) if part is names)
        return self._numbers[self._starts[place] : self._starts[place + 1]]

    def find(self, names: Iterable[str | None]) -> dict[str | None, int]:
        """Return the numbers of *names*; names without a number are left out."""
        names = list(names)
        if self._hashes is None:
            parts = {name: part for part in self._names for name in names if part.find(name) is not None}
            return {name: int(self.of(part)[part.find(name)]) for name, part in parts.items()}
        np, (first, second) = self._np, self._hashes
        hashes = np.frombuffer(b"".join(map(name_hash, names)), "q").reshape(-1, 2)
        halves = np.unique(hashes[:, 0])
        if not names or not self.size:
            return {}
        near = np.searchsorted(halves, first)
        near[near == len(halves)] = 0
        likely = np.flatnonzero(halves[near] == first)
        places = dict(
            zip(zip(first[likely].tolist(), second[likely].tolist(), strict=True), likely.tolist(), strict=True)
        )
        pairs = zip(names, map(tuple, hashes.tolist()), strict=True)
        return {name: int(self._numbers[places[pair]]) for name, pair in pairs if pair in places}

    def sorted_texts(self, numbers: Array) -> tuple[Array, list[str]]:
        """Return the order that sorts *numbers*, and the names in that order. Only blocks with such names are decoded."""
        np = self._np
        ascends = bool((numbers[1:] >= numbers[:-1]).all())
        order = np.arange(len(numbers)) if ascends else np.argsort(numbers)
        ascending = numbers if ascends else numbers[order]
        texts: list[Any] = []
        for part, start, end in zip(self._names, self._starts, self._starts[1:], strict=False):
            low, high = np.searchsorted(ascending, (start, end))
            texts += part.texts_at((ascending[low:high] - start).tolist())
        return order, texts

    def _joined_hashes(self) -> tuple[Array, Array] | None:
        """Return the first and second half of each name's hash, or None if hashes are missing."""
        np = self._np
        parts = [names.hashes for names in self._names]
        if not parts or any(
            part is None or len(part) != HASH_BYTES * len(names) for part, names in zip(parts, self._names, strict=True)
        ):
            return None
        pairs = [np.frombuffer(part or b"", "q").reshape(-1, 2) for part in parts]
        first, second = (np.concatenate([pair[:, half] for pair in pairs]) for half in (0, 1))
        return first, second

    def _by_texts(self) -> Array:
        np = self._np
        parts: Sequence[Sequence[int]] = joined_numbers(self._names)
        return np.concatenate([np.array(part, "i") for part in parts]) if parts else np.zeros(0, "i")
