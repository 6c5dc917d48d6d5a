"""The names that columns are about, each with a number; equal ones may have several numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import count

import attrs

Name = str | None


@attrs.define(eq=False)
class Names:
    """Names by their numbers, which only grow: several columns may share them.

    *texts* has equal names as one object; *first* has for each number the first one that the same name has, and so tells names apart.
    """

    texts: list[Name] = attrs.field(factory=list)
    _first: array[int] = attrs.field(factory=lambda: array("i"), init=False)
    _known: dict[Name, int] = attrs.field(factory=dict, init=False)

    @property
    def first(self) -> array[int]:
        """For each number the first number of the same name."""
        start, texts = len(self._first), self.texts
        if start < len(texts):
            new = texts[start:]
            self._first.extend(map(self._known.setdefault, new, count(start)))
            texts[start:] = map(texts.__getitem__, self._first[start:])
        return self._first

    def number(self, name: Name) -> int:
        """The number of a name, which it is given if it has none."""
        known = self._known
        if len(self._first) < len(self.texts):
            _ = self.first
        found = known.get(name)
        if found is None:
            found = known[name] = len(self.texts)
            self.texts.append(name)
            self._first.append(found)
        return found

    def find(self, name: Name) -> int | None:
        """The first number of a name; None where it has none."""
        _ = self.first
        return self._known.get(name)

    def texts_of(self, numbers: Iterable[int]) -> list[Name]:
        """The names with these numbers."""
        return list(map(self.texts.__getitem__, numbers))

    def copied(self) -> Names:
        """The same names, to which others may be added without changing these."""
        return Names(list(self.texts))


def joined(one: Names, other: Names) -> tuple[Sequence[int], Sequence[int]]:
    """For each number of both, one that tells names apart across them."""
    if one is other:
        return one.first, one.first
    both = Names([*one.texts, *other.texts]).first
    return both[: len(one.texts)], both[len(one.texts) :]
