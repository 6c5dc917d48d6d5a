"""Sizes and projected costs of a source's subjects, paid and remaining."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import attrs

from dicast import Cost, Subject

from ..statistics.moments import Moments
from .rows import UNITS, PlanRows


@attrs.frozen
class Earlier:
    """Earlier run that a plan is based on: its id, its *setup* if it has not ended, its audits and its baseline.

    *can_resume* is true if the planned run resumes it, with *resume_command*.
    """

    run_id: str | None = None
    setup: Mapping[str, str] | None = None
    audit: Mapping[str, Any] | None = None
    baseline: Mapping[str, Any] | None = None
    can_resume: bool = False
    resume_command: str | None = None


class Sizes:
    """Sums of the projected costs and the lengths of the source's subjects, for subjects with a paid row in *rows* and for the rest."""

    def __init__(self, rows: PlanRows, kinds: tuple[str, ...] = ()) -> None:
        self._rows, self._kinds = rows, kinds
        self.subjects = self.judged = self.paid = 0
        self.projected: dict[str, Decimal | None] = dict.fromkeys(UNITS, Decimal())
        self.projected_paid: dict[str, Decimal | None] = dict.fromkeys(UNITS, Decimal())
        self.by_size = {unit: Moments() for unit in UNITS}
        self.rest = Moments()

    def add(self, subject: Subject, estimates: Mapping[str, Cost]) -> None:
        """Add a subject, with the greatest cost of judging it."""
        self.subjects += 1
        self.judged += not self._kinds or subject.kind in self._kinds
        size = float(
            sum(len(str(part)) for part in (subject.input, subject.output, subject.reference) if part is not None)
        )
        costs = {unit: self._rows.cost(subject.kind, subject.id, unit) for unit in UNITS}
        is_paid = costs["usd"] is not None
        self.paid += is_paid
        if not is_paid:
            self.rest.add(size)
        for unit, cost in costs.items():
            if cost is not None:
                self.by_size[unit].add(size, cost)
            sums, amount = self.projected_paid if is_paid else self.projected, estimates[unit].amount
            total = sums[unit]
            sums[unit] = None if total is None or amount is None else total + amount
