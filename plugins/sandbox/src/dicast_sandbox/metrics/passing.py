"""``sandbox/tests_pass``: do the tests pass?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs

from dicast import Execution, Failure, Program, Score

from ..commands.words import executed_words
from ..inside import STUB, text
from ..suites.listing import Listing, listed, listing
from ..suites.reports import Counts
from ..workspace.workspace import Given
from .bench import COST, Trial
from .suite import FORGEABLE_CONFIDENCE, SuiteMetric

FAILED_CONFIDENCE = 0.9
"""Confidence of a 0: tests may also fail for reasons outside the candidate."""


@attrs.frozen(kw_only=True)
class PassingTests(SuiteMetric):
    """1 when a test command in a sandbox succeeds and its report says that all tests passed, else 0.

    Where the runner makes a report that can be read, it counts too: without it, or with no test passed, the score is 0
    whatever the exit code says. So it is when fewer tests have run than there are without the candidate: pytest and unittest
    list theirs, others run those of what a patch changes; where that does not work, or the tests cannot be loaded without the
    candidate, nothing is demanded. A candidate that strikes a limit scores 0, with its name in ``signals.limit``.

    :param tests: how many tests have to pass, without those that are skipped: with fewer the score is 0. By default as many as there are without the
        candidate (``signals.collected``).
    """

    name = "tests_pass"

    tests: int | None = None

    async def judge(self, trial: Trial) -> Score | Failure:
        """1 when all tests passed."""
        counts = self.counts(trial.execution)
        wrong, collected = self._wrong(trial.execution, counts), None
        if wrong is None and counts is not None and self.tests is None:
            collected = await self._collected(trial)
            if isinstance(collected, Failure):
                return collected
            if collected is not None and _total(counts) < collected:
                wrong = f"{_total(counts)} of {collected} tests ran"
        confidence = 1.0 if wrong is None else FAILED_CONFIDENCE
        signals = {**trial.signals(), **({} if counts is None else attrs.asdict(counts)), "forgeable": self.forgeable}
        return Score(
            float(wrong is None),
            min(confidence, FORGEABLE_CONFIDENCE) if self.forgeable else confidence,
            self.details(trial, f"; {wrong}" if wrong else ""),
            cost=COST,
            signals=signals if collected is None else {**signals, "collected": collected},
        )

    def _wrong(self, execution: Execution, counts: Counts | None) -> str | None:
        """Why the tests have not passed; None when they have."""
        if execution.limit is not None or execution.exit != 0:
            return "failed" if counts is None else f"{counts.failed} failed, {counts.passed} passed"
        if self.reported == "none":
            return None
        if counts is None:
            return f"no {self.reported} report that can be read"
        if counts.failed or not counts.passed:
            return f"{counts.failed} failed, {counts.passed} passed"
        if self.tests is not None and counts.passed < self.tests:
            return f"{counts.passed} passed of {self.tests}"
        return None

    async def _collected(self, trial: Trial) -> int | Failure | None:
        """How many tests there are without the candidate; None where that cannot be told."""
        lists = listing(self.reported, self.command or ())
        if lists is not None:
            return await trial.without_candidate(partial(self._lister, lists), listed)
        if self.output_as == "patch":
            return await trial.without_candidate(lambda given: self.program(given, given.archive, {}), self._ran)
        return None

    def _lister(self, lists: Listing, given: Given) -> Program:
        files = given.files
        if self._stands_alone(given):
            files = {**files, self.output_file: text(STUB)}
        return Program(
            executed_words(lists.command), self.limits, files, given.archive.content or None, lists.environment
        )

    def _stands_alone(self, given: Given) -> bool:
        """Whether nothing would be where the tests import the candidate from."""
        name = self.output_file
        return Path(name).suffix == ".py" and name not in given.archive.members and name not in given.files

    def _ran(self, execution: Execution) -> int | None:
        counts = self.counts(execution)
        return None if counts is None or execution.struck else _total(counts)


def _total(counts: Counts) -> int:
    return counts.passed + counts.failed + counts.skipped
