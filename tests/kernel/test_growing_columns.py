"""Memory of columns: large pages, and systems without them."""

from __future__ import annotations

import mmap
from array import array

import pytest

from dicast.reading.memory import GrowingColumn


def filled(code, parts):
    """Return the numbers of a column to which *parts* were added."""
    column, rows = GrowingColumn(code), 0
    for part in parts:
        rows += len(part)
        column.reserve(rows)
        column.add(memoryview(array(code, part).tobytes()))
    return column.numbers(rows)


@pytest.mark.parametrize("code", ["i", "q", "d"])
@pytest.mark.parametrize("has_pages", [True, False])
def test_numbers_come_back_in_their_order(monkeypatch, code, has_pages):
    if not has_pages:
        monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    parts = [range(3), range(0), range(70_000), range(5, 9)]
    numbers = filled(code, parts)
    assert (numbers.format, numbers.itemsize) == (code, array(code).itemsize)
    assert [*numbers] == [number for part in parts for number in part]


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="this system has no large pages")
def test_a_system_may_refuse_large_pages(monkeypatch):
    class Refusing(mmap.mmap):
        def madvise(self, *advice):
            raise OSError("no large pages")

    monkeypatch.setattr(mmap, "mmap", Refusing)
    assert [*filled("q", [range(70_000)])] == [*range(70_000)]
