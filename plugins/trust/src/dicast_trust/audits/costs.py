"""What a gate with audits costs, beside what judging everything would have cost."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import attrs

LEAST_RATE = 0.01


class AuditCosts:
    """Adds up what the metrics of subjects cost, by unit of money: proxies and truths, of those that passed and those that were audited."""

    def __init__(self) -> None:
        self._count: Counter[str] = Counter()
        self._sums: defaultdict[tuple[str, str, str], Decimal] = defaultdict(Decimal)
        self._unknown = False

    def add(self, state: str, costs: Iterable[tuple[str, str, Decimal | None]]) -> None:
        """Count a subject: what each of its metrics cost, as (tier, unit, amount)."""
        self._count[state] += 1
        for tier, unit, amount in costs:
            if amount is None:
                self._unknown = True
            else:
                self._sums[unit, state, tier] += amount

    def document(
        self, count: int, held: float, rate: float, spread: float | None, audits: Mapping[str, Audited] | None
    ) -> dict[str, dict[str, object]]:
        """``cost`` with what judging all *count* subjects would have cost, and ``audit`` with what decides the best rate of audits.

        *spread* is the variance of the truth, *audits* are what is known of each group of those held back; None where nothing is.
        """
        share = held / count if count else 0.0
        costs, parts = self._each(count, held), [*(audits or {}).values()]
        left = math.fsum(part.share * part.tau2 for part in parts) if spread is not None else None
        tau2 = None if left is None else parts[0].tau2 if len(parts) == 1 else left / share if share else 0.0
        ratio = best = None
        groups: dict[str, dict[str, object]] = {
            name: {"share_held": part.share, "tau2": part.tau2, "rate": part.rate, "best_rate": None}
            for name, part in sorted((audits or {}).items())
        }
        if costs is not None and spread is not None and left is not None:
            proxies, truths = (float(cost) for cost in costs[:2])
            ratio = ratio_at_equal_width(spread, share, parts, proxies, truths)
            best = best_rate(spread - left, tau2 or 0.0, share, proxies, truths)
            for name, part in (audits or {}).items():
                groups[name]["best_rate"] = best_rate(spread - left, part.tau2, share, proxies, truths)
        shown = None if costs is None else format((costs[1] * count).quantize(_FINEST).normalize(), "f")
        return {
            "cost": {"if_all_judged": shown, "ratio_at_equal_width": ratio},
            "audit": {
                "rate": rate,
                "best_rate": best,
                "share_held": share,
                "variance": spread,
                "tau2": tau2,
                "cost_proxy": None if costs is None else format(costs[0].quantize(_FINEST).normalize(), "f"),
                "cost_truth": None if costs is None else format(costs[1].quantize(_FINEST).normalize(), "f"),
                **({"strata": groups} if groups and {*groups} != {""} else {}),
            },
        }

    def _each(self, count: int, held: float) -> tuple[Decimal, Decimal] | None:
        """What proxies and truths cost a subject, were all given both; None where that is not known, or is in two units."""
        units = (
            {unit for unit, _, tier in self._sums if tier == "truth"} or {unit for unit, _, _ in self._sums} or {"usd"}
        )
        given = {state: number for state, number in self._count.items() if state != "held"}
        if self._unknown or len(units) > 1 or not count or not given:
            return None
        (unit,) = units
        proxies = sum((self._sums[unit, state, "proxy"] for state in self._count), Decimal())
        means = {state: self._sums[unit, state, "truth"] / number for state, number in given.items()}
        passed = means.get("passed", means.get("audited", Decimal()))
        audited = means.get("audited", passed)
        truths = (passed * (count - int(held)) + audited * int(held)) / count
        return proxies / self._count.total(), truths


_FINEST = Decimal("1e-12")


@attrs.frozen
class Audited:
    """What is known of a group of held back subjects: its *share* of all, what the score leaves of the truth, and the *rate* of audits."""

    share: float
    tau2: float
    rate: float


def best_rate(rest: float, tau2: float, share: float, proxies: float, truths: float) -> float:
    """The rate of audits with which a width costs least: ``sqrt(tau2 * C0 / (A * truths))``, between .01 and 1.

    C0 is what a subject costs without audits, A, the *rest*, the variance that audits do not lessen. By Lagrange's multiplier, of the variance
    ``(A + share * tau2 / rate) / n`` at a cost of ``n * (C0 + share * rate * truths)``. Of several groups each has its own tau2, so that rates are
    in proportion to the roots of these (J. Neyman, Journal of the Royal Statistical Society 97, 1934, 558-625).
    """
    base = proxies + (1 - share) * truths
    if rest * truths <= 0:
        return 1.0
    return min(1.0, max(LEAST_RATE, math.sqrt(tau2 * base / (rest * truths))))


def ratio_at_equal_width(
    spread: float, share: float, audits: Sequence[Audited], proxies: float, truths: float
) -> float | None:
    """What the gate with audits costs, divided by what judging everything costs that gives an interval as wide; None where one is free."""
    if spread * truths <= 0 or any(part.rate <= 0 for part in audits):
        return None
    base = proxies + (1 - share) * truths
    wide = spread + math.fsum(part.share * part.tau2 * (1 / part.rate - 1) for part in audits)
    return wide * (base + math.fsum(part.share * part.rate for part in audits) * truths) / (spread * truths)
