"""Bootstrap interval of a mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ties import NOISE

if TYPE_CHECKING:
    from .values import Column

RESAMPLES = 9_999
SEED = 0
PARTS = 1_000
"""Number of random groups for more values than this; resampling the groups has the same limit distribution."""

_BATCH = 1_000


def bootstrap_interval(values: Column) -> tuple[str, dict[str, float]]:
    """Return the method as text, and the 95 % bootstrap interval of the mean of *values*.

    The interval is bias-corrected and accelerated (B. Efron, JASA 82(397), 1987). It does not depend on the order of *values*, and the
    interval of the negated values is the negated interval. The ends are NaN if the resamples vary too little.
    """
    import numpy as np  # 0.1 s, which starting a run does not spend
    from scipy import stats  # type: ignore[import-untyped]  # no types; 2 s to import

    sign = -1.0 if values.mean() < 0 else 1.0
    samples, unit = _resampling_units(np.sort(values * sign)), NOISE * float(abs(values).max())

    def mean(sums: Any, sizes: Any = None, axis: int = -1) -> Any:
        """Return the means, rounded so that equal means are equal floats.

        The bias correction counts the resamples whose mean equals the mean of all values.
        """
        means = sums.mean(axis) if sizes is None else sums.sum(axis) / sizes.sum(axis)
        return np.rint(means / unit) * unit

    bounds = stats.bootstrap(
        samples,
        mean,
        paired=len(samples) > 1,
        n_resamples=RESAMPLES,
        batch=_BATCH,
        method="BCa",
        vectorized=True,
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    low, high = sorted((sign * float(bounds.low), sign * float(bounds.high)))
    groups = f", in {PARTS:,} random groups" if len(samples) > 1 else ""
    method = f"BCa over pairs{groups}, {RESAMPLES:,} resamples, seed {SEED}"
    return method, {"bootstrap_ci_low": low, "bootstrap_ci_high": high}


def _resampling_units(values: Column) -> tuple[Column, ...]:
    """Return the samples to resample: the values, or the sums and sizes of random groups if there are more than :data:`PARTS` values."""
    import numpy as np

    if len(values) <= PARTS:
        return (values,)
    groups = np.array_split(np.random.default_rng(SEED).permutation(values), PARTS)
    return np.array([group.sum() for group in groups]), np.array([float(len(group)) for group in groups])
