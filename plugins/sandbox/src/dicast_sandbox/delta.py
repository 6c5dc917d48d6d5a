"""``sandbox/verification_delta``: do more tests pass than before?"""

from __future__ import annotations

import attrs

from dicast import MISSING, Execution, Failure, Score, Subject, lookup

from .bench import COST, Trial
from .metric import certain
from .reports import passed_words
from .suite import FORGEABLE_CONFIDENCE, SuiteMetric

CONFIDENCE = 0.9
BEFORE = "tests_passing"


@attrs.frozen(kw_only=True)
class VerificationDelta(SuiteMetric):
    """1 when more tests pass than before, .5 when as many, 0 when fewer.

    How many passed before is the subject's ``context.tests_passing``; without it, what a patch changes is tested as it was before,
    and any other output is a Failure ``missing_input``. How many pass now is read from the report; no report is none passed. Where
    the command makes none, it is the first ``N passed`` of the output, which a candidate can write in either mode: the score is
    ``forgeable``.
    """

    name = "verification_delta"

    @property
    def forgeable(self) -> bool:
        """Whether the candidate could have made its score itself."""
        return super().forgeable or self.reported == "none"

    def refused(self, subject: Subject) -> Failure | None:
        """A Failure where nothing says, or can say, how many tests passed before."""
        told = _told(subject)
        if _number(told) is not None or (told is None and self.output_as == "patch"):
            return None
        who = f"{subject.kind} {subject.id}"
        if told is None:
            return Failure("missing_input", f"{who} does not say in context.{BEFORE} how many tests passed before")
        return Failure("missing_input", f"{who} has {told!r} as context.{BEFORE}: a whole number, 0 or more, is wanted")

    async def judge(self, trial: Trial) -> Score | Failure:
        """What the change has brought."""
        execution = trial.execution
        after = 0 if execution.struck else self._passed(execution)
        if after is None and self.reported == "none":
            return self._unclear("how many tests passed")
        before = _number(_told(trial.subject))
        if before is None:
            found = await trial.without_candidate(lambda given: self.program(given, given.archive, {}), self._passed)
            if found is None or isinstance(found, Failure):
                return found or self._unclear("how many tests passed before")
            before = found
        return self._compared(trial, before, after or 0)

    def _compared(self, trial: Trial, before: int, after: int) -> Score:
        delta = after - before
        value = 0.0 if trial.execution.struck or delta < 0 else 1.0 if delta > 0 else 0.5
        trial = certain(trial) if value else trial
        return Score(
            value,
            FORGEABLE_CONFIDENCE if self.forgeable else CONFIDENCE,
            self.details(trial, f"; tests before: {before}, after: {after}, delta: {delta}"),
            cost=COST,
            signals={**trial.signals(), "tests_before": before, "tests_after": after, "forgeable": self.forgeable},
        )

    def _passed(self, execution: Execution) -> int | None:
        """How many tests passed; None where it is not said, although the command ended well, or where a limit ended it."""
        if execution.struck is not None:
            return None
        counts = self.counts(execution)
        passed = counts.passed if counts is not None else None
        if self.reported == "none":
            passed = passed_words(execution.output)
        return 0 if passed is None and execution.exit != 0 else passed

    def _unclear(self, what: str) -> Failure:
        return Failure("crashed", f"{self.command!r} does not say {what}", cost=COST)


def _told(subject: Subject) -> object:
    """What the subject says of how many tests passed before; None where it says nothing."""
    found = lookup(subject.context, BEFORE)
    if found is MISSING and subject.input is not None:
        found = lookup(subject.input, BEFORE)
    return None if found is MISSING else found


def _number(told: object) -> int | None:
    if isinstance(told, bool) or not isinstance(told, int | float) or told < 0 or told % 1 != 0:
        return None
    return int(told)
