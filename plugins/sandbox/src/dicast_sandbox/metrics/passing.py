"""``sandbox/tests_pass``: do the tests pass?"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import attrs

from dicast import Execution, Failure, Program, Score

from ..commands.words import executed_words
from ..inside import STUB, read_source
from ..suites.listing import Listing, find_listing, parse_listing
from ..suites.reports import Counts
from ..workspace.workspace import Workspace
from .bench import COST, Trial
from .suite import FORGEABLE_CONFIDENCE, SuiteMetric

FAILED_CONFIDENCE = 0.9
"""Confidence of a score of 0: tests may also fail for other reasons than the candidate."""


@attrs.frozen(kw_only=True)
class PassingTests(SuiteMetric):
    """1 if a test command in a sandbox succeeds and its report has only passed tests, else 0.

    If the runner makes a readable report, the report counts too: without it, or without a passed test, the score is 0
    at any exit code. The score is also 0 if fewer tests ran than there are without the candidate. pytest and unittest
    list these tests; other runners run the tests of the original of a patch. If that fails, or the tests cannot be loaded without the
    candidate, there is no minimum. A candidate that exceeds a limit scores 0, with the name of the limit in ``signals.limit``.

    :param tests: how many tests have to pass, without skipped tests: with fewer the score is 0. By default as many as there are without the
        candidate (``signals.collected``).
    """

    name = "tests_pass"

    tests: int | None = None

    async def judge(self, trial: Trial) -> Score | Failure:
        """Return 1 if all tests passed, else 0."""
        counts = self.read_counts(trial.execution)
        reason, collected = self._failure_reason(trial.execution, counts), None
        if reason is None and counts is not None and self.tests is None:
            collected = await self._count_tests(trial)
            if isinstance(collected, Failure):
                return collected
            if collected is not None and _total(counts) < collected:
                reason = f"{_total(counts)} of {collected} tests ran"
        confidence = 1.0 if reason is None else FAILED_CONFIDENCE
        signals = {**trial.signals(), **({} if counts is None else attrs.asdict(counts)), "forgeable": self.forgeable}
        return Score(
            float(reason is None),
            min(confidence, FORGEABLE_CONFIDENCE) if self.forgeable else confidence,
            self.details(trial, f"; {reason}" if reason else ""),
            cost=COST,
            signals=signals if collected is None else {**signals, "collected": collected},
        )

    def _failure_reason(self, execution: Execution, counts: Counts | None) -> str | None:
        """Return the reason why the tests have not passed; None if they have."""
        if execution.limit is not None or execution.exit != 0:
            return "failed" if counts is None else f"{counts.failed} failed, {counts.passed} passed"
        if self.report_kind == "none":
            return None
        if counts is None:
            return f"no {self.report_kind} report that can be read"
        if counts.failed or not counts.passed:
            return f"{counts.failed} failed, {counts.passed} passed"
        if self.tests is not None and counts.passed < self.tests:
            return f"{counts.passed} passed of {self.tests}"
        return None

    async def _count_tests(self, trial: Trial) -> int | Failure | None:
        """Return the number of tests without the candidate; None if it is not known."""
        listing = find_listing(self.report_kind, self.command or ())
        if listing is not None:
            return await trial.run_without_candidate(partial(self._listing_program, listing), parse_listing)
        if self.output_as == "patch":
            return await trial.run_without_candidate(
                lambda workspace: self.program(workspace, workspace.archive, {}), self._count_run
            )
        return None

    def _listing_program(self, listing: Listing, workspace: Workspace) -> Program:
        files = workspace.files
        if self._needs_stub(workspace):
            files = {**files, self.output_file: read_source(STUB)}
        return Program(
            executed_words(listing.command), self.limits, files, workspace.archive.content or None, listing.environment
        )

    def _needs_stub(self, workspace: Workspace) -> bool:
        """Return whether the module that the tests import would be missing without the candidate."""
        name = self.output_file
        return Path(name).suffix == ".py" and name not in workspace.archive.members and name not in workspace.files

    def _count_run(self, execution: Execution) -> int | None:
        counts = self.read_counts(execution)
        return None if counts is None or execution.struck else _total(counts)


def _total(counts: Counts) -> int:
    return counts.passed + counts.failed + counts.skipped
