"""Columns of numbers: arrays, or views of memory that a ledger has filled."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import compress
from types import ModuleType
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


def low_bytes(column: Any) -> bytes:
    """Return the lowest byte of each integer."""
    numbers: bytes = column.tobytes()
    return numbers[0 if sys.byteorder == "little" else column.itemsize - 1 :: column.itemsize]


def rows_with(codes: Any, chosen: Sequence[bool]) -> bytes | None:
    """Return a byte for each row of *codes*: 1 if its code is *chosen*, else 0; None if the codes of all rows are.

    :param chosen: whether a code is chosen, by code.
    """
    if all(chosen):
        return None
    if len(chosen) <= _BYTES:
        rows = low_bytes(codes).translate(bytes(chosen).ljust(_BYTES, b"\0"))
    else:
        rows = bytes(map(chosen.__getitem__, codes))
    return rows if 0 in rows else None


def rows_between(column: Any, low: int, high: int) -> bytes | None:
    """Return a byte for each row of *column*: 1 if its number is *low* or more and below *high*, else 0; None if the numbers of all rows are."""
    np = numpy_for(len(column))
    if np is None:
        rows = bytes([low <= number < high for number in column])
    else:
        numbers = np.asarray(column)
        rows = ((numbers >= low) & (numbers < high)).tobytes()
    return rows if 0 in rows else None


def kept(columns: Sequence[Any], rows: Sequence[object]) -> list[Any]:
    """Return the *columns* with the rows for which *rows* is true."""
    np = numpy_for(len(rows))
    if np is None:
        return [array(code_of(column), compress(column, rows)) for column in columns]
    chosen = np.flatnonzero(np.frombuffer(rows, bool) if isinstance(rows, bytes) else np.array(rows, bool))
    return [viewed(np.asarray(column)[chosen], code_of(column)) for column in columns]


def viewed(numbers: Any, code: str) -> Ints | Floats:
    """Return the memory of an array of numpy as a column of numbers with the type *code*."""
    return memoryview(numbers).cast("B").cast(code) if len(numbers) else array(code)  # type: ignore[call-overload]  # a code as in :mod:`array`


def numpy_for(rows: int) -> ModuleType | None:
    """Return numpy if it is installed (``dicast[arrays]``) and there are enough *rows* to pay for its import."""
    if rows < MANY_ROWS:
        return None
    try:
        import numpy as np
    except ImportError:
        return None
    return np


MANY_ROWS = 50_000
"""Fewest rows for which numpy is imported. The import takes as long as 50,000 rows one by one."""

_BYTES = 256
"""Number of values of a byte."""
