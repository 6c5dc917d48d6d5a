"""Records as rows of a table: the column of each value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from .._kernel.values import Record

Place = tuple[int | str, ...]
"""The place of a value: the number of its group of columns, then the parts of the column's name."""

ROW, RESPONSE, RESPONSES, METRICS, RETRY, LEVEL = range(6)
"""The groups of a record's columns, in their order; a table may append further groups."""


def flat(record: Record) -> dict[str, object]:
    """Return the values of *record* by the column names of tables.

    First the row's own columns; then ``llm_content`` and ``llm_content_metric_<key…>`` of the first response, ``llm_<criterion>`` and
    ``llm_<criterion>_metric_<key…>`` of each; ``metric_<key…>``, nested keys joined by ``_``; ``retry_attempts``,
    ``retry_max_attempts``, ``retry_history`` as JSON; ``security_level``. Lists stay lists, empty mappings vanish, and a
    number that is not finite is None. If two columns have the same name, ``_2`` is appended to the second.
    """
    values = dict(leaves(record))
    return dict(zip(names(values), values.values(), strict=True))


def leaves(record: Record) -> list[tuple[Place, object]]:
    """Return each value of *record* that has a column, with its place. It is a list because a generator would take twice as long."""
    items: list[tuple[Place, object]] = [((ROW, key), _finite(value)) for key, value in record.get("row", {}).items()]
    _add_response(items, (RESPONSE, "llm", "content"), record.get("response"))
    for name, response in record.get("responses", {}).items():
        _add_response(items, (RESPONSES, "llm", name), response)
    _add_nested(items, (METRICS, "metric"), record.get("metrics"))
    retry: Mapping[str, Any] = record.get("retry") or {}
    items += [((RETRY, "retry", key), retry[key]) for key in ("attempts", "max_attempts") if key in retry]
    if "history" in retry:
        items.append(((RETRY, "retry", "history"), orjson.dumps(retry["history"], _plain).decode()))
    if record.get("security_level") is not None:
        items.append(((LEVEL, "security_level"), record["security_level"]))
    return items


def names(places: Iterable[Place], reserved: Iterable[str] = ()) -> list[str]:
    """Return distinct names for the columns *places*; a row's column with a *reserved* name gets the prefix ``row_``."""
    fixed = set(reserved)
    used: set[str] = set()
    return [
        _free(f"row_{place[1]}" if place[0] == ROW and place[1] in fixed else name_of(place), used) for place in places
    ]


def name_of(place: Place) -> str:
    """Return the name of a column, before it is made distinct."""
    return "_".join(map(str, place[1:]))


class Columns:
    """The places of all values in the rows of a table, numbered in the order of their first occurrence. Rows may lack some of them."""

    def __init__(self) -> None:
        self.numbers: dict[Place, int] = {}
        self._order: dict[Place, int] = {}

    def number(self, place: Place) -> int:
        """Return the number of *place*, a new one if it has none."""
        number = self.numbers.setdefault(place, len(self.numbers))
        if number == len(self.numbers) - 1:
            for end in range(2, len(place) + 1):
                self._order.setdefault(place[:end], len(self._order))
        return number

    def put(self, cells: list[object], values: Iterable[tuple[Place, object]]) -> None:
        """Put *values* into *cells*, each at the number of its place."""
        for place, value in values:
            number = self.numbers.get(place)
            if number is None:
                number = self.number(place)
            if number >= len(cells):
                cells += [None] * (number + 1 - len(cells))
            cells[number] = value

    def ordered(self) -> list[Place]:
        """Return all places, by group, and inside a group by the order in which their keys occurred at each level."""
        order = self._order
        return sorted(
            self.numbers, key=lambda place: (place[0], [order[place[:end]] for end in range(2, len(place) + 1)])
        )


def _add_response(items: list[tuple[Place, object]], place: Place, response: Mapping[str, Any] | None) -> None:
    if response is None:
        return
    if response.get("content") is not None:
        items.append((place, response["content"]))
    _add_nested(items, (*place, "metric"), response.get("metrics"))


def _add_nested(items: list[tuple[Place, object]], place: Place, value: object) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if type(inner) is not str and isinstance(inner, Mapping):
                _add_nested(items, (*place, key), inner)
            else:
                items.append(((*place, key), _finite(inner)))


def _finite(value: object) -> object:
    return None if type(value) is float and not math.isfinite(value) else value


def _free(name: str, used: set[str]) -> str:
    free, count = name, 1
    while free in used:
        count += 1
        free = f"{name}_{count}"
    used.add(free)
    return free


def _plain(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else str(value)
