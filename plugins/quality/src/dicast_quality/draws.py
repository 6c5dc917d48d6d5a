"""Random draws and sums of :mod:`.reliability` with numpy. Draws and sums equal those without numpy."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from .arrays import Array

_CHUNK = 100
"""Resamples drawn at once."""


def twister_of(np: ModuleType, draw: random.Random) -> Any:
    """Return numpy's generator in the state of *draw*. Both are Mersenne Twisters and derive 53-bit floats alike."""
    _, (*key, position), _ = draw.getstate()
    twister = np.random.RandomState()
    twister.set_state(("MT19937", key, position))
    return twister


def resampled(
    np: ModuleType, parts: Sequence[Sequence[float]], draw: random.Random, count: int
) -> Iterator[Sequence[float]]:
    """Yield the sums of each resample, from the same draws as without numpy."""
    twister = twister_of(np, draw)
    table, size = np.array(parts), len(parts[0])
    starts = size * np.arange(_CHUNK)[:, None]
    for _ in range(0, count, _CHUNK):
        picked = (twister.random_sample((_CHUNK, size)) * size).astype("q") + starts
        often = np.bincount(picked.ravel(), minlength=size * _CHUNK).reshape(_CHUNK, size)
        yield from np.einsum("rp,sp->rs", often.astype("d"), table).tolist()


def put_in_parts(
    np: ModuleType, parts: Sequence[list[float]], draw: random.Random, scores: Array, spreads: Array
) -> None:
    """Add units to random *parts*: sums of *scores*, of their squares, of squared differences, and counts.

    The sums are added in the order of the units, as in the row-by-row code.
    """
    twister, size = twister_of(np, draw), len(parts[0])
    places = (twister.random_sample(scores.shape[1]) * size).astype("q")
    _, key, position, *_ = twister.get_state()
    draw.setstate((3, (*key.tolist(), position), None))
    is_scored = ~np.isnan(scores)
    values_or_zero, counts = np.where(is_scored, scores, 0.0), is_scored.sum(axis=0)
    added = (
        sum(values_or_zero),
        sum(values_or_zero * values_or_zero),
        _squared_differences(np, scores, counts, spreads),
        counts,
    )
    of_all = np.concatenate([np.arange(size), places])
    for sums, values in zip(parts, added, strict=True):
        sums[:] = np.bincount(of_all, np.concatenate([sums, values]), size).tolist()


def _squared_differences(np: ModuleType, scores: Array, counts: Array, spreads: Array) -> Array:
    """Return for each unit the sum of the squared differences of all pairs of scores, divided by the number of scores minus 1.

    For two scores it is the square of their spread.
    """
    squares = spreads * spreads
    several = np.flatnonzero(counts > 2)
    if len(several):
        these, counted = scores[:, several], counts[several]
        means = np.nansum(these, axis=0) / counted
        squares[several] = counted * np.nansum((these - means) ** 2, axis=0) / (counted - 1)
    return squares
