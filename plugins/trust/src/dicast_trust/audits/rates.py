"""Rates of audits: the cheapest ones by the figures of earlier runs, and the rates that give an interval of a width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dicast.toolkit.intervals import Z_95

LEAST, AUDITS = 0.01, 10
"""Least rate of a group, and its least expected number of audits: a group without a difference so far may still have one."""


def audit_rates(
    history: Mapping[str, Any], subjects: int | None, width: float | None, *, groups: bool
) -> tuple[float, dict[str, float]]:
    """Return the rate of all held back subjects, and the rate of each group if *groups*.

    Rates of groups are in proportion to the square root of tau2, the variance of the truth given the score.

    :param history: ``score.audit`` of an earlier run.
    :param width: the half width of the interval; None for the rates with the least cost.
    :raises ValueError: if no rate gives the width, with the least number of subjects that allows one.
    """
    parts: Mapping[str, Any] = (history.get("strata") or {}) if groups else {}
    if width is None:
        rates = {
            name: max(float(part["best_rate"]), least_rate(subjects, part["share_held"]))
            for name, part in parts.items()
        }
        return float(history["best_rate"]), rates
    assert subjects is not None  # checked by the caller
    rate = rate_for_width(width, subjects, history["variance"], history["tau2"], history["share_held"])
    shares = {name: (part["share_held"], part["tau2"]) for name, part in parts.items()}
    return rate, rates_for_width(width, subjects, history["variance"], shares)


def rate_for_width(width: float, subjects: int, variance: float, tau2: float, share_held: float) -> float:
    """Return the rate of audits with which the mean's interval is plus or minus *width*.

    It is ``w * tau2 / (n * (W / z)^2 - A)``, with ``w`` = *share_held* and ``A = variance - w * tau2``.

    :raises ValueError: if there is none, with the least number of subjects that allows one.
    """
    target = (width / Z_95) ** 2
    remaining = subjects * target - (variance - share_held * tau2)
    rate = share_held * tau2 / remaining if remaining > 0 else math.inf
    if not 0 < rate <= 1:
        least = math.ceil(variance / target)
        message = f"no rate of audits gives the mean plus or minus {width:g} from {subjects:,} subjects: {least:,} or more are needed"
        raise ValueError(message)
    return rate


def least_rate(subjects: int | None, share_held: float) -> float:
    """Return the least rate of a group with the share *share_held* of all subjects: the rate that gives :data:`AUDITS` audits."""
    return min(1.0, max(LEAST, AUDITS / (subjects * share_held))) if subjects and share_held else LEAST


def rates_for_width(
    width: float, subjects: int, variance: float, parts: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Return the rate of each group (at most 1) with which the interval is plus or minus *width*.

    Rates are in proportion to the square root of tau2 (J. Neyman, 1934). If one rate for all groups can give the width, these rates can too.

    :param parts: by group, its share of all subjects (held back subjects only), and tau2.
    """
    total = subjects * (width / Z_95) ** 2 - (variance - math.fsum(share * tau2 for share, tau2 in parts.values()))
    rates: dict[str, float] = {}
    rest = dict(parts)
    while rest:
        spread = math.fsum(share * math.sqrt(tau2) for share, tau2 in rest.values())
        remaining = total - math.fsum(parts[name][0] * parts[name][1] for name in rates)
        scale = spread / remaining if remaining > 0 else 0.0
        over = [name for name, (_, tau2) in rest.items() if scale * math.sqrt(tau2) > 1]
        if not over:
            return rates | {
                name: max(least_rate(subjects, share), scale * math.sqrt(tau2)) for name, (share, tau2) in rest.items()
            }
        rates |= dict.fromkeys(over, 1.0)
        rest = {name: part for name, part in rest.items() if name not in over}
    return rates
