"""The rates of audits that earlier runs make out best, and those that give an interval of a width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

LEAST, AUDITS = 0.01, 10
"""The least rate of a group, and how many audits of it are to be expected: one that has shown no difference yet may have some."""

Z = 1.959963984540054


def audit_rates(
    known: Mapping[str, Any], subjects: int | None, width: float | None, *, groups: bool
) -> tuple[float, dict[str, float]]:
    """The rate of all, and that of each group, where there are *groups*: in proportion to the root of what the score leaves of the truth there.

    *known* is ``score.audit`` of an earlier run. Without a *width* the rates with which one costs least.

    :raises ValueError: where no rate gives the width, with the least number of subjects that has one.
    """
    parts: Mapping[str, Any] = (known.get("strata") or {}) if groups else {}
    if width is None:
        rates = {
            name: max(float(one["best_rate"]), least_rate(subjects, one["share_held"])) for name, one in parts.items()
        }
        return float(known["best_rate"]), rates
    assert subjects is not None  # the caller has looked
    rate = rate_for_width(width, subjects, known["variance"], known["tau2"], known["share_held"])
    shares = {name: (one["share_held"], one["tau2"]) for name, one in parts.items()}
    return rate, rates_for_width(width, subjects, known["variance"], shares)


def rate_for_width(width: float, subjects: int, variance: float, tau2: float, held: float) -> float:
    """The rate of audits with which the mean's interval is plus or minus *width*: ``w * tau2 / (n * (W / z)^2 - A)``, A being ``variance - w * tau2``.

    :raises ValueError: where there is none, with the least number of subjects that has one.
    """
    wanted = (width / Z) ** 2
    left = subjects * wanted - (variance - held * tau2)
    rate = held * tau2 / left if left > 0 else math.inf
    if not 0 < rate <= 1:
        least = math.ceil(variance / wanted)
        message = f"no rate of audits gives the mean plus or minus {width:g} from {subjects:,} subjects: it takes {least:,} or more"
        raise ValueError(message)
    return rate


def least_rate(subjects: int | None, held: float) -> float:
    """The least rate of a group of which the share *held* of all subjects is held back: one that gives :data:`AUDITS`."""
    return min(1.0, max(LEAST, AUDITS / (subjects * held))) if subjects and held else LEAST


def rates_for_width(
    width: float, subjects: int, variance: float, parts: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """The rate of each group with which the interval is plus or minus *width*, in proportion to the root of its tau2 (J. Neyman, 1934); 1 at most.

    *parts* are by group the share of all subjects that is held back in it, and tau2. A width that one rate for all can give has such rates.
    """
    left = subjects * (width / Z) ** 2 - (variance - math.fsum(share * tau2 for share, tau2 in parts.values()))
    found: dict[str, float] = {}
    rest = dict(parts)
    while rest:
        spread = math.fsum(share * math.sqrt(tau2) for share, tau2 in rest.values())
        room = left - math.fsum(parts[name][0] * parts[name][1] for name in found)
        scale = spread / room if room > 0 else 0.0
        over = [name for name, (_, tau2) in rest.items() if scale * math.sqrt(tau2) > 1]
        if not over:
            return found | {
                name: max(least_rate(subjects, share), scale * math.sqrt(tau2)) for name, (share, tau2) in rest.items()
            }
        found |= dict.fromkeys(over, 1.0)
        rest = {name: one for name, one in rest.items() if name not in over}
    return found
