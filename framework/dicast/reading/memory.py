"""Memory for columns of very many rows, in large pages of the system. Page faults of small pages take as long as reading the rows."""

from __future__ import annotations

import mmap
import sys
from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class GrowingColumn:
    """Numbers in little-endian order, which are added at the end."""

    def __init__(self, code: str) -> None:
        self.code: Any = code
        self.width = array(code).itemsize
        self._block: Any = bytearray()
        self.add: Callable[[bytes | memoryview], object] = self._block.extend
        """Add numbers, for which :meth:`reserve` has made room."""
        self._can_advise = hasattr(mmap, "MADV_HUGEPAGE")
        if self._can_advise:
            self._block = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            self.add = self._block.write

    def reserve(self, rows: int) -> None:
        """Make room for *rows* numbers in all."""
        if self._can_advise and rows * self.width > len(self._block):
            self._block.resize(rows * self.width)
            with suppress(OSError):  # only advice: a system without large pages refuses it, and uses small pages
                self._block.madvise(mmap.MADV_HUGEPAGE)

    def numbers(self, rows: int) -> Any:
        """Return all numbers, which are *rows*, as a view of the memory. Call it last."""
        if sys.byteorder == "big":
            values = array(self.code, bytes(memoryview(self._block)[: rows * self.width]))
            values.byteswap()
            return memoryview(values)
        return memoryview(self._block)[: rows * self.width].cast(self.code)
