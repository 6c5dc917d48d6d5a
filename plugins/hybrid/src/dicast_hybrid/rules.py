"""Rules that a cascade has with and without a calibration: an evaluate block, a thumb, and the total of costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import Cost, Failure, Judgment, Subject

SKIPPED = "escalation_skipped"
FEEDBACK, THUMBS = "explicit_feedback", ("thumbs_up", "thumbs_down")


def wanted_rubric(subject: Subject) -> object:
    """Return the rubric in a workload's ``evaluate`` block, or None if the cascade decides by confidence."""
    block = subject.context.get("evaluate") if subject.kind == "workload" else None
    return block.get("rubric") if isinstance(block, Mapping) else None


def has_thumb(subject: Subject) -> bool:
    """Return whether a turn has a thumb from its user."""
    if subject.kind != "turn":
        return False
    ratings = (event.payload.get("rating") for event in subject.events if event.type == "feedback.explicit")
    return any(rating in THUMBS for rating in ratings)


def over_feedback(answer: Judgment) -> Judgment:
    """Return *answer* marked as not escalated because of the user's thumb."""
    return attrs.evolve(answer, signals={**answer.signals, SKIPPED: FEEDBACK})


def total(answers: Sequence[Judgment | Failure]) -> Cost:
    """Return the total cost of *answers* in the unit of the last cost. Costs in other units are not converted."""
    costs = [answer.cost for answer in answers if not answer.cost.is_zero]
    return sum((cost for cost in costs if cost.unit == costs[-1].unit), Cost.zero())
