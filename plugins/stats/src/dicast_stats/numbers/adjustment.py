"""Adjustment of p-values for several tests, and the options that tests share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Literal, get_args

import attrs

from dicast import ConfigError, Problem, Within, nearest

Adjustment = Literal["none", "bonferroni", "holm", "fdr"]
ADJUSTMENTS: tuple[str, ...] = get_args(Adjustment)
RULES: Mapping[Adjustment, str] = {"bonferroni": "Bonferroni", "holm": "Holm", "fdr": "FDR"}
"""Names of the rules that adjust p-values, in sentences."""

SAMPLES = Within(2, inf, "2 or more (a variance needs two scores)")


def check_adjustment(_instance: object, _attribute: attrs.Attribute[Adjustment], adjustment: Adjustment) -> None:
    """Validate the option *adjustment*, as an attrs validator.

    :raises ConfigError: if it is not in :data:`ADJUSTMENTS`.
    """
    if adjustment not in ADJUSTMENTS:
        message = f"unknown adjustment {adjustment!r}: choose one of {', '.join(ADJUSTMENTS)}"
        raise ConfigError(Problem(message, value=adjustment, hint=nearest(str(adjustment), ADJUSTMENTS)))


def adjust_p_values(p_values: Sequence[float], adjustment: Adjustment, family_size: int = 0) -> list[float]:
    """Return the adjusted *p_values* of tests that were made together, in the same order.

    Bonferroni multiplies p by the number of tests. Holm (Scandinavian Journal of Statistics 6(2), 1979) goes through the p-values from the
    smallest up, multiplies p by the number of tests not yet passed, and keeps the running maximum. The false discovery rate is that of
    Y. Benjamini and Y. Hochberg (Journal of the Royal Statistical Society B 57(1), 1995). If *family_size* is larger than the number of
    *p_values*, the missing tests count with a p of 1.
    """
    count = max(len(p_values), family_size)
    if adjustment == "bonferroni":
        return [min(1.0, count * p_value) for p_value in p_values]
    if adjustment == "holm":
        return _holm(p_values, count)
    if adjustment == "fdr" and p_values:
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        all_p_values = [*p_values, *[1.0] * (count - len(p_values))]
        return [float(p_value) for p_value in stats.false_discovery_control(all_p_values)[: len(p_values)]]
    return list(p_values)


def set_adjusted_p_values(
    tests: Iterable[dict[str, Any]], adjustment: Adjustment, family_size: int = 0, name: str = "p_value"
) -> None:
    """Set ``adjusted_NAME`` in each of *tests* from its p-value *name*; the tests form one family, and a null p-value stays null."""
    tests_list = list(tests)
    adjusted_values = iter(
        adjust_p_values([test[name] for test in tests_list if test[name] is not None], adjustment, family_size)
    )
    for test in tests_list:
        test[f"adjusted_{name}"] = None if test[name] is None else next(adjusted_values)


def _holm(p_values: Sequence[float], count: int) -> list[float]:
    results, so_far = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (count - place) * p_values[index]))
        results[index] = so_far
    return results
