"""Memory for columns. The columns of many rows share one block of large pages: with small pages the allocation takes as long as the reading."""

from __future__ import annotations

import mmap
from array import array
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate
from typing import Any

MANY_ROWS = 20_000
"""Least number of rows whose columns share a block."""

_ALIGNMENT = 64
"""Each column starts at a multiple of this number of bytes."""


def columns_of(codes: str, rows: int) -> Sequence[Any]:
    """Return a column of zeros for each type code in *codes*, as defined by :mod:`array`."""
    widths = [array(code).itemsize for code in codes]
    if rows < MANY_ROWS:
        return [array(code, bytes(rows * width)) for code, width in zip(codes, widths, strict=True)]
    sizes = [-(-rows * width // _ALIGNMENT) * _ALIGNMENT for width in widths]
    memory: Any = _block(sum(sizes))
    starts = accumulate(sizes, initial=0)
    return [
        memory[start : start + rows * width].cast(code)
        for code, width, start in zip(codes, widths, starts, strict=False)
    ]


def _block(size: int) -> memoryview:
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return memoryview(bytearray(size))
    block = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # only advice: a system without large pages refuses it, and uses small pages
        block.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(block)
