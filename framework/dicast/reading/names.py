"""Names of columns by number; a name may have several numbers."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import count
from threading import Lock
from typing import Any
from weakref import ref

import attrs
import orjson

Name = str | None

HASH_BYTES = 16


def name_hash(name: Name) -> bytes:
    """Return the hash that identifies a name: :data:`HASH_BYTES` bytes of BLAKE2b."""
    return blake2b(b"\xff" if name is None else name.encode(), digest_size=HASH_BYTES).digest()


@attrs.define(eq=False)
class Names:
    """Names by number. Numbers are never removed, so several columns may share the names.

    Names of a ledger stay encoded, as JSON lists in *_blocks*, until a reader asks for their *texts*. Until then *hashes* identifies them, with
    :data:`HASH_BYTES` bytes per name. It is None once a name was added with :meth:`number`.
    """

    _texts: list[Name] = attrs.field(factory=list)
    numbering: Any = attrs.field(default=None, init=False)
    """The cached numbering of these names alone; see :meth:`Numbering.cached`."""
    hashes: bytearray | None = attrs.field(factory=bytearray, init=False)
    _blocks: list[str | Callable[[], bytes]] = attrs.field(factory=list, init=False)
    _starts: list[int] = attrs.field(factory=lambda: [0], init=False)
    _first: array[int] = attrs.field(factory=lambda: array("i"), init=False)
    _number_by_name: dict[Name, int] = attrs.field(factory=dict, init=False)
    _starts_by_event: dict[int, int] = attrs.field(factory=dict, init=False)
    """The number of the first name of a block, by the number of its first event."""
    _lock: Lock = attrs.field(factory=Lock, init=False)

    def __attrs_post_init__(self) -> None:
        if self._texts:
            self.hashes = None

    def __len__(self) -> int:
        return self._starts[-1] if self._blocks else len(self._texts)

    def add_block(self, size: int, texts: str | Callable[[], bytes], hashes: bytes) -> None:
        """Add *size* names of a ledger: a JSON list, or a function that returns it, and the hashes of the names."""
        self._blocks.append(texts)
        self._starts.append(self._starts[-1] + size)
        if self.hashes is not None:
            self.hashes += hashes

    def start_of_block(self, first: int, size: int, texts: Callable[[], bytes], hashes: bytes) -> int:
        """Return the number of the first name of the block from event *first*. Its names are added if the block is new, or has other names now.

        The other arguments are as in :meth:`add_block`.
        """
        with self._lock:
            start = self._starts_by_event.get(first)
            if start is not None and self.hashes and self.hashes.startswith(hashes, start * HASH_BYTES):
                return start
            start = self._starts_by_event[first] = len(self)
            self.add_block(size, texts, hashes)
            return start

    @property
    def texts(self) -> list[Name]:
        """All names by number."""
        while len(self._texts) < self._starts[-1]:
            self._texts += _decoded(self._blocks[bisect_left(self._starts, len(self._texts) + 1) - 1])
        return self._texts

    def texts_of(self, numbers: Iterable[int]) -> list[Name]:
        """Return the names with these numbers."""
        return list(map(self.texts.__getitem__, numbers))

    def texts_at(self, numbers: Sequence[int]) -> list[Name]:
        """Return the names with these ascending numbers, without keeping the texts of other names in memory."""
        if not self._blocks or len(self._texts) == self._starts[-1]:
            return self.texts_of(numbers)
        texts: list[Name] = []
        low = 0
        for place, block in enumerate(self._blocks):
            start, end = self._starts[place : place + 2]
            high = bisect_left(numbers, end, low)
            if high > low:
                names = _decoded(block)
                texts += [names[number - start] for number in numbers[low:high]]
                low = high
        return texts

    @property
    def first(self) -> array[int]:
        """The first number of each number's name, by number: equal entries are equal names."""
        start, texts = len(self._first), self.texts
        if start < len(texts):
            new = texts[start:]
            self._first.extend(map(self._number_by_name.setdefault, new, count(start)))
        return self._first

    def number(self, name: Name) -> int:
        """Return the number of a name; add the name if it has none."""
        if len(self._first) < len(self):
            _ = self.first
        number = self._number_by_name.get(name)
        if number is None:
            number = self._number_by_name[name] = len(self.texts)
            self.texts.append(name)
            self._first.append(number)
            self.hashes = None
        return number

    def find(self, name: Name) -> int | None:
        """Return the first number of a name, or None if it has none."""
        _ = self.first
        return self._number_by_name.get(name)

    def copy(self) -> Names:
        """Return a copy. Names added to the copy do not change the original."""
        return Names(list(self.texts))


def _decoded(block: str | Callable[[], bytes]) -> list[Name]:
    names: list[Name] = orjson.loads(block if isinstance(block, str) else block())
    return names


class SharedNames:
    """The names of a ledger. All columns of the ledger that are in use at one time share them."""

    def __init__(self) -> None:
        self._names: Callable[[], Names | None] = lambda: None

    def get(self, run_id: str | None) -> Names:
        """Return the names for columns of the ledger. Columns of a run have names of their own, which are fewer."""
        names = self._names() if run_id is None else None
        if names is None or names.hashes is None:
            names = Names()
            if run_id is None:
                self._names = ref(names)
        return names


def joined_numbers(names: Sequence[Names]) -> Sequence[Sequence[int]]:
    """Return for each item of *names* the numbers of its names in a common numbering: equal numbers are equal names."""
    joined = Names([name for part in names for name in part.texts]).first
    numbers, start = [], 0
    for part in names:
        numbers.append(joined[start : start + len(part)])
        start += len(part)
    return numbers
