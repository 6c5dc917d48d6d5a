"""JSON values compared with each other: whether they are the same, and where not.

Everything here goes over values in loops, not in recursion, so that no nesting is too deep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import attrs

from .excerpts import contrast, excerpt
from .paths import ANY, Branches, Path, ends, follow, pointer

ABSENT = object()
"""Stands for the value of a side that has none."""

Pair = tuple[object, object, object]
"""A key or index, and what is there in the output and in the reference."""

Inside = tuple[object, object, Branches]
"""A key, what is there, and what is left out of that."""

_PLAIN = frozenset((str, int, float, type(None)))
_SCALARS = _PLAIN | {bool}
_NESTED = (dict, list, tuple, Mapping)


@attrs.frozen
class Difference:
    """What is at *path* in the output (*found*) and in the reference (*wanted*), one of them perhaps :data:`ABSENT`."""

    path: Path
    found: object
    wanted: object

    def __str__(self) -> str:
        place = pointer(self.path) or "the whole value"
        if self.wanted is ABSENT:
            return f"{place} is not in the reference: {excerpt(self.found)}"
        if self.found is ABSENT:
            return f"{place} is missing: {excerpt(self.wanted)}"
        return f"{place}: {contrast(self.found, self.wanted)}"


def same(output: object, reference: object) -> bool:
    """Whether both are the same JSON value: keys in any order, 1 equal to 1.0 and not to true."""
    return next(differences(output, reference), None) is None


def differences(
    output: object, reference: object, ignored: Branches = (), *, ignore_order: bool = False
) -> Iterator[Difference]:
    """Yield where *output* differs from *reference*, in the order of the output, and leave out what is *ignored*.

    Lists are compared item by item. With *ignore_order* they are the same when they have the same items as often; of
    others, the items that only one has are yielded, and where each has one such item, the differences inside.
    """
    tokens = Tokens() if ignore_order else None
    left: list[tuple[Path, object, object, Branches]] = [(None, output, reference, ignored)]
    while left:
        path, one, other, branches = left.pop()
        pairs = _pairs(one, other, branches, tokens)
        if pairs is None:
            if not _alike(one, other):
                yield Difference(path, one, other)
            continue
        inside: list[tuple[Path, object, object, Branches]] = []
        for step, a, b in pairs:
            below = follow(branches, step) if branches else ()
            if not (below and ends(below)):
                inside.append(((path, step), a, b, below))
        left.extend(reversed(inside))


def _pairs(one: object, other: object, branches: Branches, tokens: Tokens | None) -> Iterable[Pair] | None:
    """What is to be compared inside two objects or two lists; None for anything else."""
    if isinstance(one, dict | Mapping) and isinstance(other, dict | Mapping):
        return _by_key(one, other)
    if not (isinstance(one, list | tuple) and isinstance(other, list | tuple)):
        return None
    if tokens is None:
        return _by_index(one, other)
    return _by_content(one, other, follow(branches, ANY), tokens)


def _by_key(one: Mapping[object, object], other: Mapping[object, object]) -> Iterator[Pair]:
    for key, item in one.items():
        wanted = other.get(key, ABSENT)
        if item is not wanted:
            yield key, item, wanted
    for key, wanted in other.items():
        if key not in one:
            yield key, ABSENT, wanted


def _by_index(one: Sequence[object], other: Sequence[object]) -> Iterator[Pair]:
    both = min(len(one), len(other))
    for index in range(both):
        yield index, one[index], other[index]
    for index in range(both, len(one)):
        yield index, one[index], ABSENT
    for index in range(both, len(other)):
        yield index, ABSENT, other[index]


def _by_content(one: Sequence[object], other: Sequence[object], below: Branches, tokens: Tokens) -> Iterator[Pair]:
    if ends(below):
        return
    places: dict[Hashable, list[int]] = {}
    for index, item in enumerate(other):
        places.setdefault(tokens.of(item, below), []).append(index)
    extra = []
    for index, item in enumerate(one):
        equal = places.get(tokens.of(item, below))
        if equal:
            equal.pop()
        else:
            extra.append(index)
    lacking = sorted(index for indices in places.values() for index in indices)
    if len(extra) == len(lacking) == 1:
        yield extra[0], one[extra[0]], other[lacking[0]]
        return
    yield from ((index, one[index], ABSENT) for index in extra)
    yield from ((index, ABSENT, other[index]) for index in lacking)


def _alike(one: object, other: object) -> bool:
    # In Python True equals 1, in JSON it does not.
    if one is ABSENT or other is ABSENT:
        return False
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


class Tokens:
    """One token for all JSON values that are the same, whatever the order of keys, and of items in lists.

    A text, a number and null are their own tokens. Every object and list is looked into once.
    """

    def __init__(self) -> None:
        self._tokens: dict[Hashable, Hashable] = {}
        self._known: dict[Hashable, Hashable] = {}

    def of(self, value: object, branches: Branches) -> Hashable:
        """The token of *value*, less what *branches* leave out."""
        found = [(value, branches)]
        for one, below in found:  # grows as it goes
            if type(one) not in _SCALARS and _mark(one, below) not in self._known:
                found += [each[1:] for each in _inside(one, below) if type(each[1]) not in _SCALARS]
        for one, below in reversed(found):
            self._token(one, below)
        return self._token(value, branches)

    def _token(self, value: object, branches: Branches) -> Hashable:
        """The token of *value*, once all that is inside it is known."""
        if type(value) in _PLAIN:
            return value
        if not isinstance(value, _NESTED):
            return type(value), repr(value)
        mark = _mark(value, branches)
        token = self._known.get(mark)
        if token is None:
            inside = [
                (key, item if type(item) in _PLAIN else self._token(item, below))
                for key, item, below in _inside(value, branches)
            ]
            if isinstance(value, list | tuple):
                content: Hashable = list, frozenset(Counter(inside).items())
            else:
                content = dict, frozenset(inside)
            token = self._known[mark] = self._tokens.setdefault(content, object())
        return token


def _inside(value: object, branches: Branches) -> list[Inside]:
    """The items of an object or list with their keys (of a list, all the same) and what is left out of them."""
    if isinstance(value, list | tuple):
        below = follow(branches, ANY) if branches else ()
        return [] if ends(below) else [(ANY, item, below) for item in value]
    if not isinstance(value, Mapping):
        return []
    if not branches:
        return [(key, item, ()) for key, item in value.items()]
    found = [(key, item, follow(branches, key)) for key, item in value.items()]
    return [each for each in found if not ends(each[2])]


def _mark(value: object, branches: Branches) -> Hashable:
    return (id(value), *map(id, branches)) if branches else id(value)
