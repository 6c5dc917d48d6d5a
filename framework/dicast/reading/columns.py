"""Columns of numbers: arrays, or views of memory that a ledger has filled."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Ints = array[int] | memoryview[int]
    Floats = array[float] | memoryview[float]
else:
    Ints = Floats = array | memoryview


def code_of(column: Any) -> str:
    """Return the type code of the numbers, as in :mod:`array`."""
    code: str = column.format if isinstance(column, memoryview) else column.typecode
    return code


def growing(column: Any) -> array[Any]:
    """Return *column* itself if it is an array, else a copy as an array, which can grow."""
    if not isinstance(column, memoryview):
        return column  # type: ignore[no-any-return]
    copy = array(code_of(column))
    copy.frombytes(column.cast("B"))
    return copy
