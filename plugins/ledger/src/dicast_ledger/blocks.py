"""Memory for columns. That of many rows is one block, for which the system is asked for large pages: small ones take as long as reading."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

MANY = 20_000
"""Rows from which on columns are a block."""

_APART = 64
"""Each column begins at a multiple of so many bytes."""


def columns_of(codes: str, rows: int) -> Sequence[Any]:
    """A column of zeros for each of *codes*, which are those of :mod:`array`."""
    widths = [array(code).itemsize for code in codes]
    if rows < MANY:
        return [array(code, bytes(rows * width)) for code, width in zip(codes, widths, strict=True)]
    rooms = [-(-rows * width // _APART) * _APART for width in widths]
    whole: Any = _block(sum(rooms))
    starts = accumulate(rooms, initial=0)
    return [
        whole[start : start + rows * width].cast(code)
        for code, width, start in zip(codes, widths, starts, strict=False)
    ]


def _block(size: int) -> memoryview:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(size))
    found = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # advice: a system without large pages refuses it, and the small ones do
        found.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(found)
