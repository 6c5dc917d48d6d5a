"""``sandbox/verification_delta``: do more tests pass than before?"""

from __future__ import annotations

from typing import Literal

import attrs

from dicast import Execution, Failure, Score, Subject
from dicast.toolkit.json_values import MISSING, lookup

from ..suites.reports import first_passed_count
from .bench import COST, Trial
from .metric import without_guess
from .suite import SuiteMetric

CONFIDENCE = 0.9
BEFORE = "tests_passing"


@attrs.frozen(kw_only=True)
class VerificationDelta(SuiteMetric):
    """1 if more tests pass than before, .5 if as many, 0 if fewer.

    The number before is the subject's ``context.tests_passing``. Without it, the original of a patch is tested,
    and for any other output *baseline_missing* decides. The number after is read from the report. If the command makes no report,
    it is the first ``N passed`` of the output, which a candidate can write in either mode: the score is ``forgeable``. An output
    without a count is 0 tests, with ``signals.parsed: false``. The confidence is .9.

    :param baseline_missing: ``missing_input``: a subject without ``context.tests_passing`` is a failure, and so is a patch whose original
        has no count. ``zero``: 0 tests passed before.
    """

    name = "verification_delta"

    baseline_missing: Literal["missing_input", "zero"] = "missing_input"

    @property
    def forgeable(self) -> bool:
        """Return whether the candidate could have forged its score."""
        return super().forgeable or self.report_kind == "none"

    def refusal(self, subject: Subject) -> Failure | None:
        """Return a Failure if the number of tests that passed before is missing or wrong and cannot be measured."""
        before = _recorded_count(subject)
        if _whole_number(before) is not None or (
            before is None and (self.output_as == "patch" or self.baseline_missing == "zero")
        ):
            return None
        subject_name = f"{subject.kind} {subject.id}"
        if before is None:
            message = f"{subject_name} has no context.{BEFORE}, the number of tests that passed before"
            return Failure("missing_input", f"{message}; baseline_missing: zero counts 0")
        return Failure(
            "missing_input", f"{subject_name} has {before!r} as context.{BEFORE}; expected a whole number, 0 or more"
        )

    async def judge(self, trial: Trial) -> Score | Failure:
        """Return the score of the change in passed tests."""
        execution = trial.execution
        after = None if execution.struck else self._count_passed(execution)
        before = _whole_number(_recorded_count(trial.subject))
        if before is None and self.output_as == "patch":
            count = await trial.run_without_candidate(
                lambda workspace: self.program(workspace, workspace.archive, {}), self._count_before
            )
            if isinstance(count, Failure):
                return count
            if count is None and self.baseline_missing != "zero":
                message = (
                    f"{self.command!r} does not report how many tests passed before; baseline_missing: zero counts 0"
                )
                return Failure("missing_input", message, cost=COST)
            before = count
        return self._score_change(trial, before or 0, after)

    def _count_before(self, execution: Execution) -> int | None:
        """Return how many tests passed without the candidate: 0 if the command failed without a count, None if there is no count."""
        passed = self._count_passed(execution)
        return 0 if passed is None and execution.struck is None and execution.exit != 0 else passed

    def _score_change(self, trial: Trial, before: int, passed: int | None) -> Score:
        after = passed or 0
        delta = after - before
        value = 0.0 if trial.execution.struck or delta < 0 else 1.0 if delta > 0 else 0.5
        trial = without_guess(trial) if value else trial
        return Score(
            value,
            CONFIDENCE,
            self.details(trial, f"; tests before: {before}, after: {after}, delta: {delta}"),
            cost=COST,
            signals={
                **trial.signals(),
                "tests_before": before,
                "tests_after": after,
                "parsed": passed is not None,
                "forgeable": self.forgeable,
            },
        )

    def _count_passed(self, execution: Execution) -> int | None:
        """Return how many tests passed; None if the output has no count, or a limit ended the run."""
        if execution.struck is not None:
            return None
        if self.report_kind == "none":
            return first_passed_count(execution.output)
        counts = self.read_counts(execution)
        return None if counts is None else counts.passed


def _recorded_count(subject: Subject) -> object:
    """Return the subject's own value for the number of tests that passed before; None if there is none."""
    value = lookup(subject.context, BEFORE)
    if value is MISSING and subject.input is not None:
        value = lookup(subject.input, BEFORE)
    return None if value is MISSING else value


def _whole_number(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0 or value % 1 != 0:
        return None
    return int(value)
