"""Document of a plan."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import Any

from dicast import Cost
from dicast.toolkit.intervals import Z_95
from dicast.toolkit.money import rounded

from ..audits.rates import audit_rates
from ..statistics.moments import Moments
from .cost import LEAST, LEAST_AT_ALL, LEAST_STAGED, Range, from_rows, from_size
from .request import PlanRequest
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
"""Decimal places of an estimated amount of money."""


class Plan:
    """Forecast of a run; the reference page of the plugin describes the fields."""

    def __init__(self, request: PlanRequest, subject: Any, earlier: Earlier, rows: PlanRows, sizes: Sizes) -> None:
        self._request, self._subject, self._earlier, self._rows, self._sizes = request, subject, earlier, rows, sizes
        self._row_count = int(rows.moments("seconds").count)
        self._remaining = sizes.subjects - sizes.paid if earlier.can_resume else sizes.subjects
        self._notes: list[str] = []
        self._reasons: dict[str, str] = {}

    @property
    def _has_enough_rows(self) -> bool:
        return self._row_count >= LEAST_AT_ALL and not self._rows.has_unknown()

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON data; an unknown figure is null, and *reasons* explains it."""
        scores = self._rows.moments("score")
        effect = self._rows.design_effect()
        document = {
            "name": self._subject.name,
            "subjects": self._sizes.subjects,
            "rows": {"seen": self._row_count, "left": self._remaining},
            "run_id": self._earlier.run_id,
            "resume": self._earlier.can_resume,
            "resume_command": self._earlier.resume_command if self._earlier.can_resume else None,
            "level": self._request.level,
            "calls": self._calls(),
            "cost": {unit: self._cost(unit) for unit in UNITS},
            "time": self._time(),
            "width": self._width(scores, effect),
            "power": self._power(effect),
        }
        document["solve"] = None if self._request.solve is None else self._solve_request(scores, effect)
        self._add_notes()
        return {**document, "words": self._notes, "reasons": self._reasons}

    def at_scale(self, subjects: int) -> dict[str, Any]:
        """Return the cost and the seconds of *subjects* other subjects; an unknown figure is None.

        The cost of each unit has ``low``, ``mid`` and ``high``; without enough rows only ``high`` is known, the greatest cost.
        """
        costs = {unit: self._cost_at_scale(unit, subjects) for unit in UNITS}
        if self._row_count < LEAST_AT_ALL:
            return {"cost": costs, "seconds": None}
        seconds = self._rows.moments("seconds").x * subjects / self._subject.concurrency
        return {"cost": costs, "seconds": seconds}

    def _cost_at_scale(self, unit: str, subjects: int) -> dict[str, str | None]:
        if self._has_enough_rows:
            costs = from_rows(self._rows.moments(unit), subjects, self._request.level)
            return {name: _text(_rounded(getattr(costs, name), ROUND_HALF_EVEN)) for name in ("low", "mid", "high")}
        rest, paid = self._sizes.projected[unit], self._sizes.projected_paid[unit]
        if rest is None or paid is None or not self._sizes.subjects:
            return {"low": None, "mid": None, "high": None}
        most = (rest + paid) * subjects / self._sizes.subjects
        return {"low": None, "mid": None, "high": _text(rounded(most, _DIGITS, ROUND_CEILING))}

    @property
    def is_free(self) -> bool:
        """True if no subject of the source can cost money."""
        sums = (*self._sizes.projected.values(), *self._sizes.projected_paid.values())
        return all(amount == 0 for amount in sums)

    @property
    def subject(self) -> Any:
        """The planned pipeline."""
        return self._subject

    @property
    def run_id(self) -> str | None:
        """The id of the earlier run; None without one."""
        return self._earlier.run_id

    @property
    def subjects(self) -> int:
        """The number of subjects in the source."""
        return self._sizes.subjects

    @property
    def judged(self) -> int:
        """The number of subjects that the earlier run judged."""
        return self._row_count

    def _add_notes(self) -> None:
        least = LEAST_STAGED if self._subject.has_stages else LEAST
        if not self._row_count:
            self._notes.append("no row was judged yet: costs are upper bounds; add --pilot 20 for a pilot")
        elif self._row_count < LEAST_AT_ALL:
            self._notes.append(f"{self._row_count} rows are too few for a forecast: costs are upper bounds")
        elif self._row_count < least:
            cause = ", where some rows cost far more than others" if self._subject.has_stages else ""
            self._notes.append(f"ranges from {self._row_count} rows are too narrow{cause}: take {least} or more")
        self._notes += self._subject.notes
        if self._rows.has_unknown():
            self._notes.append("some calls have an unknown cost: costs are upper bounds")

    def _calls(self) -> dict[str, Any] | None:
        if not self._has_enough_rows:
            return None
        calls = self._rows.moments("calls")
        n = int(calls.count)
        return {
            "mid": round(calls.x * self._remaining),
            "n": n,
            "s": math.sqrt(calls.xx / (n - 1)),
            "from": self._basis("rows"),
        }

    def _basis(self, source: str) -> str:
        return f"{'pilot' if self._earlier.can_resume else 'history'}{'' if source == 'rows' else f', by {source}'}"

    def _range(self, unit: str, count: int) -> Range | None:
        """Return the cost of *count* more rows, without the settled cost; None if too few rows are known."""
        if not self._has_enough_rows:
            return None
        by_size = (
            from_size(self._sizes.by_size[unit], self._sizes.rest, self._request.level)
            if self._earlier.can_resume
            else None
        )
        if by_size is not None and count == self._remaining:
            return by_size
        return from_rows(self._rows.moments(unit), count, self._request.level)

    def _settled(self, unit: str) -> Decimal:
        return self._rows.settled[unit] if self._earlier.can_resume else Decimal()

    def _projected(self, unit: str) -> Decimal | None:
        """Return the greatest cost of the remaining rows; None if it is unknown, or an actual cost exceeded its projection."""
        rest, paid = self._sizes.projected[unit], self._sizes.projected_paid[unit]
        if rest is None or paid is None:
            return None
        if self._sizes.paid and paid < self._rows.settled[unit] and self._earlier.can_resume:
            return None
        return rest if self._earlier.can_resume else rest + paid

    def _cost(self, unit: str) -> dict[str, Any]:
        settled, projected = self._settled(unit), self._projected(unit)
        rest = self._range(unit, self._remaining)
        most = None if projected is None else settled + projected
        bounds: dict[str, Any] = {"settled": _text(settled), "projected": None if most is None else _text(most)}
        if rest is None:
            return {
                "low": _text(settled),
                "mid": None,
                "high": bounds["projected"],
                **bounds,
                "n": self._row_count,
                "s": None,
                "from": "bound",
            }
        is_bound = projected is not None and (projected > 0 or not settled) and projected >= Decimal(str(rest.low))
        total = rest.within(float(settled), float(projected) if is_bound and projected is not None else None)
        costs = self._rows.moments(unit)
        spread = math.sqrt(costs.xx / (costs.count - 1))
        return {
            "low": _text(max(settled, _rounded(total.low, ROUND_FLOOR))),
            "mid": _text(max(settled, _rounded(total.mid, ROUND_HALF_EVEN))),
            "high": _text(max(settled, _rounded(total.high, ROUND_CEILING))),
            **bounds,
            "n": self._row_count,
            "s": spread,
            "from": self._basis(rest.source),
        }

    def _time(self) -> dict[str, Any] | None:
        if self._row_count < LEAST_AT_ALL:
            self._reasons["time"] = f"{self._row_count} rows were judged, at least {LEAST_AT_ALL} are needed"
            return None
        seconds = self._rows.moments("seconds")
        work, concurrency = from_rows(seconds, self._remaining, self._request.level), self._subject.concurrency
        figures: dict[str, Any] = {
            "low": work.low / concurrency,
            "mid": work.mid / concurrency,
            "high": work.high / concurrency,
        }
        figures |= {"unit": "seconds", "concurrency": concurrency, "n": self._row_count}
        return {**figures, "s": math.sqrt(seconds.xx / (seconds.count - 1)), "from": self._basis("rows")}

    def _width(self, scores: Moments, effect: float) -> dict[str, Any] | None:
        if scores.count < LEAST_AT_ALL or not self._sizes.judged:
            self._reasons["width"] = f"{int(scores.count)} rows have a score, at least {LEAST_AT_ALL} are needed"
            return None
        m, n = int(scores.count), self._sizes.judged
        spread = math.sqrt(scores.xx / (m - 1))
        if not spread:
            self._notes.append(f"all {m} scores are equal, so the width is a guess: take more rows")
        wide = width(high_spread(spread, m), n, effect)
        figures = {"subjects": n, "width": width(spread, n, effect), "width_high": wide}
        return {**figures, "s": spread, "design_effect": effect, "n": m, "from": self._basis("rows")}

    def _power(self, effect: float) -> dict[str, Any] | None:
        from .pairs import paired

        if self._request.difference is None and not self._earlier.baseline:
            return None
        pairs = self._subject.read(
            lambda ledger: paired(ledger, self._earlier.baseline, self._rows, self._subject.label)
        )
        if pairs is None or pairs.differences.count < LEAST_AT_ALL:
            self._reasons["power"] = (
                "no rows are judged by a baseline too: add the section baseline, and a run or a pilot of 10 rows"
            )
            return None
        differences, request = pairs.differences, self._request
        deviation = math.sqrt(differences.xx / (differences.count - 1))
        figures: dict[str, Any] = {
            "power": request.power,
            "s": deviation,
            "n": int(differences.count),
            "from": self._basis("rows"),
        }
        figures["mde"] = least_difference(deviation, self._sizes.judged, effect, request.power)
        if request.difference is not None:
            figures["difference"] = request.difference
            figures["subjects"] = subjects_for_difference(deviation, request.difference, effect, request.power)
            if pairs.discordant is not None:
                figures["subjects_mcnemar"] = mcnemar_subjects(pairs.discordant, request.difference, request.power)
        return {**figures, "discordant": pairs.discordant}

    def _solve_request(self, scores: Moments, effect: float) -> dict[str, Any]:
        request = self._request
        if request.solve == "audit":
            return self._solve_audit()
        solution = dict[str, Any]()
        spread = math.sqrt(scores.xx / (scores.count - 1)) if scores.count >= LEAST_AT_ALL else None
        counts: list[int | None] = []
        if request.width is not None:
            counts.append(None if spread is None else subjects_for_width(spread, request.width, effect))
        if request.difference is not None:
            counts.append((self._power(effect) or {}).get("subjects"))
        if request.solve == "n" and request.budget is not None:
            solution["affordable"] = self._affordable(request.budget)
            counts = counts or [solution["affordable"]]
        if None in counts:
            self._reasons["solve"] = "too few scores are known: add --pilot 20 for a pilot"
            return {"what": request.solve, "subjects": None, **solution}
        subjects = max((count for count in counts if count is not None), default=self._sizes.judged)
        solution |= {"subjects": subjects, "there_are": self._sizes.judged, "enough": subjects <= self._sizes.judged}
        if spread is not None:
            solution["width"] = width(spread, subjects, effect) if subjects else None
        return {"what": request.solve, **solution, "cost": {unit: self._cost_of(unit, subjects) for unit in UNITS}}

    def _cost_of(self, unit: str, subjects: int) -> dict[str, str | None] | None:
        settled = self._settled(unit)
        rest = self._range(unit, max(0, subjects - (self._sizes.paid if self._earlier.can_resume else 0)))
        if rest is None:
            return None
        low, mid, high = (settled + _rounded(value, ROUND_HALF_EVEN) for value in (rest.low, rest.mid, rest.high))
        return {"low": _text(low), "mid": _text(mid), "high": _text(high)}

    def _affordable(self, budget: Cost) -> int | None:
        """Return the number of subjects, paid subjects included, that cost at most *budget* at the upper end of the range."""
        if not self._has_enough_rows or budget.amount is None:
            return None
        costs, remaining = self._rows.moments(budget.unit), float(budget.amount - self._settled(budget.unit))
        if costs.x <= 0:
            return None
        low, high = 0, math.ceil(max(0.0, remaining) / costs.x) + 1
        while low + 1 < high:
            middle = (low + high) // 2
            fits = from_rows(costs, middle, self._request.level).high <= remaining
            low, high = (middle, high) if fits else (low, middle)
        return low + (self._sizes.paid if self._earlier.can_resume else 0)

    def _solve_audit(self) -> dict[str, Any]:
        """Return the rate of audits for a width, and the cheapest rate, by the earlier run's audits."""
        history, request = self._earlier.audit, self._request
        if history is None or history.get("tau2") is None or request.width is None:
            self._reasons["solve"] = "no earlier run of these metrics had audits: run once with audit: {rate: 0.2}"
            return {"what": "audit", "rate": None, "best_rate": None}
        least = math.ceil(history["variance"] * (Z_95 / request.width) ** 2)
        rate, rates = None, dict[str, float]()
        try:
            rate, rates = audit_rates(history, self._sizes.judged, request.width, groups=True)
        except ValueError:
            self._reasons["solve"] = f"no rate of audits gives this width: {least:,} subjects or more are needed"
        groups = {"rates": rates} if rates else {}
        return {"what": "audit", "rate": rate, "best_rate": history["best_rate"], "least_subjects": least, **groups}


def _rounded(value: float, rounding: str) -> Decimal:
    return rounded(Decimal(repr(value)), _DIGITS, rounding)


def _text(amount: Decimal) -> str:
    digits = format(amount, "f")
    return (digits.rstrip("0").rstrip(".") or "0") if "." in digits else digits
