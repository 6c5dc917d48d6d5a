"""Ids from a template over several columns, or over the line: ``{{ question }}-{{ model }}``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from dicast import DataError, Problem, identifier, nearest
from dicast.toolkit.json_values import MISSING, lookup

LINE = "line"
"""The name of a row's number in a template: of its line, item or row, as in default ids."""

_PLACE = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def is_template(path: str) -> bool:
    """Return whether *path* is a template for ids, and not the path of a column."""
    return "{{" in path


def template_fault(template: str) -> str | None:
    """Return the fault of *template*, or None."""
    rest = _PLACE.sub("", template)
    if "{{" in rest or "}}" in rest or not all(_PLACE.findall(template)):
        return f"{template!r} is not a template; write columns in braces: '{{{{ question }}}}-{{{{ model }}}}'"
    return None


def columns_in(template: str) -> Iterator[str]:
    """Yield the columns that *template* names, the line aside."""
    yield from (path for path in _PLACE.findall(template) if path != LINE)


def filled(template: str, number: int, row: Mapping[str, Any]) -> str:
    """Return the id of *row* by *template*; *number* is the row's line.

    :raises DataError: (without a place) if the row lacks a column, or its value is neither a text nor a number.
    """
    return _PLACE.sub(lambda place: _part(place[1], number, row), template)


def _part(path: str, number: int, row: Mapping[str, Any]) -> str:
    if path == LINE:
        return str(number)
    value = lookup(row, path)
    if value is MISSING:
        names = ", ".join(list(row)[:10]) or "nothing"
        wrong = f"the row has no {path!r}, which the template of the id names; it has {names}"
        raise DataError(Problem(wrong, path=path, hint=nearest(path, row)))
    return identifier(value, path)
