"""Items of a row's list with a judge as their check."""

from __future__ import annotations

import attrs

from dicast import Failure, Judge, Subject

from .check import MissingColumn, Outcome, filled_reference

REFERENCE_CHECKS = ("factuality",)
"""Names whose value is the reference of the output."""

CRITERION = "criterion"
"""Context column with the value, for all other names."""


@attrs.frozen
class Judged:
    """A check that asks *judge* whether the output meets *value*; it holds with a score of at least *threshold*.

    *number* distinguishes it from the other checks of the row.
    """

    name: str
    judge: Judge
    value: str
    threshold: float
    negate: bool
    is_reference: bool
    number: int = 0

    async def outcome(self, subject: Subject) -> Outcome | Failure:
        """Ask the judge about *subject*, under its own id, so that a resumed run finds the judge's reply."""
        try:
            value = str(filled_reference(self.value, subject))
        except MissingColumn as error:
            return Failure("missing_input", str(error))
        question = attrs.evolve(subject, id=f"{subject.id} (assertion {self.number}: {self.name})")
        if self.is_reference:
            question = attrs.evolve(question, reference=value)
        else:
            question = attrs.evolve(question, context={**subject.context, CRITERION: value})
        judgment = await self.judge.judge(question, ())
        if isinstance(judgment, Failure):
            return judgment
        holds = (judgment.score >= self.threshold) is not self.negate
        return Outcome(
            holds,
            1 - judgment.score if self.negate else judgment.score,
            "" if holds else f"the judge scores {judgment.score:g}, the limit is {self.threshold:g}, for {value!r:.80}",
            judgment.confidence,
            (judgment.cost,),
            (judgment.basis,),
        )
