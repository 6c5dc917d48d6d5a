"""Logistic and linear regression with standard errors by cluster, and adjustment of p-values."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

_STEPS, _CLOSE, _FARTHEST = 50, 1e-10, 30.0
"""Most steps of Newton's method, the step size at which it has converged, and the size of a coefficient above which it diverges."""


@attrs.frozen
class Fit:
    """Fitted regression: its *coefficients*, and their standard *errors* by cluster."""

    coefficients: Numbers
    errors: Numbers

    def z(self, place: int) -> float | None:
        """Return a coefficient divided by its standard error; None if the error is 0."""
        error = float(self.errors[place])
        return float(self.coefficients[place]) / error if error else None


def logit(design: Numbers, outcomes: Numbers, clusters: Sequence[object]) -> Fit | None:
    """Return the logistic regression of *outcomes* in [0, 1] on the columns of *design*.

    Standard errors by cluster equal ``statsmodels.Logit`` (K.-Y. Liang and S. L. Zeger, Biometrika 73, 1986, 13-22), corrected by G/(G-1) (N-1)/(N-K).

    :return: None if there is no maximum likelihood estimate: columns are linearly dependent, clusters are too few, or the columns separate the outcomes without an error.
    """
    import numpy as np
    from scipy.special import expit  # type: ignore[import-untyped]  # no types

    if not _is_identified(design, clusters):
        return None
    coefficients = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        chances = expit(design @ coefficients)
        information = design.T @ (design * (chances * (1 - chances))[:, None])
        if np.linalg.cond(information) > 1e12:
            return None
        step = np.linalg.solve(information, design.T @ (outcomes - chances))
        coefficients += step
        if abs(coefficients).max() > _FARTHEST:
            return None
        if abs(step).max() < _CLOSE:
            break
    else:
        return None
    chances = expit(design @ coefficients)
    bread = np.linalg.inv(design.T @ (design * (chances * (1 - chances))[:, None]))
    return Fit(coefficients, _errors(bread, design * (outcomes - chances)[:, None], clusters))


def linear(design: Numbers, outcomes: Numbers, clusters: Sequence[object]) -> Fit | None:
    """Return the least squares fit of *outcomes* on the columns of *design*, with errors by cluster as in :func:`logit`; None if it is not defined."""
    import numpy as np

    if not _is_identified(design, clusters):
        return None
    bread = np.linalg.inv(design.T @ design)
    coefficients = bread @ design.T @ outcomes
    return Fit(coefficients, _errors(bread, design * (outcomes - design @ coefficients)[:, None], clusters))


def _is_identified(design: Numbers, clusters: Sequence[object]) -> bool:
    """Return whether the columns are linearly independent, with more rows and more clusters than columns."""
    import numpy as np

    rows, columns = design.shape
    return bool(rows > columns and len(set(clusters)) > columns and np.linalg.matrix_rank(design) == columns)


def _errors(bread: Numbers, gradients: Numbers, clusters: Sequence[object]) -> Numbers:
    """Return the standard errors by cluster, with the sandwich estimator.

    :param bread: the inverse of the information matrix.
    :param gradients: the gradient of the log-likelihood at each row.
    """
    import numpy as np

    names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(names), gradients.shape[1]))
    np.add.at(sums, [names[name] for name in clusters], gradients)
    rows, columns = gradients.shape
    correction = len(names) / (len(names) - 1) * (rows - 1) / (rows - columns)
    errors: Numbers = np.sqrt(np.maximum(np.diag(bread @ (sums.T @ sums) @ bread) * correction, 0))
    return errors


def p_value(z: float) -> float:
    """Return the two-sided p-value of a standard normal *z*."""
    from scipy.special import erfc

    return float(erfc(abs(z) / sqrt(2)))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return *p_values* of a family of tests, adjusted by S. Holm (Scandinavian Journal of Statistics 6(2), 1979, 65-70)."""
    adjusted, so_far = [0.0] * len(p_values), 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        so_far = max(so_far, min(1.0, (len(p_values) - place) * p_values[index]))
        adjusted[index] = so_far
    return adjusted
