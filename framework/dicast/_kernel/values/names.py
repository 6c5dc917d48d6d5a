"""Names that people write: ids, and the name that was meant by one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

import orjson

from .errors import DataError, Problem


def nearest(name: str, names: Iterable[object]) -> str | None:
    """The one of *names* that is most like *name*, or None when none is."""
    from difflib import get_close_matches  # of no use where all names are right

    return next(iter(get_close_matches(name, [str(each) for each in names], 1)), None)


def identifier(value: object, path: str = "id") -> str:
    """*value* as an id: a string as it is, a number or a truth value as JSON writes it.

    :raises DataError: (without a place) for anything else, for an empty string, and for a number that JSON readers round:
        two long numbers must not become one id.
    """
    if isinstance(value, str) and value:
        return value
    if isinstance(value, float) and abs(value) >= 2**53:  # beyond it not every whole number is a float
        wrong = f"{value!r} is a number too long to be read exactly; write it as a string"
    elif isinstance(value, int | float):
        return orjson.dumps(value).decode()
    else:
        what = "an empty string" if value == "" else "null" if value is None else json_type(value)
        wrong = f"{what} cannot be an id; an id is a string or a number"
    raise DataError(Problem(wrong, path=path, value=value))


def json_type(value: object) -> str:
    """What *value* is called in JSON."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def not_finite(value: object, place: str) -> str | None:
    """Return the place and the value of the first number in *value* that is NaN or infinite, such as ``row.x is nan``.

    :param place: the path of *value*, which begins the returned text. None is returned where all numbers are finite.
    """
    if isinstance(value, float):
        return None if isfinite(value) else f"{place} is {value}"
    inside: Iterable[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    return next((found for name, one in inside if (found := not_finite(one, f"{place}.{name}"))), None)
