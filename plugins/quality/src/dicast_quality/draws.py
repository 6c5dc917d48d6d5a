"""What :mod:`.reliability` draws and adds up, with numpy: the same draws, and the same sums."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from .arrays import Array

_TOGETHER = 100
"""Resamples that are made at once."""


def twister_of(np: ModuleType, draw: random.Random) -> Any:
    """What of numpy draws as *draw* does: both have the Mersenne Twister, and make a number of 53 bits alike."""
    _, (*key, position), _ = draw.getstate()
    found = np.random.RandomState()
    found.set_state(("MT19937", key, position))
    return found


def resampled(
    np: ModuleType, parts: Sequence[Sequence[float]], draw: random.Random, count: int
) -> Iterator[Sequence[float]]:
    """The sums of each resample, of the same draws as without numpy."""
    twister = twister_of(np, draw)
    table, size = np.array(parts), len(parts[0])
    starts = size * np.arange(_TOGETHER)[:, None]
    for _ in range(0, count, _TOGETHER):
        picked = (twister.random_sample((_TOGETHER, size)) * size).astype("q") + starts
        often = np.bincount(picked.ravel(), minlength=size * _TOGETHER).reshape(_TOGETHER, size)
        yield from np.einsum("rp,sp->rs", often.astype("d"), table).tolist()


def put_in_parts(
    np: ModuleType, parts: Sequence[list[float]], draw: random.Random, scores: Array, spreads: Array
) -> None:
    """Add units to *parts* at random: the sums of their *scores*, of the squares of these, of what lies apart, and how many they are.

    The sums are added up in the order of the units, as they are one by one.
    """
    twister, size = twister_of(np, draw), len(parts[0])
    places = (twister.random_sample(scores.shape[1]) * size).astype("q")
    _, key, position, *_ = twister.get_state()
    draw.setstate((3, (*key.tolist(), position), None))
    given = ~np.isnan(scores)
    known, counts = np.where(given, scores, 0.0), given.sum(axis=0)
    added = sum(known), sum(known * known), _apart_of(np, scores, counts, spreads), counts
    of_all = np.concatenate([np.arange(size), places])
    for sums, values in zip(parts, added, strict=True):
        sums[:] = np.bincount(of_all, np.concatenate([sums, values]), size).tolist()


def _apart_of(np: ModuleType, scores: Array, counts: Array, spreads: Array) -> Array:
    """The squared differences of all scores of a unit, over one less than there are; of two that is the square of their spread."""
    found = spreads * spreads
    several = np.flatnonzero(counts > 2)
    if len(several):
        these, counted = scores[:, several], counts[several]
        means = np.nansum(these, axis=0) / counted
        found[several] = counted * np.nansum((these - means) ** 2, axis=0) / (counted - 1)
    return found
