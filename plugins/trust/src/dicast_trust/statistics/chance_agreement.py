"""Agreement of a judge with labels beyond chance: kappa, AC1, alpha, balanced accuracy, AUC.

A table counts subjects by the class of the label (rows) and of the judge's verdict (columns). The classes are pass and fail; for pairwise judges
win, tie and loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import atanh, log, sqrt, tanh
from typing import TYPE_CHECKING, Any

from dicast.toolkit.intervals import Z_95

from .binomial import share_interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

RESAMPLES = 2_000
_BATCH = 200
"""Resamples drawn at once: a bound of memory."""

_ENOUGH = 0.75
"""Least share of resamples in which the figure has to be defined; below it there is no interval."""

Ends = tuple[float, float]


def tables(judged: Sequence[int], gold: Sequence[int], sessions: Sequence[object], classes: int = 2) -> Numbers:
    """Return the table of each session; their sum is the table of all subjects.

    :param judged: the class of each verdict, from 0.
    :param gold: the class of each label, from 0.
    """
    import numpy as np

    names = {session: place for place, session in enumerate(dict.fromkeys(sessions))}
    places = np.array([names[session] for session in sessions], np.intp)
    counts = np.zeros((len(names), classes, classes))
    np.add.at(counts, (places, np.asarray(gold, np.intp), np.asarray(judged, np.intp)), 1)
    return counts


def kappa(table: Any) -> Any:
    """Return Cohen's kappa (1960); NaN if chance alone would always agree. *table* may hold several tables."""
    cells, n, agreed = _cells(table)
    return _beyond_chance(agreed / n, (cells.sum(-1) * cells.sum(-2)).sum(-1) / n**2)


def ac1(table: Any) -> Any:
    """Return Gwet's AC1 (British Journal of Mathematical and Statistical Psychology 61, 2008, 29-48): chance by the mean shares of the classes."""
    cells, n, agreed = _cells(table)
    shares = (cells.sum(-1) + cells.sum(-2)) / (2 * n[..., None])
    return _beyond_chance(agreed / n, (shares * (1 - shares)).sum(-1) / (cells.shape[-1] - 1))


def alpha(table: Any) -> Any:
    """Return Krippendorff's alpha for nominal data (Content Analysis, 2004, chapter 11); NaN if all values are equal."""
    import numpy as np

    cells, n, agreed = _cells(table)
    values = cells.sum(-1) + cells.sum(-2)
    expected = (2 * n) ** 2 - (values**2).sum(-1)
    with np.errstate(all="ignore"):
        return np.where(expected > 0, 1 - (2 * n - 1) * 2 * (n - agreed) / expected, np.nan)


def _cells(table: Any) -> tuple[Any, Any, Any]:
    """Return the counts, their sum, and the sum of the diagonal."""
    import numpy as np

    cells = np.asarray(table, float)
    return cells, cells.sum((-1, -2)), np.trace(cells, axis1=-2, axis2=-1)


def _beyond_chance(observed: Any, chance: Any) -> Any:
    """Return the *observed* agreement rescaled so that *chance* is 0 and perfect agreement is 1; NaN if *chance* is 1."""
    import numpy as np

    with np.errstate(all="ignore"):
        return np.where(chance < 1, (observed - chance) / (1 - chance), np.nan)


