"""Memory for columns. That of many rows is one block, for which the system is asked for large pages: small ones take as long as reading."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

MANY_ROWS = 20_000
"""Rows from which on columns are a block."""

_ALIGNMENT = 64
"""Each column begins at a multiple of so many bytes."""


def columns_of(codes: str, rows: int) -> Sequence[Any]:
    """Return a column of zeros for each type code in *codes*, as defined by :mod:`array`."""
    widths = [array(code).itemsize for code in codes]
    if rows < MANY_ROWS:
        return [array(code, bytes(rows * width)) for code, width in zip(codes, widths, strict=True)]
    rooms = [-(-rows * width // _ALIGNMENT) * _ALIGNMENT for width in widths]
    memory: Any = _block(sum(rooms))
    starts = accumulate(rooms, initial=0)
    return [
        memory[start : start + rows * width].cast(code)
        for code, width, start in zip(codes, widths, starts, strict=False)
    ]


def _block(size: int) -> memoryview:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(size))
    block = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # advice: a system without large pages refuses it, and the small ones do
        block.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(block)
