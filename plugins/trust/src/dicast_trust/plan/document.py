"""The document of a plan."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from dicast import Cost

from ..audits.corrected import Z
from ..audits.rates import audit_rates
from ..statistics.moments import Moments
from .cost import LEAST, LEAST_AT_ALL, LEAST_STAGED, Range, from_rows, from_size
from .request import Asked
from .rows import UNITS, PlanRows
from .sizes import Earlier, Sizes
from .width import (
    high_spread,
    least_difference,
    mcnemar_subjects,
    subjects_for_difference,
    subjects_for_width,
    width,
)

_DIGITS = 6
"""Decimal places of an amount of money that is an estimate."""


class Plan:
    """What is known of a run that is to come; see trust's page in the reference for the fields."""

    def __init__(self, asked: Asked, subject: Any, earlier: Earlier, rows: PlanRows, sizes: Sizes) -> None:
        self._asked, self._subject, self._earlier, self._rows, self._sizes = asked, subject, earlier, rows, sizes
        self._seen = int(rows.moments("seconds").count)
        self._left = sizes.subjects - sizes.paid if earlier.goes_on else sizes.subjects
        self._words: list[str] = []
        self._reasons: dict[str, str] = {}

    @property
    def _is_enough(self) -> bool:
        return self._seen >= LEAST_AT_ALL and not self._rows.has_unknown()

    def document(self) -> dict[str, Any]:
        """The plan as JSON data; what is not known is null, and *reasons* says why."""
        scores = self._rows.moments("score")
        effect = self._rows.design_effect()
        found = {
            "name": self._subject.name,
            "subjects": self._sizes.subjects,
            "rows": {"seen": self._seen, "left": self._left},
            "run_id": self._earlier.run_id,
            "resume": self._earlier.goes_on,
            "level": self._asked.level,
            "calls": self._calls(),
            "cost": {unit: self._cost(unit) for unit in UNITS},
            "time": self._time(),
            "width": self._width(scores, effect),
            "power": self._power(effect),
        }
        found["solve"] = None if self._asked.solve is None else self._solve(scores, effect)
        self._warn()
        return {**found, "words": self._words, "reasons": self._reasons}

    def _warn(self) -> None:
        least = LEAST_STAGED if self._subject.has_stages else LEAST
        if not self._seen:
            self._words.append("nothing was judged yet: costs are what they may be at most; --pilot 20 buys a pilot")
        elif self._seen < LEAST_AT_ALL:
            self._words.append(f"{self._seen} rows are too few to go by: costs are what they may be at most")
        elif self._seen < least:
            why = ", where some rows cost far more than others" if self._subject.has_stages else ""
            self._words.append(f"ranges from {self._seen} rows are too narrow{why}: take {least} or more")
        if self._rows.has_unknown():
            self._words.append("some calls cost nobody knows what: costs are what they may be at most")

    def _calls(self) -> dict[str, Any] | None:
        if not self._is_enough:
            return None
        calls = self._rows.moments("calls")
        n = int(calls.count)
        return {
            "mid": round(calls.x * self._left),
            "n": n,
            "s": math.sqrt(calls.xx / (n - 1)),
            "from": self._from("rows"),
        }

    def _from(self, what: str) -> str:
        return f"{'pilot' if self._earlier.goes_on else 'history'}{'' if what == 'rows' else f', by {what}'}"

    def _range(self, unit: str, left: int) -> Range | None:
        """What *left* more rows cost, without what is settled; None where too little is known."""
        if not self._is_enough:
            return None
        by_size = (
            from_size(self._sizes.by_size[unit], self._sizes.rest, self._asked.level) if self._earlier.goes_on else None
        )
        if by_size is not None and left == self._left:
            return by_size
        return from_rows(self._rows.moments(unit), left, self._asked.level)

    def _settled(self, unit: str) -> Decimal:
        return self._rows.settled[unit] if self._earlier.goes_on else Decimal()

    def _projected(self, unit: str) -> Decimal | None:
        """What the rows that are left cost at most; None where that is not known, or has proved wrong."""
        rest, paid = self._sizes.projected[unit], self._sizes.projected_paid[unit]
        if rest is None or paid is None:
            return None
        if self._sizes.paid and paid < self._rows.settled[unit] and self._earlier.goes_on:
            return None
        return rest if self._earlier.goes_on else rest + paid

    def _cost(self, unit: str) -> dict[str, Any]:
        settled, projected = self._settled(unit), self._projected(unit)
        found = self._range(unit, self._left)
        most = None if projected is None else settled + projected
        shown: dict[str, Any] = {"settled": _text(settled), "projected": None if most is None else _text(most)}
        if found is None:
            return {
                "low": _text(settled),
                "mid": None,
                "high": shown["projected"],
                **shown,
                "n": self._seen,
                "s": None,
                "from": "bound",
            }
        is_bound = projected is not None and (projected > 0 or not settled) and projected >= Decimal(str(found.low))
        whole = found.within(float(settled), float(projected) if is_bound and projected is not None else None)
        costs = self._rows.moments(unit)
        spread = math.sqrt(costs.xx / (costs.count - 1))
        return {
            "low": _text(max(settled, _rounded(whole.low, ROUND_FLOOR))),
            "mid": _text(max(settled, _rounded(whole.mid, ROUND_HALF_EVEN))),
            "high": _text(max(settled, _rounded(whole.high, ROUND_CEILING))),
            **shown,
            "n": self._seen,
            "s": spread,
            "from": self._from(found.source),
        }

    def _time(self) -> dict[str, Any] | None:
        if self._seen < LEAST_AT_ALL:
            self._reasons["time"] = f"{self._seen} rows were judged, it takes {LEAST_AT_ALL}"
            return None
        seconds = self._rows.moments("seconds")
        found, at_once = from_rows(seconds, self._left, self._asked.level), self._subject.concurrency
        shown: dict[str, Any] = {"low": found.low / at_once, "mid": found.mid / at_once, "high": found.high / at_once}
        shown |= {"unit": "seconds", "concurrency": at_once, "n": self._seen}
        return {**shown, "s": math.sqrt(seconds.xx / (seconds.count - 1)), "from": self._from("rows")}

    def _width(self, scores: Moments, effect: float) -> dict[str, Any] | None:
        if scores.count < LEAST_AT_ALL or not self._sizes.judged:
            self._reasons["width"] = f"{int(scores.count)} rows have a score, it takes {LEAST_AT_ALL}"
            return None
        m, n = int(scores.count), self._sizes.judged
        spread = math.sqrt(scores.xx / (m - 1))
        if not spread:
            self._words.append(f"all {m} scores are equal, so the width is a guess: take more rows")
        wide = width(high_spread(spread, m), n, effect)
        shown = {"subjects": n, "width": width(spread, n, effect), "width_high": wide}
        return {**shown, "s": spread, "design_effect": effect, "n": m, "from": self._from("rows")}

    def _power(self, effect: float) -> dict[str, Any] | None:
        from .pairs import paired

        if self._asked.difference is None and not self._earlier.baseline:
            return None
        pairs = self._subject.read(
            lambda ledger: paired(ledger, self._earlier.baseline, self._rows, self._subject.label)
        )
        if pairs is None or pairs.differences.count < LEAST_AT_ALL:
            self._reasons["power"] = (
                "it takes rows that a baseline has judged too: section baseline, and a run or a pilot of 10 rows"
            )
            return None
        differences, asked = pairs.differences, self._asked
        spread = math.sqrt(differences.xx / (differences.count - 1))
        shown: dict[str, Any] = {
            "power": asked.power,
            "s": spread,
            "n": int(differences.count),
            "from": self._from("rows"),
        }
        shown["mde"] = least_difference(spread, self._sizes.judged, effect, asked.power)
        if asked.difference is not None:
            shown["difference"] = asked.difference
            shown["subjects"] = subjects_for_difference(spread, asked.difference, effect, asked.power)
            if pairs.discordant is not None:
                shown["subjects_mcnemar"] = mcnemar_subjects(pairs.discordant, asked.difference, asked.power)
        return {**shown, "discordant": pairs.discordant}

    def _solve(self, scores: Moments, effect: float) -> dict[str, Any]:
        asked = self._asked
        if asked.solve == "audit":
            return self._audit()
        found = dict[str, Any]()
        spread = math.sqrt(scores.xx / (scores.count - 1)) if scores.count >= LEAST_AT_ALL else None
        wanted: list[int | None] = []
        if asked.width is not None:
            wanted.append(None if spread is None else subjects_for_width(spread, asked.width, effect))
        if asked.difference is not None:
            wanted.append((self._power(effect) or {}).get("subjects"))
        if asked.solve == "n" and asked.budget is not None:
            found["affordable"] = self._affordable(asked.budget)
            wanted = wanted or [found["affordable"]]
        if None in wanted:
            self._reasons["solve"] = "too little is known of the scores: buy a pilot, --pilot 20"
            return {"what": asked.solve, "subjects": None, **found}
        subjects = max((one for one in wanted if one is not None), default=self._sizes.judged)
        found |= {"subjects": subjects, "there_are": self._sizes.judged, "enough": subjects <= self._sizes.judged}
        if spread is not None:
            found["width"] = width(spread, subjects, effect) if subjects else None
        return {"what": asked.solve, **found, "cost": {unit: self._cost_of(unit, subjects) for unit in UNITS}}

    def _cost_of(self, unit: str, subjects: int) -> dict[str, str | None] | None:
        settled = self._settled(unit)
        found = self._range(unit, max(0, subjects - (self._sizes.paid if self._earlier.goes_on else 0)))
        if found is None:
            return None
        low, mid, high = (settled + _rounded(value, ROUND_HALF_EVEN) for value in (found.low, found.mid, found.high))
        return {"low": _text(low), "mid": _text(mid), "high": _text(high)}

    def _affordable(self, budget: Cost) -> int | None:
        """How many subjects, those that are paid for included, cost no more than *budget* at the upper end of the range."""
        if not self._is_enough or budget.amount is None:
            return None
        costs, left = self._rows.moments(budget.unit), float(budget.amount - self._settled(budget.unit))
        if costs.x <= 0:
            return None
        low, high = 0, math.ceil(max(0.0, left) / costs.x) + 1
        while low + 1 < high:
            middle = (low + high) // 2
            fits = from_rows(costs, middle, self._asked.level).high <= left
            low, high = (middle, high) if fits else (low, middle)
        return low + (self._sizes.paid if self._earlier.goes_on else 0)

    def _audit(self) -> dict[str, Any]:
        """The rate of audits for a width, and the one that costs least, by what the earlier run's audits have shown."""
        known, asked = self._earlier.audit, self._asked
        if known is None or known.get("tau2") is None or asked.width is None:
            self._reasons["solve"] = "no earlier run of these metrics had audits: run once with audit: {rate: 0.2}"
            return {"what": "audit", "rate": None, "best_rate": None}
        least = math.ceil(known["variance"] * (Z / asked.width) ** 2)
        rate, rates = None, dict[str, float]()
        try:
            rate, rates = audit_rates(known, self._sizes.judged, asked.width, groups=True)
        except ValueError:
            self._reasons["solve"] = f"no rate of audits gives this width: it takes {least:,} subjects or more"
        groups = {"rates": rates} if rates else {}
        return {"what": "audit", "rate": rate, "best_rate": known["best_rate"], "least_subjects": least, **groups}


def _rounded(value: float, how: str) -> Decimal:
    return Decimal(repr(value)).quantize(Decimal(1).scaleb(-_DIGITS), rounding=how)


def _text(amount: Decimal) -> str:
    shown = format(amount, "f")
    return (shown.rstrip("0").rstrip(".") or "0") if "." in shown else shown
