"""Agreement by day: the share of subjects with their last verdict on a day on which raters agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from dicast import Ledger
from dicast.reading import rows_by_key, view

from .agreement import ComparisonOptions
from .many_ratings import ManyRatings, Table
from .ratings import Between, Ratings
from .reliability import NOISE

_DAY = 86_400_000
"""A day in milliseconds."""


def read_agreement_days(
    ledger: Ledger,
    *,
    judge: Sequence[str] = (),
    run: Sequence[str] = (),
    between: Between | None = None,
    subject_kind: str | None = None,
    window: float = 0.15,
) -> dict[str, Any]:
    """Return ``n`` and ``within`` of ``dicast agreement`` in total and by the day (UTC) of each subject's newest verdict.

    A subject is within *window* if its highest and lowest score differ by at most *window*.

    :raises ConfigError: when the ledger lacks a requested item, or there are not two raters.
    """
    options = ComparisonOptions(tuple(dict.fromkeys(judge)), tuple(dict.fromkeys(run)), subject_kind, between, None)
    ratings, between = options.ratings(ledger)
    table = ratings.table if isinstance(ratings, ManyRatings) else None
    if isinstance(ratings, ManyRatings) and table is not None:
        days = _days_of(ratings, table, window)
    else:
        days = {}
        for time, spread in _spreads(ratings):
            counts = days.setdefault(time // _DAY, [0, 0])
            counts[0] += 1
            counts[1] += spread <= window + NOISE
    n, within = (sum(counts[place] for counts in days.values()) for place in (0, 1))
    return {
        "between": between,
        "window": window,
        "raters": list(ratings.raters),
        "n": n,
        "within": within / n if n else None,
        "data": [{"day": _written(day), "n": n, "within": within / n} for day, (n, within) in sorted(days.items())],
    }


def _days_of(ratings: ManyRatings, table: Table, window: float) -> dict[int, list[int]]:
    """Return by day the number of subjects with two scores, and how many are within *window*."""
    np = ratings.np
    times = np.where(np.isnan(table.scores), -(2**62), view(np, ratings.judged.times)[table.rows])
    days = times.max(axis=0) // _DAY if len(table.spreads) else np.zeros(0, "q")
    return {
        day: [len(places), int(np.count_nonzero(table.spreads[places] <= window + NOISE))]
        for day, places in rows_by_key(np, days)
    }


def _spreads(ratings: Ratings) -> Iterator[tuple[int, float]]:
    """Yield the time of the newest verdict and the spread of scores, for subjects that two raters scored."""
    times = ratings.judged.times
    if len(ratings.newest) == 2 and not ratings.contents.several:
        yield from _pairs(ratings)
        return
    for place in ratings.places():
        unit = ratings.unit(place)
        scored = {rater: score for rater, score in unit.scores.items() if score is not None}
        if len(scored) > 1:
            yield max(times[unit.rows[rater]] for rater in scored), _spread(scored.values())


def _pairs(ratings: Ratings) -> Iterator[tuple[int, float]]:
    """Yield times and spreads for exactly two raters, without an object for each subject."""
    first, second = ratings.newest.values()
    score, times = ratings.score, ratings.judged.times
    for place, row in first.items():
        other = second.get(place)
        if other is not None and (first_score := score(row)) is not None and (second_score := score(other)) is not None:
            yield max(times[row], times[other]), abs(first_score - second_score)


def _spread(scores: Iterable[float]) -> float:
    values = list(scores)
    return max(values) - min(values)


def _written(day: int) -> str:
    return datetime.fromtimestamp(day * _DAY / 1000, UTC).date().isoformat()
