"""``sandbox/verification_delta``: do more tests pass than before?"""

from __future__ import annotations

import attrs

from dicast import MISSING, Execution, Failure, Score, Subject, lookup

from .bench import COST, Trial
from .reports import passed_words
from .suite import FORGEABLE_CONFIDENCE, SuiteMetric

CONFIDENCE = 0.9
BEFORE = "tests_passing"


@attrs.frozen(kw_only=True)
class VerificationDelta(SuiteMetric):
    """1 when more tests pass than before, .5 when as many, 0 when fewer.

    How many passed before is the subject's ``context.tests_passing``; without it, what a patch changes is tested as it was before,
    and any other output is a Failure ``missing_input``. How many pass now is read from the report, or from the first ``N passed``
    of the output.
    """

    name = "verification_delta"

    def refused(self, subject: Subject) -> Failure | None:
        """A Failure where nothing says, or can say, how many tests passed before."""
        if self.output_as == "patch" or _before(subject) is not None:
            return None
        who = f"{subject.kind} {subject.id}"
        return Failure("missing_input", f"{who} does not say in context.{BEFORE} how many tests passed before")

    async def judge(self, trial: Trial) -> Score | Failure:
        """What the change has brought."""
        after, limit = self._passed(trial.execution), trial.execution.limit
        if after is None and limit is None:
            return self._unclear("how many tests passed")
        before = _before(trial.subject)
        if before is None:
            found = await trial.without_candidate(lambda given: self.program(given, given.archive, {}), self._passed)
            if found is None or isinstance(found, Failure):
                return found or self._unclear("how many tests passed before")
            before = found
        after = 0 if limit else after or 0
        delta = after - before
        return Score(
            0.0 if limit else 1.0 if delta > 0 else 0.5 if delta == 0 else 0.0,
            FORGEABLE_CONFIDENCE if self.forgeable else CONFIDENCE,
            trial.details(f"; tests before: {before}, after: {after}, delta: {delta}"),
            cost=COST,
            signals={**trial.signals(), "tests_before": before, "tests_after": after, "forgeable": self.forgeable},
        )

    def _passed(self, execution: Execution) -> int | None:
        """How many tests passed; None where it is not said, although the command ended well, or where a limit ended it."""
        if execution.limit is not None:
            return None
        counts = self.counts(execution)
        passed = passed_words(execution.output) if counts is None else counts.passed
        return 0 if passed is None and execution.exit != 0 else passed

    def _unclear(self, what: str) -> Failure:
        return Failure("crashed", f"sandbox/{self.name}: {self.command!r} does not say {what}", cost=COST)


def _before(subject: Subject) -> int | None:
    found = lookup(subject.context, BEFORE)
    if found is MISSING and subject.input is not None:
        found = lookup(subject.input, BEFORE)
    return found if isinstance(found, int) and not isinstance(found, bool) else None
