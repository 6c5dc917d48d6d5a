"""Evidence about an error rate by betting, valid after every observation.

An e-process is worth 1 before the first observation. Under the null hypothesis its mean stays at most 1. So it reaches ``1 / alpha`` with
a probability of at most alpha, however often it is looked at (Ville 1939).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

UNDERFLOW = 1e-280
"""Below this value an incomplete beta function has lost its digits, and the series is used."""


def ln_below(errors: Numbers | int, n: Numbers | int, rate: float) -> Any:
    """Return the logarithm of the evidence that errors are rarer than *rate*, after *errors* of *n*.

    It is the likelihood ratio against *rate* of a mixture, uniform over all rates below it (Robbins 1970)::

        ln E = ln B(k+1, n-k+1) + ln I_r(k+1, n-k+1) - ln r - k ln r - (n-k) ln(1-r)

    *errors* and *n* may be arrays of one shape; 0 < *rate* < 1.
    """
    import numpy as np
    from scipy.special import betainc, betaln, hyp2f1, xlog1py, xlogy  # type: ignore[import-untyped]  # no types

    k, m = np.broadcast_arrays(np.asarray(errors, float), np.asarray(n, float))
    share = betainc(k + 1, m - k + 1, rate)
    small = share < UNDERFLOW
    direct = betaln(k + 1, m - k + 1) + np.log(np.where(small, 1.0, share)) - np.log(rate)
    evidence = direct - xlogy(k, rate) - xlog1py(m - k, -rate)
    if small.any():  # I_r(a, b) = r^a (1-r)^b 2F1(a+b, 1; a+1; r) / (a B(a, b)); all but the series cancels
        series = hyp2f1(m[small] + 2, 1.0, k[small] + 2, rate)
        evidence[small] = np.log1p(-rate) - np.log(k[small] + 1) + np.log(series)
    return float(evidence) if evidence.ndim == 0 else evidence


def ln_above(errors: Numbers | int, n: Numbers | int, rate: float) -> Any:
    """Return the logarithm of the evidence that errors are more frequent than *rate*: :func:`ln_below` of the successes, at 1 - *rate*."""
    import numpy as np

    return ln_below(np.asarray(n) - np.asarray(errors), n, 1 - rate)
