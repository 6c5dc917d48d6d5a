"""How far the criteria of a run agree."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import RunContext, Within

from ..numbers.scale import TOO_LARGE, divided, fit, power_of
from ..numbers.ties import varies
from ..numbers.values import plain, quiet
from ..scores.columns import AlignedColumns
from ..text.reasons import there

if TYPE_CHECKING:
    from ..numbers.values import Column


@attrs.frozen
class Agreement:
    """Says how far the criteria agree: their correlation, Cronbach's alpha, Krippendorff's alpha.

    Criteria are taken for raters of the same thing, on the same scale; records for what is rated.

    - ``n`` counts records with scores on two of the criteria or more, ``complete`` those with scores on all of them.
    - ``criteria`` are those that count: with at least *min_items* scores. Two are needed. Those of the option ``criteria`` that no
      record names are ``unseen``.
    - ``average_correlation`` is the mean over pairs of criteria of Pearson's r, each over the records that have both scores;
      a pair of which one is constant has none.
    - ``cronbach_alpha`` is k/(k-1) · (1 - sum of the criteria's variances / variance of the records' sums), over complete
      records (L. J. Cronbach, Psychometrika 16(3), 1951).
    - ``krippendorff_alpha`` has the interval metric, over the ``n`` records (K. Krippendorff, Content Analysis, 2004, ch. 11).

    What is not defined is null, and ``reasons`` says why. Agreement between judges is ``dicast agreement``'s.

    :param criteria: only these; all by default.
    :param min_items: how many scores a criterion needs, 2 or more.
    :param source_field: where the scores are, a dotted path under ``metrics``.
    """

    name = "agreement"

    criteria: tuple[str, ...] = ()
    min_items: int = attrs.field(default=2, validator=Within(2, inf, "2 or more (a variance needs two scores)"))
    source_field: str = "scores"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Ratings]:
        """Begin with no record."""
        yield Ratings(self)


class Ratings:
    """Takes records, and keeps a column of scores for each criterion, NaN where there is none."""

    def __init__(self, options: Agreement) -> None:
        self._options = options
        self._columns = AlignedColumns(options.source_field, options.criteria)
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """The figures, and why there are others none of."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        columns = dict(sorted(self._columns.finish().items()))
        usable = {n: c for n, c in columns.items() if np.count_nonzero(~np.isnan(c)) >= self._options.min_items}
        unseen = sorted(set(self._options.criteria).difference(columns))
        with quiet():
            figures = _document(list(usable), list(usable.values()), self._columns.rows, self._options.min_items)
        return {**figures, **there({"unseen": unseen})}


def _document(names: Sequence[str], columns: Sequence[Column], rows: int, least: int) -> Mapping[str, object]:
    import numpy as np

    ratings = np.zeros(rows, np.int32)
    for column in columns:
        ratings += ~np.isnan(column)
    figures: dict[str, float | None] = dict.fromkeys(("average_correlation", "cronbach_alpha", "krippendorff_alpha"))
    reasons: dict[str, str] = {}
    if len(columns) < 2:
        few = f"fewer than two criteria have {least} scores"
        reasons = dict.fromkeys(figures, few)
    else:
        correlation, power = _correlation(columns), power_of(*columns)
        columns = [divided(column, power) for column in columns]
        found = {
            "average_correlation": correlation,
            "cronbach_alpha": _cronbach([column[ratings == len(columns)] for column in columns]),
            "krippendorff_alpha": _krippendorff(columns, ratings),
        }
        for name, (figure, why) in found.items():
            figures[name] = figure
            if figure is None:
                reasons[name] = why
    complete = int((ratings == len(columns)).sum()) if columns else 0
    return {
        "n": int((ratings > 1).sum()),
        "complete": complete,
        "criteria": list(names),
        **figures,
        **there({"reasons": reasons}),
    }


def _correlation(columns: Sequence[Column]) -> tuple[float | None, str]:
    found = list(_correlations(columns))
    mean = plain(sum(found) / len(found)) if found else None
    return mean, "no two criteria vary over records that have both scores"


def _correlations(columns: Sequence[Column]) -> Iterator[float]:
    """Pearson's r of each pair of columns that has one."""
    import numpy as np

    for one, other in combinations(columns, 2):
        both = ~(np.isnan(one) | np.isnan(other))
        first, second = fit(one[both]), fit(other[both])
        if varies(first) and varies(second):
            yield float(np.corrcoef(first, second)[0, 1])


def _cronbach(columns: Sequence[Column]) -> tuple[float | None, str]:
    count, totals = len(columns), sum(columns[1:], start=columns[0])
    if len(totals) < 2:
        return None, "fewer than two records have scores on all criteria"
    if not varies(totals):
        return None, "the sums of the records' scores are all equal"
    shares = sum(column.var(ddof=1) for column in columns) / totals.var(ddof=1)
    return plain(count / (count - 1) * (1 - shares)), TOO_LARGE


def _krippendorff(columns: Sequence[Column], ratings: Any) -> tuple[float | None, str]:
    """Alpha of *columns*, of which each record has as many scores as *ratings* says.

    With m scores in a record, S its sum of squared distances from their mean, T that of all n scores from theirs, over records with
    two scores or more: alpha = 1 - (n - 1)/n · sum(m S/(m - 1))/T, the book's formula with equal terms put together.
    """
    import numpy as np

    kept = ratings > 1
    counts = ratings[kept]
    scores = [column[kept] for column in columns]
    if not len(counts):
        return None, "no record has two scores"
    means = sum(np.nan_to_num(column, nan=0.0) for column in scores) / counts
    within = sum(np.nan_to_num((column - means) ** 2, nan=0.0) for column in scores)
    for place, column in enumerate(scores):  # one by one, and in place below: of a million records all are 40 MB
        scores[place] = column[~np.isnan(column)]
    pooled = np.concatenate(scores)
    if not varies(pooled):
        return None, "all scores are equal, so chance would agree as well"
    pooled -= pooled.mean()
    n, spread = len(pooled), np.square(pooled, out=pooled).sum()
    return plain(1 - (n - 1) / n * (counts * within / (counts - 1)).sum() / spread), TOO_LARGE
