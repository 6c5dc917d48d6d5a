"""``sandbox/verification_delta``: do more tests pass than before?"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from dicast import (
    MISSING,
    ConfigError,
    Cost,
    Execution,
    Failure,
    RunContext,
    Sandbox,
    Score,
    Subject,
    check_field,
    lookup,
)

from .bench import COST, FORGEABLE_CONFIDENCE, Bench, Live, Mode, bench, check, evidence, opened, peer, told
from .bubblewrap import Bubblewrap
from .profiles import Profile
from .reports import Report, passed_words, read, runner, wanted
from .workspace import check_template

CONFIDENCE = 0.9
BEFORE = "tests_passing"


@attrs.frozen
class VerificationDelta:
    """1 when more tests pass than before, .5 when as many, 0 when fewer.

    How many passed before is the subject's ``context.tests_passing``; without it the answer is a Failure ``missing_input``. How
    many pass now is read from the report, or from the first ``N passed`` of the output.

    :param command: a text for the shell, or a list of words. It starts in the workspace.
    :param mode: ``shared`` or ``isolated``, as for ``sandbox/tests_pass``.
    :param candidate: under ``isolated``, the command that runs the candidate where it is no Python module.
    :param report: what the command reports, as for ``sandbox/tests_pass``.
    :param report_file: where the command writes JUnit XML, in the workspace.
    :param output_file: where the output that is judged stands in the workspace.
    :param files: further files, as for ``sandbox/tests_pass``.
    :param template: a folder whose content every workspace begins with.
    :param field: judge only this place in the output, a dotted path or a JSON pointer. A missing field scores 0.
    :param profile: how much it may take: ``small``, ``medium`` or ``large``, as for ``sandbox/command``.
    :param timeout: seconds of wall time, in place of the profile's.
    :param backend: the sandbox.
    :param unsafe: allows ``sandbox/none``.
    """

    name = "verification_delta"
    tier = "truth"

    command: str | tuple[str, ...] = "cargo test"
    mode: Mode = "shared"
    candidate: str | tuple[str, ...] | None = None
    report: Report | None = None
    report_file: str | None = None
    output_file: str = "output.txt"
    files: dict[str, str] | str | None = None
    template: Path | None = attrs.field(default=None, validator=check_template)
    field: str | None = attrs.field(default=None, validator=check_field)
    profile: Profile = "medium"
    timeout: float | None = None
    backend: Sandbox = attrs.field(factory=Bubblewrap)
    unsafe: bool = False

    def __attrs_post_init__(self) -> None:
        if (self._report == "junit") != (self.report_file is not None):
            raise ConfigError("report: junit and report_file, where the command writes it, belong together")
        peer(self)
        check(self)

    @property
    def _report(self) -> Report:
        return runner(self.command) if self.report is None else self.report

    def estimate(self, subject: Subject) -> Cost:
        """What one run is reckoned at."""
        return COST

    def open(self, run: RunContext) -> AbstractAsyncContextManager[Live]:
        """Ready for one run."""
        return opened(self, self._bench(), self._judge, _without_baseline)

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the tests about *subject*, outside of any run."""
        return await Live(self._bench(), self.backend, self._judge, _without_baseline).score(subject)

    def _bench(self) -> Bench:
        collect, environment = wanted(self._report, self.report_file)
        return bench(self, peer=peer(self), environment=environment, collect=collect)

    def _judge(self, execution: Execution, subject: Subject) -> Score | Failure:
        before = _before(subject)
        assert before is not None  # or nothing would have been run
        counts = read(self._report, execution.output, execution.collected)
        after = passed_words(execution.output) if counts is None else counts.passed
        if after is None and execution.exit == 0 and execution.limit is None:
            return Failure(
                "crashed", f"sandbox/{self.name}: {self.command!r} does not say how many tests passed", cost=COST
            )
        after = 0 if execution.limit else after or 0
        delta = after - before
        forgeable = self.mode == "shared"
        return Score(
            0.0 if execution.limit else 1.0 if delta > 0 else 0.5 if delta == 0 else 0.0,
            FORGEABLE_CONFIDENCE if forgeable else CONFIDENCE,
            told(self.command, execution, f"; tests before: {before}, after: {after}, delta: {delta}"),
            cost=COST,
            signals={**evidence(execution), "tests_before": before, "tests_after": after, "forgeable": forgeable},
        )


def _before(subject: Subject) -> int | None:
    found = lookup(subject.context, BEFORE)
    if found is MISSING and subject.input is not None:
        found = lookup(subject.input, BEFORE)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _without_baseline(subject: Subject) -> Failure | None:
    if _before(subject) is not None:
        return None
    return Failure(
        "missing_input", f"{subject.kind} {subject.id} does not say in context.{BEFORE} how many tests passed before"
    )
