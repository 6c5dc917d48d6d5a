"""Names that people write: ids, and the nearest valid name to an unknown one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path

import orjson

from .errors import DataError, Problem


def nearest(name: str, names: Iterable[object]) -> str | None:
    """Return the most similar of *names* to *name*, or None if no name is similar."""
    from difflib import get_close_matches  # needed only for an invalid name

    return next(iter(get_close_matches(name, [str(candidate) for candidate in names], 1)), None)


def identifier(value: object, path: str = "id") -> str:
    """Return *value* as an id: a string unchanged, a number or a truth value in its JSON form.

    :raises DataError: (without a place) for other types, for an empty string, and for a number that JSON readers round:
        two long numbers must not become one id.
    """
    if isinstance(value, str) and value:
        return value
    if isinstance(value, float) and abs(value) >= 2**53:  # beyond it not every whole number is a float
        message = f"{value!r} is a number too long to be read exactly; write it as a string"
    elif isinstance(value, int | float):
        return orjson.dumps(value).decode()
    else:
        noun = "an empty string" if value == "" else "null" if value is None else json_type(value)
        message = f"{noun} cannot be an id; an id is a string or a number"
    raise DataError(Problem(message, path=path, value=value))


def json_type(value: object) -> str:
    """Return the name of the JSON type of *value*, with its article."""
    kinds = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def not_finite(value: object, place: str) -> str | None:
    """Return the place and the value of the first number in *value* that is NaN or infinite, such as ``row.x is nan``.

    :param place: the path of *value*, with which the returned text starts. None is returned if all numbers are finite.
    """
    if isinstance(value, float):
        return None if isfinite(value) else f"{place} is {value}"
    inside: Iterable[tuple[object, object]] = ()
    if isinstance(value, Mapping):
        inside = value.items()
    elif isinstance(value, list | tuple):
        inside = enumerate(value)
    return next((fault for name, item in inside if (fault := not_finite(item, f"{place}.{name}"))), None)


def path_from_here(path: Path) -> str:
    """Return *path* as a command in the working directory names it: relative if it is inside, else absolute."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute)
