"""Cost of a gate with audits, next to the cost of judging everything."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import attrs

from dicast.toolkit.money import plain_text

LEAST_RATE = 0.01


class AuditCosts:
    """Sums of the cost of metrics, by unit of money, tier (proxy or truth) and state (passed or audited)."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._sums: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        self._unknown = False

    def add(self, state: str, costs: Iterable[tuple[str, str, Decimal | None]]) -> None:
        """Count a subject with the cost of each of its metrics, as (tier, unit, amount)."""
        self._count[state] += 1
        for tier, unit, amount in costs:
            if amount is None:
                self._unknown = True
            else:
                self._sums[unit, state, tier] += amount

    def document(
        self, count: int, held_back: float, rate: float, spread: float | None, audits: Mapping[str, Audited] | None
    ) -> dict[str, dict[str, object]]:
        """Return ``cost``, with the cost of judging all *count* subjects, and ``audit``, with the figures that decide the best rate of audits.

        :param spread: the variance of the truth, None if unknown.
        :param audits: the figures of each group of held back subjects, None if unknown.
        """
        share = held_back / count if count else 0.0
        costs, parts = self._cost_per_subject(count, held_back), [*(audits or {}).values()]
        residual = math.fsum(part.share * part.tau2 for part in parts) if spread is not None else None
        tau2 = None if residual is None else parts[0].tau2 if len(parts) == 1 else residual / share if share else 0.0
        ratio = best = None
        groups: dict[str, dict[str, object]] = {
            name: {"share_held": part.share, "tau2": part.tau2, "rate": part.rate, "best_rate": None}
            for name, part in sorted((audits or {}).items())
        }
        if costs is not None and spread is not None and residual is not None:
            proxies, truths = (float(cost) for cost in costs[:2])
            ratio = ratio_at_equal_width(spread, share, parts, proxies, truths)
            best = best_rate(spread - residual, tau2 or 0.0, share, proxies, truths)
            for name, part in (audits or {}).items():
                groups[name]["best_rate"] = best_rate(spread - residual, part.tau2, share, proxies, truths)
        if_all_judged = None if costs is None else plain_text(costs[1] * count, _PLACES)
        return {
            "cost": {"if_all_judged": if_all_judged, "ratio_at_equal_width": ratio},
            "audit": {
                "rate": rate,
                "best_rate": best,
                "share_held": share,
                "variance": spread,
                "tau2": tau2,
                "cost_proxy": None if costs is None else plain_text(costs[0], _PLACES),
                "cost_truth": None if costs is None else plain_text(costs[1], _PLACES),
                **({"strata": groups} if groups and {*groups} != {""} else {}),
            },
        }

    def _cost_per_subject(self, count: int, held_back: float) -> tuple[Decimal, Decimal] | None:
        """Return the cost of proxies and of truths per subject, if all subjects had both; None if it is unknown, or in two units."""
        units = (
            {unit for unit, _, tier in self._sums if tier == "truth"} or {unit for unit, _, _ in self._sums} or {"usd"}
        )
        counts = {state: number for state, number in self._count.items() if state != "held"}
        if self._unknown or len(units) > 1 or not count or not counts:
            return None
        (unit,) = units
        proxies = sum((self._sums[unit, state, "proxy"] for state in self._count), Decimal())
        means = {state: self._sums[unit, state, "truth"] / number for state, number in counts.items()}
        passed = means.get("passed", means.get("audited", Decimal()))
        audited = means.get("audited", passed)
        truths = (passed * (count - int(held_back)) + audited * int(held_back)) / count
        return proxies / self._count.total(), truths


_PLACES = 12


@attrs.frozen
class Audited:
    """Figures of a group of held back subjects.

    *share* is its share of all subjects, *tau2* the variance of the truth given the score, *rate* the rate of audits.
    """

    share: float
    tau2: float
    rate: float


def best_rate(rest: float, tau2: float, share: float, proxies: float, truths: float) -> float:
    """Return the rate of audits, between .01 and 1, that gives an interval of a width at least cost.

    It is ``sqrt(tau2 * C0 / (A * truths))``. C0 is the cost of a subject without audits, A (*rest*) the variance that audits do not reduce. By Lagrange's
    multiplier, from the variance ``(A + share * tau2 / rate) / n`` at a cost of ``n * (C0 + share * rate * truths)``. With several groups each has its own
    tau2, so the rates are in proportion to the square roots of tau2 (J. Neyman, Journal of the Royal Statistical Society 97, 1934, 558-625).
    """
    base = proxies + (1 - share) * truths
    if rest * truths <= 0:
        return 1.0
    return min(1.0, max(LEAST_RATE, math.sqrt(tau2 * base / (rest * truths))))


def ratio_at_equal_width(
    spread: float, share: float, audits: Sequence[Audited], proxies: float, truths: float
) -> float | None:
    """Return the cost of the gate with audits, divided by the cost of judging everything at an equal width.

    None if either is free.
    """
    if spread * truths <= 0 or any(part.rate <= 0 for part in audits):
        return None
    base = proxies + (1 - share) * truths
    wide = spread + math.fsum(part.share * part.tau2 * (1 / part.rate - 1) for part in audits)
    return wide * (base + math.fsum(part.share * part.rate for part in audits) * truths) / (spread * truths)
