"""The values of a column: their types, lengths and repetitions."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from statistics import median
from typing import Any

import attrs
import orjson

from ..toolkit.json_values import MISSING, lookup
from ..toolkit.outputs import has_objects

LABELS = 20
"""The most distinct values of a column of labels."""

SHORT, LONG = 60, 200
"""A reference of at most SHORT characters is short, one of at least LONG characters is long."""

_CODE = re.compile(r"(?=.*\d)\S{1,40}")


@attrs.frozen(slots=False)
class Column:
    """The values of a column without null and empty text; *everywhere* is True if each row has the column."""

    name: str
    values: Sequence[Any]
    rows: int
    everywhere: bool = True

    @classmethod
    def of(cls, name: str, rows: Sequence[Mapping[str, Any]]) -> Column:
        """Return the column *name* of *rows*."""
        cells = [lookup(row, name) for row in rows]
        values = [value for value in cells if value is not MISSING and value is not None and value != ""]
        return cls(name, values, len(rows), all(value is not MISSING for value in cells))

    @cached_property
    def texts(self) -> list[str]:
        """The values as texts."""
        return [value if isinstance(value, str) else orjson.dumps(value).decode() for value in self.values]

    @property
    def full(self) -> bool:
        """True if every row has a value."""
        return len(self.values) == self.rows > 0

    @property
    def sparse(self) -> bool:
        """True if more than half of the rows have no value."""
        return len(self.values) * 2 < self.rows

    @property
    def differs(self) -> bool:
        """True if no value occurs twice."""
        return len(set(self.texts)) == len(self.texts)

    @property
    def named(self) -> bool:
        """True if all values can be ids: texts or integers."""
        return all(isinstance(value, str | int) and not isinstance(value, bool) for value in self.values)

    @cached_property
    def objects(self) -> bool:
        """True if a value is an object, or has an object in it."""
        return any(map(has_objects, self.values))

    @cached_property
    def length(self) -> float:
        """The median length of the values in characters."""
        return median(map(len, self.texts)) if self.texts else 0

    @cached_property
    def numeric(self) -> bool:
        """True if at least 90 % of the values are numbers."""
        return self._mostly(_is_number)

    @cached_property
    def json(self) -> bool:
        """True if at least 90 % of the values are JSON objects or lists, or their texts."""
        return self._mostly(_is_json)

    @property
    def prose(self) -> bool:
        """True if most values are texts of several words."""
        return sum(" " in text.strip() for text in self.texts) * 2 > len(self.texts) and not self.json

    @property
    def labels(self) -> bool:
        """True if there are few distinct values, and they repeat."""
        return len(set(self.texts)) <= min(LABELS, len(self.texts) // 2) and self.length <= SHORT

    @property
    def codes(self) -> bool:
        """True if each value is a short text without a space, with a digit in it, such as ``T-101``."""
        return bool(self.texts) and all(map(_CODE.fullmatch, self.texts))

    def _mostly(self, test: Any) -> bool:
        return bool(self.values) and sum(map(test, self.values)) >= 0.9 * len(self.values)


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return math.isfinite(float(value.replace(",", "") if isinstance(value, str) else value))
    except (ValueError, OverflowError):
        return False


def _is_json(value: object) -> bool:
    if not isinstance(value, str):
        return isinstance(value, dict | list)
    if value.strip()[:1] not in ("{", "["):
        return False
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return False
    return True
