"""Agreement between the criteria of a run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import combinations
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import RunContext, Within

from ..numbers.scale import TOO_LARGE, common_power, divide_by_power, rescale
from ..numbers.ties import varies
from ..numbers.values import ignore_float_warnings, json_number
from ..scores.columns import AlignedColumns
from ..text.reasons import without_empty

if TYPE_CHECKING:
    from ..numbers.values import Column


@attrs.frozen
class Agreement:
    """Agreement of the criteria: mean correlation, Cronbach's alpha and Krippendorff's alpha.

    The criteria count as raters on one scale, and the records as the rated items.

    - ``n`` counts records with scores on two or more criteria, ``complete`` records with scores on all of them.
    - ``criteria`` lists the criteria with at least *min_items* scores; two are needed. ``unseen`` lists criteria of the option
      ``criteria`` that no record names.
    - ``average_correlation`` is the mean of Pearson's r over pairs of criteria; each r is over the records that have both scores.
      A pair with a constant criterion has no r.
    - ``cronbach_alpha`` is k/(k-1) · (1 - sum of the criteria's variances / variance of the records' sums), over complete
      records (L. J. Cronbach, Psychometrika 16(3), 1951).
    - ``krippendorff_alpha`` has the interval metric, over the ``n`` records (K. Krippendorff, Content Analysis, 2004, ch. 11).

    An undefined figure is null, and ``reasons`` has the cause. For agreement between judges see ``dicast agreement``.

    :param criteria: only these criteria; all by default.
    :param min_items: how many scores a criterion needs, 2 or more.
    :param source_field: the place of the scores, a dotted path under ``metrics``.
    """

    name = "agreement"

    criteria: tuple[str, ...] = ()
    min_items: int = attrs.field(default=2, validator=Within(2, inf, "2 or more (a variance needs two scores)"))
    source_field: str = "scores"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Ratings]:
        """Yield a collector without records."""
        yield Ratings(self)


class Ratings:
    """Collector of a column of scores for each criterion, NaN for a missing score."""

    def __init__(self, options: Agreement) -> None:
        self._options = options
        self._columns = AlignedColumns(options.source_field, options.criteria)
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """Return the figures, and the reasons for null figures."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        columns = dict(sorted(self._columns.finish().items()))
        usable = {n: c for n, c in columns.items() if np.count_nonzero(~np.isnan(c)) >= self._options.min_items}
        unseen = sorted(set(self._options.criteria).difference(columns))
        with ignore_float_warnings():
            figures = _document(list(usable), list(usable.values()), self._columns.rows, self._options.min_items)
        return {**figures, **without_empty({"unseen": unseen})}


def _document(names: Sequence[str], columns: Sequence[Column], rows: int, min_items: int) -> Mapping[str, object]:
    import numpy as np

    ratings = np.zeros(rows, np.int32)
    for column in columns:
        ratings += ~np.isnan(column)
    figures: dict[str, float | None] = dict.fromkeys(("average_correlation", "cronbach_alpha", "krippendorff_alpha"))
    reasons: dict[str, str] = {}
    if len(columns) < 2:
        reason_for_all = f"fewer than two criteria have {min_items} scores"
        reasons = dict.fromkeys(figures, reason_for_all)
    else:
        correlation, power = _correlation(columns), common_power(*columns)
        columns = [divide_by_power(column, power) for column in columns]
        results = {
            "average_correlation": correlation,
            "cronbach_alpha": _cronbach([column[ratings == len(columns)] for column in columns]),
            "krippendorff_alpha": _krippendorff(columns, ratings),
        }
        for name, (figure, reason) in results.items():
            figures[name] = figure
            if figure is None:
                reasons[name] = reason
    complete = int((ratings == len(columns)).sum()) if columns else 0
    return {
        "n": int((ratings > 1).sum()),
        "complete": complete,
        "criteria": list(names),
        **figures,
        **without_empty({"reasons": reasons}),
    }


def _correlation(columns: Sequence[Column]) -> tuple[float | None, str]:
    correlations = list(_correlations(columns))
    mean = json_number(sum(correlations) / len(correlations)) if correlations else None
    return mean, "no two criteria vary over records that have both scores"


def _correlations(columns: Sequence[Column]) -> Iterator[float]:
    """Yield Pearson's r of each pair of columns that both vary."""
    import numpy as np

    for left, right in combinations(columns, 2):
        both = ~(np.isnan(left) | np.isnan(right))
        first, second = rescale(left[both]), rescale(right[both])
        if varies(first) and varies(second):
            yield float(np.corrcoef(first, second)[0, 1])


def _cronbach(columns: Sequence[Column]) -> tuple[float | None, str]:
    count, totals = len(columns), sum(columns[1:], start=columns[0])
    if len(totals) < 2:
        return None, "fewer than two records have scores on all criteria"
    if not varies(totals):
        return None, "the sums of the records' scores are all equal"
    shares = sum(column.var(ddof=1) for column in columns) / totals.var(ddof=1)
    return json_number(count / (count - 1) * (1 - shares)), TOO_LARGE


def _krippendorff(columns: Sequence[Column], ratings: Any) -> tuple[float | None, str]:
    """Return Krippendorff's alpha of *columns*; *ratings* has the number of scores of each record.

    With m scores in a record, S the sum of their squared distances from their mean, and T that sum for all n scores, over records with
    two or more scores: alpha = 1 - (n - 1)/n · sum(m S/(m - 1))/T. This is the book's formula with equal terms combined.
    """
    import numpy as np

    is_pairable = ratings > 1
    counts = ratings[is_pairable]
    scores = [column[is_pairable] for column in columns]
    if not len(counts):
        return None, "no record has two scores"
    means = sum(np.nan_to_num(column, nan=0.0) for column in scores) / counts
    within = sum(np.nan_to_num((column - means) ** 2, nan=0.0) for column in scores)
    for place, column in enumerate(scores):  # one column at a time, and in place below: a million records take 40 MB
        scores[place] = column[~np.isnan(column)]
    pooled = np.concatenate(scores)
    if not varies(pooled):
        return None, "all scores are equal, so chance would agree as well"
    pooled -= pooled.mean()
    n, spread = len(pooled), np.square(pooled, out=pooled).sum()
    return json_number(1 - (n - 1) / n * (counts * within / (counts - 1)).sum() / spread), TOO_LARGE
