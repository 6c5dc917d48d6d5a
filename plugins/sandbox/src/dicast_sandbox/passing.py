"""``sandbox/tests_pass``: do the tests pass?"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import attrs

from dicast import ConfigError, Cost, Execution, Failure, RunContext, Sandbox, Score, Subject, check_field

from .bench import COST, FORGEABLE_CONFIDENCE, Bench, Live, Mode, bench, check, evidence, opened, peer, told
from .bubblewrap import Bubblewrap
from .profiles import Profile
from .reports import Counts, Report, read, runner, wanted
from .workspace import check_template

FAILED_CONFIDENCE = 0.9
"""Tests may also fail for reasons of their own (document 003)."""


@attrs.frozen
class PassingTests:
    """1 when a test command in a sandbox succeeds and its report says that all tests passed, else 0.

    Where the runner makes a report that can be read, it counts too: without it, or with no test passed, the score is 0
    whatever the exit code says. A candidate that strikes a limit scores 0, with its name in ``signals.limit``.

    :param command: a text for the shell, or a list of words. It starts in the workspace.
    :param mode: ``shared``: the candidate's code is part of the tests' process, and could make it say anything: the score has
        ``forgeable: true`` in its signals and a confidence of .5 at most. ``isolated``: it runs in a sandbox of its own; in the
        tests' one a module of the same name calls its functions there, with plain values.
    :param candidate: under ``isolated``, the command that runs the candidate where it is no Python module: the tests talk to its
        stdin and stdout by the socket that the environment variable ``DICAST_PEER_FD`` names.
    :param report: what the command reports: ``pytest``, ``unittest``, ``junit``, ``tap``, ``cargo``, ``go``, ``jest``,
        ``vitest``, ``node``, or ``none``: the exit code alone counts. By default what the command's name says.
    :param report_file: where the command writes JUnit XML, in the workspace.
    :param tests: how many tests there are: with fewer passed the score is 0. By default not known.
    :param output_file: where the output that is judged stands in the workspace.
    :param files: further files: texts by name, with ``{{ context.tests }}`` and the like for what the subject has (``id``,
        ``input``, ``output``, ``reference``, ``context``, and the keys of the context by themselves); or the place of a mapping
        of names to texts in the subject (``context.files``).
    :param template: a folder whose content every workspace begins with.
    :param field: judge only this place in the output, a dotted path or a JSON pointer. A missing field scores 0.
    :param profile: how much it may take: ``small``, ``medium`` or ``large``, as for ``sandbox/command``.
    :param timeout: seconds of wall time, in place of the profile's.
    :param backend: the sandbox.
    :param unsafe: allows ``sandbox/none``.
    """

    name = "tests_pass"
    tier = "truth"

    command: str | tuple[str, ...] = "cargo test"
    mode: Mode = "shared"
    candidate: str | tuple[str, ...] | None = None
    report: Report | None = None
    report_file: str | None = None
    tests: int | None = None
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
        return opened(self, self._bench(), self._judge)

    async def score(self, subject: Subject) -> Score | Failure:
        """Run the tests about *subject*, outside of any run."""
        return await Live(self._bench(), self.backend, self._judge).score(subject)

    def _bench(self) -> Bench:
        collect, environment = wanted(self._report, self.report_file)
        return bench(self, peer=peer(self), environment=environment, collect=collect)

    def _judge(self, execution: Execution, subject: Subject) -> Score:
        counts = read(self._report, execution.output, execution.collected)
        wrong = self._wrong(execution, counts)
        confidence = 1.0 if wrong is None else FAILED_CONFIDENCE
        forgeable = self.mode == "shared"
        signals = {**evidence(execution), **({} if counts is None else attrs.asdict(counts)), "forgeable": forgeable}
        return Score(
            float(wrong is None),
            min(confidence, FORGEABLE_CONFIDENCE) if forgeable else confidence,
            told(self.command, execution, f"; {wrong}" if wrong else ""),
            cost=COST,
            signals=signals,
        )

    def _wrong(self, execution: Execution, counts: Counts | None) -> str | None:
        """Why the tests have not passed; None when they have."""
        if execution.limit is not None or execution.exit != 0:
            return "failed" if counts is None else f"{counts.failed} failed, {counts.passed} passed"
        if self._report == "none":
            return None
        if counts is None:
            return f"no {self._report} report that can be read"
        if counts.failed or not counts.passed:
            return f"{counts.failed} failed, {counts.passed} passed"
        if self.tests is not None and counts.passed + counts.skipped < self.tests:
            return f"{counts.passed} passed of {self.tests}"
        return None
