"""Which type a column has, by the values that it holds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, Literal

import attrs

from dicast.toolkit.media import without_content

Type = Literal["none", "bool", "int", "float", "decimal", "text"]

FIXED: dict[str, Type] = {
    "subject_kind": "text",
    "subject_id": "text",
    "session_id": "text",
    "score": "float",
    "tier": "text",
    "failure": "text",
    "cost_usd": "decimal",
}
"""The types that the columns of every table have, also where all their cells are empty."""

PLACES = 18
_DIGITS = 38
_INT64 = range(-(1 << 63), 1 << 63)
_EXACT = range(-(1 << 53), (1 << 53) + 1)
"""The whole numbers that a float has, every one."""


@attrs.define
class ColumnType:
    """The type of one column, widened with each value: a type that holds all of them, or text."""

    type: Type
    exact: bool = True
    """Whether all whole numbers so far would stay what they are as floats."""

    def widen(self, value: object) -> None:
        """Take *value* into account."""
        if value is None or self.type == "text":
            return
        if self.type == "decimal":
            self.type = "decimal" if _fits(value) else "text"
            return
        self.exact = self.exact and (type(value) is not int or value in _EXACT)
        self.type = self._joined(_type(value))

    def _joined(self, other: Type) -> Type:
        if self.type in ("none", other):
            joined = other
        else:
            joined = "float" if {self.type, other} == {"int", "float"} else "text"
        return "text" if joined == "float" and not self.exact else joined

    def cells(self, values: Iterable[Any]) -> list[Any]:
        """*values* as this type has them."""
        return [None if value is None else self._cell(value) for value in values]

    def _cell(self, value: Any) -> object:
        if self.type == "decimal":
            return Decimal(value)
        if self.type == "float":
            return float(value)
        return as_text(value) if self.type in ("text", "none") else value


def column_types(names: Sequence[str], rows: Iterable[Sequence[object]]) -> list[ColumnType]:
    """The type of each column of *rows*."""
    types = [ColumnType(FIXED.get(name, "none")) for name in names]
    for row in rows:
        for column, value in zip(types, row, strict=True):
            if value is not None:
                column.widen(value)
    return types


def as_text(value: object) -> str:
    """*value* as ``csv/rows`` writes it: lists and mappings are JSON. Without lone surrogates, which Parquet does not have."""
    value = without_content(value) if isinstance(value, list | dict) else value
    nested = isinstance(value, list | dict)
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")) if nested else str(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _type(value: object) -> Type:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _INT64 else "text"
    return "float" if isinstance(value, float) else "text"


def _fits(value: object) -> bool:
    """Whether *value* is the text of an amount that the column's decimals hold to the last digit."""
    _, digits, exponent = Decimal(str(value)).as_tuple()
    return isinstance(exponent, int) and -exponent <= PLACES and len(digits) + max(exponent, 0) <= _DIGITS - PLACES
