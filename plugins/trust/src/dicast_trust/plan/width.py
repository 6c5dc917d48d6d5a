"""Expected width of the interval of a mean, and the difference that a run can detect."""

from __future__ import annotations

import math

from dicast.toolkit.intervals import Z_95


def quantile(probability: float) -> float:
    """Return the quantile of the standard normal distribution."""
    from scipy.special import ndtri  # type: ignore[import-untyped]

    return float(ndtri(probability))


def width(spread: float, subjects: int, effect: float) -> float:
    """Return the width of the 95 % interval of a mean: ``2 z s sqrt(D / n)``."""
    return 2 * Z_95 * spread * math.sqrt(effect / subjects)


def high_spread(spread: float, rows: int) -> float:
    """Return the upper bound, at the one-sided level of 80 %, of a standard deviation that *rows* values estimate as *spread*.

    It is ``s sqrt((m - 1) / chi2(.2, m - 1))``.
    """
    from scipy.special import chdtri

    return spread * math.sqrt((rows - 1) / float(chdtri(rows - 1, 0.8)))


def subjects_for_width(spread: float, target: float, effect: float) -> int:
    """Return the least number of subjects whose mean has an interval of the width *target*."""
    return max(1, math.ceil(effect * (2 * Z_95 * spread / target) ** 2))


def least_difference(spread: float, subjects: int, effect: float, power: float) -> float:
    """Return the paired difference that is detected with this *power*, at 5 % two-sided; *spread* is the standard deviation of differences."""
    return (Z_95 + quantile(power)) * spread * math.sqrt(effect / subjects)


def subjects_for_difference(spread: float, difference: float, effect: float, power: float) -> int:
    """Return the least number of pairs in which a *difference* is detected with this *power*."""
    return max(1, math.ceil(effect * ((Z_95 + quantile(power)) * spread / difference) ** 2))


def mcnemar_subjects(discordant: float, difference: float, power: float) -> int | None:
    """Return the least number of pairs for scores of 0 and 1, by McNemar's test; None if fewer pairs differ than the *difference* needs.

    R. J. Connor, Biometrics 43 (1987), 207-211: ``((z sqrt(psi) + z_power sqrt(psi - d^2)) / d)^2``, psi being the share of pairs that differ.
    """
    if discordant < abs(difference):
        return None
    root = Z_95 * math.sqrt(discordant) + quantile(power) * math.sqrt(discordant - difference**2)
    return max(1, math.ceil((root / difference) ** 2))
