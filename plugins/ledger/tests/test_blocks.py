"""Memory for the columns of many rows."""

from __future__ import annotations

import mmap

import pytest

from dicast_ledger import blocks


@pytest.mark.skipif(not hasattr(mmap, "MADV_HUGEPAGE"), reason="this system knows no large pages")
def test_a_system_that_refuses_large_pages_gives_small_ones(monkeypatch):
    class Refusing(mmap.mmap):
        def madvise(self, *advice):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Refusing)
    numbers, scores = blocks.columns_of("qd", blocks.MANY_ROWS)
    numbers[-1], scores[0] = 7, 0.5
    assert (len(numbers), numbers[0], numbers[-1], scores[0], scores[-1]) == (blocks.MANY_ROWS, 0, 7, 0.5, 0)
