"""Power of a one-sample test: are there enough scores to distinguish a mean from a reference value?"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from math import ceil, isnan, sqrt
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

_MOST = 1e15
"""Largest number of samples that is searched."""

_FIGURES = (
    "mean",
    "std",
    "ci_low",
    "ci_high",
    "effect_size",
    "required_samples",
    "achieved_power",
    "min_detectable_effect",
)


@attrs.frozen
class Power:
    """Power of the two-sided one-sample t-test of the mean score against *null_mean*.

    For each criterion: ``n``, ``mean``, ``std`` (divided by the count minus one) and the mean's 95 % interval ``ci_low`` to ``ci_high``;
    ``effect_size``, Cohen's d, (mean - null_mean)/std; ``required_samples``, the number of scores with which the test detects an effect of this
    size with *target_power*, as a real number; ``achieved_power`` of the test at ``n``; ``min_detectable_effect``, the smallest difference
    from *null_mean*, in the scores' scale, that ``n`` scores detect with *target_power*; and ``words``. ``required_samples`` and
    ``achieved_power`` are null for an effect of 0 or less. The power is that of the noncentral t distribution (J. Cohen, Statistical Power
    Analysis for the Behavioral Sciences, 1988, section 12.7). The power at the observed effect has no more information than the p-value
    (J. M. Hoenig and D. M. Heisey, The American Statistician 55, 2001, 19-24); plan with ``min_detectable_effect``. An undefined figure is
    null, and ``reasons`` has the cause.

    :param alpha: the error rate of the test, from 1e-6 to .25.
    :param target_power: the share of tests that should detect a real effect, from .1 to .999.
    :param null_mean: the reference value of the mean.
    :param criteria: only these criteria; all by default.
    :param source_field: the place of the scores, a dotted path under ``metrics``.
    """

    name = "power"

    alpha: float = attrs.field(default=0.05, validator=Within(1e-6, 0.25, "from 1e-6 to 0.25"))
    target_power: float = attrs.field(default=0.8, validator=Within(0.1, 0.999, "from 0.1 to 0.999"))
    null_mean: float = 0.0
    criteria: tuple[str, ...] = ()
    source_field: str = "scores"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Scores]:
        """Yield a collector without records."""
        yield Scores(self)


class Scores:
    """Collector of the scores by criterion."""

    def __init__(self, options: Power) -> None:
        self._options, self._columns = options, ScoreColumns(options.source_field, options.criteria)
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """Return the figures of each criterion."""
        with ignore_float_warnings():
            return self._columns.document({name: self._power_figures(column) for name, column in self._columns.items()})

    def _power_figures(self, scores: Column) -> dict[str, Any]:
        options, figures = self._options, {"n": len(scores), **dict.fromkeys(_FIGURES)}
        if len(scores):
            figures["mean"] = multiply_by_power(
                mean_of(divide_by_power(scores, common_power(scores))), common_power(scores)
            )
        if len(scores) < 2 or not varies(scores):  # a variance needs two
            reason = "all scores are equal" if len(scores) > 1 else f"{len(scores)} of the 2 needed"
            return with_reasons({**figures, "words": f"not known: {reason}"}, {"effect_size": reason})
        import numpy as np  # 0.1 s, which starting a run does not spend
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        power = common_power(scores)
        scaled, null = divide_by_power(scores, power), float(np.ldexp(options.null_mean, -power))
        mean, deviation, count = float(scaled.mean()), float(scaled.std(ddof=1)), len(scores)
        reach = float(stats.t.ppf(0.975, count - 1)) * deviation / sqrt(count)
        effect, min_effect = (mean - null) / deviation, detectable_effect(count, options.alpha, options.target_power)
        ends = {
            "std": deviation,
            "ci_low": mean - reach,
            "ci_high": mean + reach,
            "min_detectable_effect": min_effect * deviation,
        }
        figures |= {name: multiply_by_power(value, power) for name, value in ends.items()} | {
            "effect_size": json_number(effect)
        }
        if effect <= 0:
            return with_reasons(
                {**figures, "words": self._words(figures)}, {"required_samples": "the effect is 0 or less"}
            )
        figures |= {
            "required_samples": required_count(effect, options.alpha, options.target_power),
            "achieved_power": json_number(test_power(effect, count, options.alpha)),
        }
        return with_reasons({**figures, "words": self._words(figures)}, {})

    def _words(self, figures: Mapping[str, Any]) -> str:
        min_difference, count = figures["min_detectable_effect"], figures["n"]
        if min_difference is None:
            return f"not known over {count:,} scores: they are too large"
        text = f"{count:,} scores detect a difference of {min_difference:.3g} from {self._options.null_mean:g} with a power of {self._options.target_power:g}"
        needed = figures["required_samples"]
        return text if needed is None else f"{text}; the observed difference needs {max(2, ceil(needed)):,}"


def test_power(effect: float, count: float, alpha: float) -> float:
    """Return the power of the two-sided one-sample t-test of *count* scores at the effect size *effect*."""
    from scipy import stats

    freedom, shift = count - 1, effect * sqrt(count)
    bound = stats.t.isf(alpha / 2, freedom)
    wrong_side = float(stats.nct.cdf(-bound, freedom, shift))  # scipy returns NaN for a very small probability
    return float(stats.nct.sf(bound, freedom, shift)) + (0.0 if isnan(wrong_side) else wrong_side)


def required_count(effect: float, alpha: float, power: float) -> float | None:
    """Return the number of scores that detect *effect*, which is more than 0, with *power*.

    None if the number is more than 1e15, or less than 2.
    """
    return _find_root(lambda count: test_power(effect, count, alpha) - power, 2.0, _MOST)


def detectable_effect(count: int, alpha: float, power: float) -> float:
    """Return the smallest effect size that *count* scores, 2 or more, detect with *power*."""
    root = _find_root(lambda effect: test_power(effect, count, alpha) - power, 0.0, _MOST)
    assert root is not None  # the power is alpha at 0, and close to 1 far from 0
    return root


def _find_root(distance: Callable[[float], float], low: float, limit: float) -> float | None:
    """Return the root of the increasing function *distance* between *low* and *limit*; None if there is none."""
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    if distance(low) > 0:
        return None
    high = max(2 * low, 1.0)
    while not distance(high) >= 0:
        low, high = high, 2 * high
        if high > limit:
            return None
    return float(brentq(distance, low, high, xtol=1e-14, rtol=1e-15))
