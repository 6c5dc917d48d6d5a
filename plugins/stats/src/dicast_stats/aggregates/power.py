"""Whether there are enough scores to tell a mean from a reference value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from math import ceil, isnan, sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import RunContext, Within

from ..numbers.scale import divided, mean_of, multiplied, power_of
from ..numbers.ties import varies
from ..numbers.values import plain, quiet
from ..scores.columns import ScoreColumns
from ..text.reasons import explained

if TYPE_CHECKING:
    from ..numbers.values import Column

_MOST = 1e15
"""More samples than these are not looked for."""

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
    """Whether there are enough scores to tell their mean from *null_mean*, by the power of the two-sided one-sample t-test.

    For each criterion: ``n``, ``mean``, ``std`` (divided by one less than the count) and the mean's 95 % interval ``ci_low`` to ``ci_high``;
    ``effect_size``, Cohen's d, (mean - null_mean)/std; ``required_samples``, how many scores the test needs to see an effect of this size with
    *target_power*, as a real number; ``achieved_power``, of the test at ``n``; both null where the effect is 0 or less;
    ``min_detectable_effect``, the least difference from *null_mean*, in the scores' scale, that ``n`` scores would show with *target_power*;
    and ``words``. The power is that of the noncentral t distribution (J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988,
    section 12.7). The power at the effect that was seen says no more than the p-value does (J. M. Hoenig and D. M. Heisey, The American
    Statistician 55, 2001, 19-24); plan with ``min_detectable_effect``. What is not defined is null, and ``reasons`` says why.

    :param alpha: the test's error rate, from 1e-6 to .25.
    :param target_power: how often an effect that is there is to show, from .1 to .999.
    :param null_mean: what the mean is told from.
    :param criteria: only these; all by default.
    :param source_field: where the scores are, a dotted path under ``metrics``.
    """

    name = "power"

    alpha: float = attrs.field(default=0.05, validator=Within(1e-6, 0.25, "from 1e-6 to 0.25"))
    target_power: float = attrs.field(default=0.8, validator=Within(0.1, 0.999, "from 0.1 to 0.999"))
    null_mean: float = 0.0
    criteria: tuple[str, ...] = ()
    source_field: str = "scores"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Scores]:
        """Begin with no record."""
        yield Scores(self)


class Scores:
    """Takes records, and keeps their scores by criterion."""

    def __init__(self, options: Power) -> None:
        self._options, self._columns = options, ScoreColumns(options.source_field, options.criteria)
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """The figures of each criterion."""
        with quiet():
            return self._columns.finished({name: self._planned(column) for name, column in self._columns.items()})

    def _planned(self, scores: Column) -> dict[str, Any]:
        options, figures = self._options, {"n": len(scores), **dict.fromkeys(_FIGURES)}
        if len(scores):
            figures["mean"] = multiplied(mean_of(divided(scores, power_of(scores))), power_of(scores))
        if len(scores) < 2 or not varies(scores):  # a variance needs two
            why = "the scores are all alike" if len(scores) > 1 else f"{len(scores)} of the 2 needed"
            return explained({**figures, "words": f"not known: {why}"}, {"effect_size": why})
        import numpy as np  # 0.1 s, which starting a run does not spend
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        power = power_of(scores)
        scaled, null = divided(scores, power), float(np.ldexp(options.null_mean, -power))
        mean, deviation, count = float(scaled.mean()), float(scaled.std(ddof=1)), len(scores)
        reach = float(stats.t.ppf(0.975, count - 1)) * deviation / sqrt(count)
        effect, least = (mean - null) / deviation, detectable(count, options.alpha, options.target_power)
        ends = {
            "std": deviation,
            "ci_low": mean - reach,
            "ci_high": mean + reach,
            "min_detectable_effect": least * deviation,
        }
        figures |= {name: multiplied(value, power) for name, value in ends.items()} | {"effect_size": plain(effect)}
        if effect <= 0:
            return explained(
                {**figures, "words": self._words(figures)}, {"required_samples": "the effect is 0 or less"}
            )
        figures |= {
            "required_samples": required(effect, options.alpha, options.target_power),
            "achieved_power": plain(power_at(effect, count, options.alpha)),
        }
        return explained({**figures, "words": self._words(figures)}, {})

    def _words(self, figures: Mapping[str, Any]) -> str:
        least, count = figures["min_detectable_effect"], figures["n"]
        if least is None:
            return f"not known over {count:,} scores: they are too large"
        can = f"{count:,} scores show a difference of {least:.3g} from {self._options.null_mean:g} with a power of {self._options.target_power:g}"
        needed = figures["required_samples"]
        return can if needed is None else f"{can}; the one that was seen needs {max(2, ceil(needed)):,}"


def power_at(effect: float, count: float, alpha: float) -> float:
    """The power of the two-sided one-sample t-test of *count* scores, at the effect size *effect*."""
    from scipy import stats

    freedom, shift = count - 1, effect * sqrt(count)
    bound = stats.t.isf(alpha / 2, freedom)
    wrong_side = float(stats.nct.cdf(-bound, freedom, shift))  # scipy has none where it is next to nothing
    return float(stats.nct.sf(bound, freedom, shift)) + (0.0 if isnan(wrong_side) else wrong_side)


def required(effect: float, alpha: float, power: float) -> float | None:
    """How many scores show *effect*, more than 0, with *power*; None where that is more than 1e15, or fewer than 2 scores do."""
    return _root(lambda count: power_at(effect, count, alpha) - power, 2.0, _MOST)


def detectable(count: int, alpha: float, power: float) -> float:
    """The least effect size that *count* scores, 2 or more, show with *power*."""
    found = _root(lambda effect: power_at(effect, count, alpha) - power, 0.0, _MOST)
    assert found is not None  # a power of alpha at 0, and of 1 far from it
    return found


def _root(distance: Callable[[float], float], low: float, most: float) -> float | None:
    """Where *distance*, which rises, is 0, between *low* and *most*."""
    from scipy.optimize import brentq  # type: ignore[import-untyped]

    if distance(low) > 0:
        return None
    high = max(2 * low, 1.0)
    while not distance(high) >= 0:
        low, high = high, 2 * high
        if high > most:
            return None
    return float(brentq(distance, low, high, xtol=1e-14, rtol=1e-15))
