"""Exact binomial tests and bounds of an error rate, for independent labels and for labels grouped by session."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dicast.toolkit.intervals import Z_95, wilson

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]


def least_labels(risk: float, alpha: float) -> int:
    """Return the least number of labels with which :func:`passes` can hold: the least n with ``(1 - risk)^n <= alpha``.

    With so few labels it holds only if no label is an error.
    """
    return max(1, math.ceil(math.log(alpha) / math.log(1 - risk)))


def passes(errors: Numbers | int, n: Numbers | int, risk: float, alpha: float) -> Any:
    """Return whether *errors* of *n* are few enough to reject an error rate of *risk* or more at the level *alpha*.

    The exact binomial test: ``P(Bin(n, risk) <= errors) <= alpha``. It passes if and only if :func:`upper` is at most *risk*.
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]  # no types; heavy

    return bdtr(errors, n, risk) <= alpha


def upper(errors: Numbers | float, n: Numbers | float, alpha: float) -> Any:
    """Return the upper bound of an error rate at the one-sided level 1 - *alpha*, after *errors* of *n*; 1 if all are errors.

    Clopper and Pearson (1934): the ``1 - alpha`` quantile of Beta(errors + 1, n - errors). *errors* and *n* need not be whole.
    """
    import numpy as np
    from scipy.special import betaincinv

    k, m = np.asarray(errors, float), np.asarray(n, float)
    rest = np.maximum(m - k, 0.0)
    bound = np.where(rest > 0, betaincinv(k + 1, np.where(rest > 0, rest, 1.0), 1 - alpha), 1.0)
    return float(bound) if bound.ndim == 0 else bound


def most_errors(n: int, risk: float, alpha: float) -> int | None:
    """Return the greatest number of errors of *n* labels with which :func:`passes` holds, or None if it never holds."""
    from scipy.special import bdtr

    most = None
    for errors in range(n + 1):
        if bdtr(errors, n, risk) > alpha:
            break
        most = errors
    return most


def clustered_upper(errors: Sequence[int] | Numbers, sessions: Sequence[int] | Numbers, alpha: float) -> float | None:
    """Return the upper bound of an error rate if labels of one session resemble each other; None below 2 sessions.

    :param errors: 1 for an error and 0 for none, for each label.
    :param sessions: the number of the session, from 0, for each label.

    Korn and Graubard (1998): the Clopper-Pearson bound at the effective sample size, which is the number of independent labels with the same
    information. It uses the design effect of the sessions (at least 1) and the degrees of freedom of the number of sessions.
    """
    import numpy as np
    from scipy.special import stdtrit

    outcomes, members = np.asarray(errors, float), np.unique(np.asarray(sessions), return_inverse=True)[1]
    n, groups = len(outcomes), int(members.max()) + 1 if len(members) else 0
    if groups < 2:
        return None
    p = outcomes.mean()
    sums = np.bincount(members, weights=outcomes - p)
    variance = groups / (groups - 1) * float(sums @ sums) / n**2
    shrunk = (outcomes.sum() + 0.5) / (n + 1)
    design = max(1.0, variance * n / (shrunk * (1 - shrunk)))
    session_quantile = stdtrit(groups - 1, 1 - alpha)
    # at an alpha of .5 both quantiles are 0
    freedom = (stdtrit(n - 1, 1 - alpha) / session_quantile) ** 2 if session_quantile else 1.0
    effective = float(freedom * n / design)
    return float(upper(p * effective, effective, alpha))


def share_interval(successes: float, n: int, z: float = Z_95) -> tuple[float, float] | None:
    """Return Wilson's interval of a share, at 95 % by default; None if *n* is 0."""
    return wilson(successes / n, n, z) if n else None