def resampled(by_session: Numbers, figure: Callable[[Any], Any], seed: int = 0) -> tuple[float | None, Ends | None]:
    """Return the *figure* of the whole table, and its 95 % interval by resampling sessions.

    The interval is ``tanh(atanh k ± z sd / (1 - k²))`` with the standard deviation of :data:`RESAMPLES` resamples. At 1 and -1 it has no width if
    all resamples agree, and is None otherwise. Both are None if the figure is not defined for the whole table. The interval is also None below two
    sessions, or if the figure is not defined for more than a quarter of the resamples.
    """
    import numpy as np

    value = float(figure(by_session.sum(0))) if len(by_session) else float("nan")
    if np.isnan(value):
        return None, None
    draw, count = np.random.default_rng(seed), len(by_session)
    batches = [
        figure(np.tensordot(draw.multinomial(count, np.full(count, 1 / count), _BATCH), by_session, 1))
        for _ in range(RESAMPLES // _BATCH)
    ]
    figures = np.concatenate(batches)
    figures = figures[~np.isnan(figures)]
    if count < 2 or len(figures) < _ENOUGH * RESAMPLES:
        return value, None
    spread = float(figures.std(ddof=1))
    if abs(value) >= 1:
        return value, (value, value) if not spread else None
    reach = Z_95 * spread / (1 - value**2)
    return value, (tanh(atanh(value) - reach), tanh(atanh(value) + reach))


def balanced(table: Numbers) -> tuple[float | None, Ends | None]:
    """Return the mean of sensitivity and specificity, with the MOVER interval built from the Wilson interval of each.

    Sensitivity and specificity are the shares of the first and of the last class of labels that the judge puts into the same class; labels that are ties count in neither.
    G. Y. Zou and A. Donner, Statistics in Medicine 27 (2008), 1693-1702. None if labels have one class only.
    """
    (a, n), (d, m) = ((float(table[at][at]), float(table[at].sum())) for at in (0, -1))
    sides = (a, share_interval(a, int(n))), (d, share_interval(d, int(m)))
    if sides[0][1] is None or sides[1][1] is None:
        return None, None
    shares = a / n, d / m
    value = sum(shares) / 2
    low = sqrt(sum((share - ends[0]) ** 2 for share, (_, ends) in zip(shares, sides, strict=True) if ends)) / 2
    high = sqrt(sum((ends[1] - share) ** 2 for share, (_, ends) in zip(shares, sides, strict=True) if ends)) / 2
    return value, (value - low, value + high)


def auc(scores: Sequence[float], gold: Sequence[bool]) -> tuple[float | None, Ends | None]:
    """Return how often a good subject scores above a bad one, ties by half, with DeLong's interval.

    The interval is on the scale of log odds (Biometrics 44, 1988, 837-845). None if labels have one class only; no interval at 0 and 1, or if a class has a single label.
    """
    import numpy as np

    values, good = np.asarray(scores, float), np.asarray(gold, bool)
    good_scores, bad_scores = np.sort(values[good]), np.sort(values[~good])
    if not len(good_scores) or not len(bad_scores):
        return None, None

    def above(values: Numbers, rivals: Numbers) -> Numbers:
        """Return the share of *rivals* below each of *values*, ties by half."""
        return (np.searchsorted(rivals, values, "left") + np.searchsorted(rivals, values, "right")) / (2 * len(rivals))

    wins, losses = above(good_scores, bad_scores), 1 - above(bad_scores, good_scores)
    value = float(wins.mean())
    if not 0 < value < 1 or min(len(good_scores), len(bad_scores)) < 2:
        return value, None
    spread = sqrt(float(wins.var(ddof=1)) / len(good_scores) + float(losses.var(ddof=1)) / len(bad_scores))
    middle, reach = log(value / (1 - value)), Z_95 * spread / (value * (1 - value))
    low, high = (1 / (1 + np.exp(-(middle + sign * reach))) for sign in (-1, 1))
    return value, (float(low), float(high))


def newcombe(first_counts: tuple[int, int], second_counts: tuple[int, int]) -> tuple[float, Ends] | None:
    """Return the difference of two shares, each ``(successes, n)``, with R. G. Newcombe's interval (Statistics in Medicine 17, 1998, 873-890, method 10)."""
    first, second = share_interval(*first_counts), share_interval(*second_counts)
    if first is None or second is None:
        return None
    p, q = first_counts[0] / first_counts[1], second_counts[0] / second_counts[1]
    low = p - q - sqrt((p - first[0]) ** 2 + (second[1] - q) ** 2)
    return p - q, (low, p - q + sqrt((first[1] - p) ** 2 + (q - second[0]) ** 2))
