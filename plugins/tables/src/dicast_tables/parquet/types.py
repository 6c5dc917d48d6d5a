"""The type of a column, derived from its values."""

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
"""The types of the columns that every table has, also if all their cells are empty."""

PLACES = 18
_DIGITS = 38
_INT64 = range(-(1 << 63), 1 << 63)
_EXACT = range(-(1 << 53), (1 << 53) + 1)
"""The range in which a float can represent every integer."""


@attrs.define
class ColumnType:
    """The type of one column. Each value widens it: to a type that holds all values so far, or to text."""

    type: Type
    exact: bool = True
    """Whether a float can represent every integer of the column so far."""

    def widen(self, value: object) -> None:
        """Widen the type so that it holds *value* too."""
        if value is None or self.type == "text":
            return
        if self.type == "decimal":
            self.type = "decimal" if _is_exact_decimal(value) else "text"
            return
        self.exact = self.exact and (type(value) is not int or value in _EXACT)
        self.type = self._common_type(_type(value))

    def _common_type(self, other: Type) -> Type:
        if self.type in ("none", other):
            common = other
        else:
            common = "float" if {self.type, other} == {"int", "float"} else "text"
        return "text" if common == "float" and not self.exact else common

    def cells(self, values: Iterable[Any]) -> list[Any]:
        """Return *values* converted to this type."""
        return [None if value is None else self._cell(value) for value in values]

    def _cell(self, value: Any) -> object:
        if self.type == "decimal":
            return Decimal(value)
        if self.type == "float":
            return float(value)
        return as_text(value) if self.type in ("text", "none") else value


def column_types(names: Sequence[str], rows: Iterable[Sequence[object]]) -> list[ColumnType]:
    """Return the type of each column of *rows*."""
    types = [ColumnType(FIXED.get(name, "none")) for name in names]
    for row in rows:
        for column, value in zip(types, row, strict=True):
            if value is not None:
                column.widen(value)
    return types


def as_text(value: object) -> str:
    """Return *value* as ``csv/rows`` writes it: lists and mappings as JSON. Lone surrogates are escaped, because Parquet cannot hold them."""
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


def _is_exact_decimal(value: object) -> bool:
    """Return whether *value* is the text of an amount that the column's decimals hold to the last digit."""
    _, digits, exponent = Decimal(str(value)).as_tuple()
    return isinstance(exponent, int) and -exponent <= PLACES and len(digits) + max(exponent, 0) <= _DIGITS - PLACES
