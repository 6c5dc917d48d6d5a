"""What counts of errors say about a rate: exact tests and bounds, for independent labels and for sessions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


def least_labels(risk: float, alpha: float) -> int:
    """The least number of labels with which a test can pass at all: without an error, ``(1 - risk)^n <= alpha``."""
    return max(1, math.ceil(math.log(alpha) / math.log(1 - risk)))


def passes(errors: Numbers | int, n: Numbers | int, risk: float, alpha: float) -> Any:
    """Whether ``P(Bin(n, risk) <= errors) <= alpha``: so few errors are improbable at an error rate of *risk* or more.

    The exact binomial test. It passes exactly where :func:`upper` is at most *risk*.
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]  # no types; heavy

    return bdtr(errors, n, risk) <= alpha


def upper(errors: Numbers | float, n: Numbers | float, alpha: float) -> Any:
    """The upper bound of an error rate at the one-sided level 1 - *alpha*, after *errors* of *n*; 1 where all are errors.

    Clopper and Pearson (1934): the ``1 - alpha`` quantile of Beta(errors + 1, n - errors). *errors* and *n* need not be whole.
    """
    import numpy as np
    from scipy.special import betaincinv

    k, m = np.asarray(errors, float), np.asarray(n, float)
    rest = np.maximum(m - k, 0.0)
    bound = np.where(rest > 0, betaincinv(k + 1, np.where(rest > 0, rest, 1.0), 1 - alpha), 1.0)
    return float(bound) if bound.ndim == 0 else bound


def most_errors(n: int, risk: float, alpha: float) -> int | None:
    """The most errors of *n* labels with which :func:`passes` holds; None where it never does."""
    from scipy.special import bdtr

    found = None
    for errors in range(n + 1):
        if bdtr(errors, n, risk) > alpha:
            break
        found = errors
    return found


def clustered_upper(errors: Sequence[int] | Numbers, sessions: Sequence[int] | Numbers, alpha: float) -> float | None:
    """The upper bound of an error rate where labels of one session resemble each other; None below 2 sessions.

    :param errors: of each label, 1 for an error and 0 for none.
    :param sessions: of each label, the number of its session, from 0.

    Korn and Graubard (1998): Clopper-Pearson at the number of labels that independent ones would need to say as much, with the
    design effect of the sessions (never below 1) and the degrees of freedom that so few sessions leave.
    """
    import numpy as np
    from scipy.special import stdtrit

    wrong, members = np.asarray(errors, float), np.unique(np.asarray(sessions), return_inverse=True)[1]
    n, groups = len(wrong), int(members.max()) + 1 if len(members) else 0
    if groups < 2:
        return None
    p = wrong.mean()
    sums = np.bincount(members, weights=wrong - p)
    variance = groups / (groups - 1) * float(sums @ sums) / n**2
    near = (wrong.sum() + 0.5) / (n + 1)
    design = max(1.0, variance * n / (near * (1 - near)))
    few = stdtrit(groups - 1, 1 - alpha)
    freedom = (stdtrit(n - 1, 1 - alpha) / few) ** 2 if few else 1.0  # both are 0 at an alpha of .5
    effective = float(freedom * n / design)
    return float(upper(p * effective, effective, alpha))


def wilson(successes: float, n: int, z: float = Z) -> tuple[float, float] | None:
    """The interval of Wilson (1927) for a share, at 95 % where *z* is not given; None where there is nothing to count."""
    if n == 0:
        return None
    p, centre = successes / n, 1 + z * z / n
    middle = (p + z * z / (2 * n)) / centre
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / centre
    return (max(0.0, middle - half) if successes > 0 else 0.0), (min(1.0, middle + half) if successes < n else 1.0)
