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
    """The values at *path* in the output (*found*) and in the reference (*wanted*); one may be :data:`ABSENT`."""

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
    """Yield the differences of *output* and *reference*, in the order of the output, without the *ignored* places.

    Without a difference they are the same JSON value: keys in any order, 1 equal to 1.0 and not to true. Lists are
    compared item by item. With *ignore_order* they are equal if they have the same items equally often. If they are not,
    the items of only one list are yielded; if each list has one such item, the differences inside.
    """
    tokens = Tokens() if ignore_order else None
    left: list[tuple[Path, object, object, Branches]] = [(None, output, reference, ignored)]
    while left:
        path, left_value, other, branches = left.pop()
        pairs = _pairs(left_value, other, branches, tokens)
        if pairs is None:
            if not _alike(left_value, other):
                yield Difference(path, left_value, other)
            continue
        inside: list[tuple[Path, object, object, Branches]] = []
        for step, a, b in pairs:
            below = follow(branches, step) if branches else ()
            if not (below and ends(below)):
                inside.append(((path, step), a, b, below))
        left.extend(reversed(inside))


def _pairs(left_value: object, other: object, branches: Branches, tokens: Tokens | None) -> Iterable[Pair] | None:
    """Return the pairs to compare inside two objects or two lists; None for other values."""
    if isinstance(left_value, dict | Mapping) and isinstance(other, dict | Mapping):
        return _by_key(left_value, other)
    if not (isinstance(left_value, list | tuple) and isinstance(other, list | tuple)):
        return None
    if tokens is None:
        return _by_index(left_value, other)
    return _by_content(left_value, other, follow(branches, ANY), tokens)


def _by_key(left_value: Mapping[object, object], other: Mapping[object, object]) -> Iterator[Pair]:
    for key, item in left_value.items():
        right_value = other.get(key, ABSENT)
        if item is not right_value and not (
            type(item) in _PLAIN and type(right_value) in _PLAIN and item == right_value
        ):
            yield key, item, right_value
    for key, right_value in other.items():
        if key not in left_value:
            yield key, ABSENT, right_value


def _by_index(left_value: Sequence[object], other: Sequence[object]) -> Iterator[Pair]:
    both = min(len(left_value), len(other))
    for index, (item, right_value) in enumerate(zip(left_value, other, strict=False)):
        if not (
            type(item) in _PLAIN and type(right_value) in _PLAIN and item == right_value
        ):  # most are such, and need no more
            yield index, item, right_value
    for index in range(both, len(left_value)):
        yield index, left_value[index], ABSENT
    for index in range(both, len(other)):
        yield index, ABSENT, other[index]


def _by_content(
    left_value: Sequence[object], other: Sequence[object], below: Branches, tokens: Tokens
) -> Iterator[Pair]:
    if ends(below):
        return
    places: dict[Hashable, list[int]] = {}
    for index, token in enumerate(tokens.of_all(other, below)):
        places.setdefault(token, []).append(index)
    extra = []
    for index, token in enumerate(tokens.of_all(left_value, below)):
        equal = places.get(token)
        if equal:
            equal.pop()
        else:
            extra.append(index)
    lacking = sorted(index for indices in places.values() for index in indices)
    if len(extra) == len(lacking) == 1:
        yield extra[0], left_value[extra[0]], other[lacking[0]]
        return
    yield from ((index, left_value[index], ABSENT) for index in extra)
    yield from ((index, ABSENT, other[index]) for index in lacking)


def _alike(left_value: object, other: object) -> bool:
    # In Python True equals 1, in JSON it does not.
    if left_value is ABSENT or other is ABSENT:
        return False
    if isinstance(left_value, bool) or isinstance(other, bool):
        return left_value is other
    return bool(left_value == other)


class Tokens:
    """One token for all equal JSON values, for any order of keys, and of items in lists.

    A text, a number and null are their own tokens. Every object and list is examined once.
    """

    def __init__(self) -> None:
        self._tokens: dict[Hashable, Hashable] = {}
        self._by_mark: dict[Hashable, Hashable] = {}

    def of_all(self, items: Sequence[object], branches: Branches) -> list[Hashable]:
        """Return the tokens of *items*, without the places in *branches*."""
        nested = [(item, branches) for item in items if type(item) not in _SCALARS]
        for value, below in nested:  # grows as it goes
            if _mark(value, below) not in self._by_mark:
                nested += _nested(value, below)
        for value, below in reversed(nested):  # what is inside first
            if _mark(value, below) not in self._by_mark:
                self._by_mark[_mark(value, below)] = self._new(value, below)
        return [self._token(item, branches) for item in items]

    def _token(self, value: object, branches: Branches) -> Hashable:
        """Return the token of *value*. Its content, and the value itself if it is nested, must be known."""
        if type(value) in _PLAIN:
            return value
        return _BOOLEANS[value] if isinstance(value, bool) else self._by_mark[_mark(value, branches)]

    def _new(self, value: object, branches: Branches) -> Hashable:
        token = self._token
        if isinstance(value, list | tuple):
            below = follow(branches, ANY) if branches else ()
            counts: dict[Hashable, int] = {}
            for item in () if ends(below) else value:
                value_token = item if type(item) in _PLAIN else token(item, below)
                counts[value_token] = counts.get(value_token, 0) + 1
            content: Hashable = list, frozenset(counts.items())
        elif not isinstance(value, dict | Mapping):
            content = type(value), repr(value)
        elif branches:
            content = (
                dict,
                frozenset([(key, token(item, below)) for key, item, below in _kept_entries(value, branches)]),
            )
        else:
            items = value.items()
            content = dict, frozenset([(key, item if type(item) in _PLAIN else token(item, ())) for key, item in items])
        return self._tokens.setdefault(content, object())


def _nested(value: object, branches: Branches) -> list[tuple[object, Branches]]:
    """Return the objects and lists inside *value*, each with its ignored places."""
    if isinstance(value, dict | Mapping):
        if branches:
            return [(item, below) for _, item, below in _kept_entries(value, branches) if type(item) not in _SCALARS]
        return [(item, ()) for item in value.values() if type(item) not in _SCALARS]
    below = follow(branches, ANY) if branches else ()
    if not isinstance(value, list | tuple) or ends(below):
        return []
    return [(item, below) for item in value if type(item) not in _SCALARS]


def _kept_entries(value: Mapping[object, object], branches: Branches) -> list[tuple[object, object, Branches]]:
    """Return the keys, the items, and the ignored places of each, without items that are ignored as a whole."""
    entries = [(key, item, follow(branches, key)) for key, item in value.items()]
    return [entry for entry in entries if not ends(entry[2])]


def _mark(value: object, branches: Branches) -> Hashable:
    return (id(value), *map(id, branches)) if branches else id(value)
