"""Adjustment of p-values for several tests, and the options that tests share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any, Literal, get_args

import attrs

from dicast import ConfigError, Problem, Within, nearest

Adjustment = Literal["none", "bonferroni", "holm", "fdr"]
ADJUSTMENTS: tuple[str, ...] = get_args(Adjustment)

SAMPLES = Within(2, inf, "2 or more (a variance needs two scores)")


def check_adjustment(_instance: object, _attribute: attrs.Attribute[Adjustment], adjustment: Adjustment) -> None:
    """An attrs validator for the option *adjustment*.

    :raises ConfigError: when it is none of :data:`ADJUSTMENTS`.
    """
    if adjustment not in ADJUSTMENTS:
        message = f"unknown adjustment {adjustment!r}: it is {', '.join(ADJUSTMENTS)}"
        raise ConfigError(Problem(message, value=adjustment, hint=nearest(str(adjustment), ADJUSTMENTS)))


def adjusted(p_values: Sequence[float], adjustment: Adjustment, family_size: int = 0) -> list[float]:
    """*p_values* of tests that were made together, in their order.

    Bonferroni's is the number of tests times p; Holm's (Scandinavian Journal of Statistics 6(2), 1979) the largest so far, from the
    least p on, of the number of tests that are left times p; that of the false discovery rate is Y. Benjamini's and Y. Hochberg's
    (Journal of the Royal Statistical Society B 57(1), 1995). Tests elsewhere, up to *family_size*, count as if their p were 1.
    """
    count = max(len(p_values), family_size)
    if adjustment == "bonferroni":
        return [min(1.0, count * p_value) for p_value in p_values]
    if adjustment == "holm":
        return _holm(p_values, count)
    if adjustment == "fdr" and p_values:
        from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s, which starting a run does not spend

        every = [*p_values, *[1.0] * (count - len(p_values))]
        return [float(p_value) for p_value in stats.false_discovery_control(every)[: len(p_values)]]
    return list(p_values)


def adjust_all(
    tests: Iterable[dict[str, Any]], adjustment: Adjustment, family_size: int = 0, name: str = "p_value"
) -> None:
    """Set the adjusted p-value of the *name* of each of *tests*, which were made together; null where that is null."""
    every = list(tests)
    known = iter(adjusted([one[name] for one in every if one[name] is not None], adjustment, family_size))
    for one in every:
        one[f"adjusted_{name}"] = None if one[name] is None else next(known)


def _holm(p_values: Sequence[float], count: int) -> list[float]:
    found, so_far = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (count - place) * p_values[index]))
        found[index] = so_far
    return found
