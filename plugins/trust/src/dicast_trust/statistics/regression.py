"""Regressions with standard errors that know which rows belong together."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

_STEPS, _CLOSE, _FARTHEST = 50, 1e-10, 30.0
"""How many steps Newton's method takes, what is no step any more, and from which coefficient on there is no likeliest one."""


@attrs.frozen
class Fit:
    """A fitted regression: its *coefficients*, and the *errors* of these by cluster."""

    coefficients: Numbers
    errors: Numbers

    def z(self, place: int) -> float | None:
        """A coefficient over its standard error; None where the error is 0."""
        error = float(self.errors[place])
        return float(self.coefficients[place]) / error if error else None


def logit(design: Numbers, outcomes: Numbers, clusters: Sequence[object]) -> Fit | None:
    """The logistic regression of *outcomes* in [0, 1] on the columns of *design*.

    Standard errors by cluster are those of ``statsmodels.Logit`` (K.-Y. Liang and S. L. Zeger, Biometrika 73, 1986, 13-22), corrected by G/(G-1) (N-1)/(N-K). None
    where there is no likeliest fit: columns that depend on each other, too few clusters, or outcomes that the columns tell apart without an error.
    """
    import numpy as np
    from scipy.special import expit  # type: ignore[import-untyped]  # no types

    if not _identified(design, clusters):
        return None
    found = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chances = expit(design @ found)
        information = design.T @ (design * (chances * (1 - chances))[:, None])
        if np.linalg.cond(information) > 1e12:
            return None
        step = np.linalg.solve(information, design.T @ (outcomes - chances))
        found += step
        if abs(found).max() > _FARTHEST:
            return None
        if abs(step).max() < _CLOSE:
            break
    else:
        return None
    chances = expit(design @ found)
    bread = np.linalg.inv(design.T @ (design * (chances * (1 - chances))[:, None]))
    return Fit(found, _errors(bread, design * (outcomes - chances)[:, None], clusters))


def linear(design: Numbers, outcomes: Numbers, clusters: Sequence[object]) -> Fit | None:
    """The least squares of *outcomes* on the columns of *design*, with errors by cluster as in :func:`logit`; None where it is not defined."""
    import numpy as np

    if not _identified(design, clusters):
        return None
    bread = np.linalg.inv(design.T @ design)
    found = bread @ design.T @ outcomes
    return Fit(found, _errors(bread, design * (outcomes - design @ found)[:, None], clusters))


def _identified(design: Numbers, clusters: Sequence[object]) -> bool:
    import numpy as np

    rows, columns = design.shape
    return bool(rows > columns and len(set(clusters)) > columns and np.linalg.matrix_rank(design) == columns)


def _errors(bread: Numbers, slopes: Numbers, clusters: Sequence[object]) -> Numbers:
    """The standard errors, of the slope of each row and the inverse of the information."""
    import numpy as np

    names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(names), slopes.shape[1]))
    np.add.at(sums, [names[name] for name in clusters], slopes)
    rows, columns = slopes.shape
    correction = len(names) / (len(names) - 1) * (rows - 1) / (rows - columns)
    found: Numbers = np.sqrt(np.maximum(np.diag(bread @ (sums.T @ sums) @ bread) * correction, 0))
    return found


def p_value(z: float) -> float:
    """The two-sided p of a standard normal *z*."""
    from scipy.special import erfc

    return float(erfc(abs(z) / sqrt(2)))


def holm(p_values: Sequence[float]) -> list[float]:
    """*p_values* of tests that were made together, adjusted by S. Holm (Scandinavian Journal of Statistics 6(2), 1979, 65-70)."""
    found, so_far = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * p_values[index]))
        found[index] = so_far
    return found
