"""Columns of numbers: arrays, or views of the memory that a ledger has read many of them into."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Ints = array[int] | memoryview[int]
    Floats = array[float] | memoryview[float]


def code_of(column: Any) -> str:
    """The type of the numbers, as :mod:`array` has it."""
    found: str = column.format if isinstance(column, memoryview) else column.typecode
    return found


def growing(column: Any) -> array[Any]:
    """*column* as an array, to which more can be added."""
    if not isinstance(column, memoryview):
        return column  # type: ignore[no-any-return]
    found = array(code_of(column))
    found.frombytes(column.cast("B"))
    return found
