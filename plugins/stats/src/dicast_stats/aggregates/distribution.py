"""Distribution of a run's scores: quantiles, a histogram and the shape."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import RunContext, Within

from ..numbers.scale import common_power, divide_by_power, mean_of, multiply_by_power
from ..numbers.ties import varies
from ..numbers.values import ignore_float_warnings, json_number
from ..scores.columns import ScoreColumns
from ..text.reasons import with_reasons

if TYPE_CHECKING:
    from ..numbers.values import Column

_QUANTILES = (5, 25, 50, 75, 95)


@attrs.frozen
class Distribution:
    """Distribution of the scores of each criterion.

    For each criterion: ``n`` and ``missing``; ``mean`` with its 95 % interval ``ci_low`` to ``ci_high`` (t); ``std`` (divided by the count
    minus one); ``min``, ``p5``, ``p25``, ``p50``, ``p75``, ``p95`` and ``max``, interpolated linearly; ``skewness`` (the adjusted
    Fisher-Pearson coefficient, from 3 scores on); ``effect_size``, mean/std; ``histogram`` with ``counts`` and ``edges``; and ``words``.
    There is one edge more than *bins*, at equal distances from the lowest to the highest score, or around the score if all are equal.
    An undefined figure is null, and ``reasons`` has the cause.

    :param bins: the number of bins of the histogram.
    :param criteria: only these criteria; all by default.
    :param source_field: the place of the scores, a dotted path under ``metrics``.
    """

    name = "distribution"

    bins: int = attrs.field(default=10, validator=Within(1, 1000, "from 1 to 1000"))
    criteria: tuple[str, ...] = ()
    source_field: str = "scores"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Spread]:
        """Yield a collector without records."""
        yield Spread(self)


class Spread:
    """Collector of the scores by criterion."""

    def __init__(self, options: Distribution) -> None:
        self._bins, self._columns = options.bins, ScoreColumns(options.source_field, options.criteria)
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """Return the figures of each criterion."""
        with ignore_float_warnings():
            return self._columns.document({name: self._spread(name, column) for name, column in self._columns.items()})

    def _spread(self, criterion: str, scores: Column) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        names = ("mean", "ci_low", "ci_high", "std", "min", *(f"p{share}" for share in _QUANTILES), "max")
        counts = {"n": len(scores), "missing": self._columns.missing(criterion)}
        figures: dict[str, Any] = {**counts, **dict.fromkeys((*names, "skewness", "effect_size", "histogram"))}
        if not len(scores):
            return with_reasons({**figures, "words": "no scores"}, {"n": "no scores"})
        power = common_power(scores)
        scaled = divide_by_power(scores, power)
        lengths = {"mean": mean_of(scaled), "min": scaled.min(), "max": scaled.max()}
        lengths |= dict(zip((f"p{share}" for share in _QUANTILES), np.percentile(scaled, _QUANTILES), strict=True))
        reasons, is_constant = {}, not varies(scaled)
        if not is_constant:
            from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

            deviation = float(scaled.std(ddof=1))
            reach = float(stats.t.ppf(0.975, len(scores) - 1)) * deviation / sqrt(len(scores))
            lengths |= {"std": deviation, "ci_low": lengths["mean"] - reach, "ci_high": lengths["mean"] + reach}
            skewness = json_number(stats.skew(scaled, bias=False)) if len(scores) > 2 else None  # its divisor is n - 2
            figures |= {"skewness": skewness, "effect_size": json_number(lengths["mean"] / deviation)}
        else:
            reasons = {"std": "all scores are equal" if len(scores) > 1 else "1 of the 2 needed"}
        figures |= {name: multiply_by_power(value, power) for name, value in lengths.items()}
        lowest, highest = lengths["min"], lengths["max"]
        margin = max(0.5, abs(lowest) * 1e-6) if is_constant else 0.0  # makes the edges differ from each other
        counted, edges = np.histogram(scaled, self._bins, (lowest - margin, highest + margin))
        figures["histogram"] = {"edges": [multiply_by_power(edge, power) for edge in edges], "counts": counted.tolist()}
        return with_reasons({**figures, "words": _words(figures, is_constant=is_constant)}, reasons)


def _words(figures: Mapping[str, Any], *, is_constant: bool) -> str:
    count, low, high = f"{figures['n']:,}", f"{figures['p25']:.4g}", f"{figures['p75']:.4g}"
    if is_constant:
        return f"the one score is {low}" if figures["n"] == 1 else f"all {count} scores are {low}"
    if figures["p25"] == figures["p75"]:
        return f"at least half of {count} scores are {low}"
    return f"the middle half of {count} scores lies between {low} and {high}"
