"""JSON values compared with each other: the places where they are not the same.

Everything here goes over values in loops, not in recursion, so that no nesting is too deep.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import attrs

from .excerpts import contrast, excerpt
from .paths import ANY, Branches, Path, ends, follow, pointer

ABSENT = object()
"""Stands for the value of a side that has none."""

Pair = tuple[object, object, object]
"""A key or index, and what is there in the output and in the reference."""

_PLAIN = frozenset((str, int, float, type(None)))
_SCALARS = _PLAIN | {bool}
_BOOLEANS = {True: object(), False: object()}


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


def differences(
    output: object, reference: object, ignored: Branches = (), *, ignore_order: bool = False
) -> Iterator[Difference]:
    """Yield where *output* differs from *reference*, in the order of the output, and leave out what is *ignored*.

    They are the same JSON value where nothing is yielded: keys in any order, 1 equal to 1.0 and not to true. Lists are
    compared item by item. With *ignore_order* they are the same when they have the same items as often; of
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
        if item is not wanted and not (type(item) in _PLAIN and type(wanted) in _PLAIN and item == wanted):
            yield key, item, wanted
    for key, wanted in other.items():
        if key not in one:
            yield key, ABSENT, wanted


def _by_index(one: Sequence[object], other: Sequence[object]) -> Iterator[Pair]:
    both = min(len(one), len(other))
    for index, (item, wanted) in enumerate(zip(one, other, strict=False)):
        if not (type(item) in _PLAIN and type(wanted) in _PLAIN and item == wanted):  # most are such, and need no more
            yield index, item, wanted
    for index in range(both, len(one)):
        yield index, one[index], ABSENT
    for index in range(both, len(other)):
        yield index, ABSENT, other[index]


def _by_content(one: Sequence[object], other: Sequence[object], below: Branches, tokens: Tokens) -> Iterator[Pair]:
    if ends(below):
        return
    places: dict[Hashable, list[int]] = {}
    for index, token in enumerate(tokens.of_all(other, below)):
        places.setdefault(token, []).append(index)
    extra = []
    for index, token in enumerate(tokens.of_all(one, below)):
        equal = places.get(token)
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

    def of_all(self, items: Sequence[object], branches: Branches) -> list[Hashable]:
        """The tokens of *items*, less what *branches* leave out of each."""
        found = [(item, branches) for item in items if type(item) not in _SCALARS]
        for one, below in found:  # grows as it goes
            if _mark(one, below) not in self._known:
                found += _nested(one, below)
        for one, below in reversed(found):  # what is inside first
            if _mark(one, below) not in self._known:
                self._known[_mark(one, below)] = self._new(one, below)
        return [self._token(item, branches) for item in items]

    def _token(self, value: object, branches: Branches) -> Hashable:
        """The token of *value*; what is in it, and itself if it is nested, must be known."""
        if type(value) in _PLAIN:
            return value
        return _BOOLEANS[value] if isinstance(value, bool) else self._known[_mark(value, branches)]

    def _new(self, value: object, branches: Branches) -> Hashable:
        token = self._token
        if isinstance(value, list | tuple):
            below = follow(branches, ANY) if branches else ()
            counts: dict[Hashable, int] = {}
            for item in () if ends(below) else value:
                each = item if type(item) in _PLAIN else token(item, below)
                counts[each] = counts.get(each, 0) + 1
            content: Hashable = list, frozenset(counts.items())
        elif not isinstance(value, dict | Mapping):
            content = type(value), repr(value)
        elif branches:
            content = dict, frozenset([(key, token(item, below)) for key, item, below in _kept(value, branches)])
        else:
            items = value.items()
            content = dict, frozenset([(key, one if type(one) in _PLAIN else token(one, ())) for key, one in items])
        return self._tokens.setdefault(content, object())


def _nested(value: object, branches: Branches) -> list[tuple[object, Branches]]:
    """The objects and lists inside *value*, and what is left out of each."""
    if isinstance(value, dict | Mapping):
        if branches:
            return [(item, below) for _, item, below in _kept(value, branches) if type(item) not in _SCALARS]
        return [(item, ()) for item in value.values() if type(item) not in _SCALARS]
    below = follow(branches, ANY) if branches else ()
    if not isinstance(value, list | tuple) or ends(below):
        return []
    return [(item, below) for item in value if type(item) not in _SCALARS]


def _kept(value: Mapping[object, object], branches: Branches) -> list[tuple[object, object, Branches]]:
    """The keys, the items, and what is left out of each, but for those that are left out whole."""
    found = [(key, item, follow(branches, key)) for key, item in value.items()]
    return [each for each in found if not ends(each[2])]


def _mark(value: object, branches: Branches) -> Hashable:
    return (id(value), *map(id, branches)) if branches else id(value)
