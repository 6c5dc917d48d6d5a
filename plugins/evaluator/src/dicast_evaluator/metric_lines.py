"""The metric ``evaluator/metric_lines``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal

import attrs

from dicast import Failure, Metric, RawScore, RunContext, Subject
from dicast.toolkit.command import CommandEnd, call_command
from dicast.toolkit.metric_lines import Measurements, MetricLines
from dicast.toolkit.scripts import scripts

from .case import Case, case
from .options import command_words
from .preflight import missing, refused

_EXCERPT_CHARS = 500
Direction = Literal["higher_is_better", "lower_is_better", "higher", "lower"]


@attrs.frozen
class MetricLinesEvaluator:
    """Score with a command that prints METRIC lines, such as ``METRIC quality=0.75``.

    The path of the case is the command's last argument. It is the file named in the row's column ``case`` or ``path``, relative to the
    pipeline file's folder. Without such a column it is a temporary file with the row's output, or with its input if the row
    has no output. The variable ``DICAST_CASE`` has the same path, and ``DICAST_ROW`` has the path of the whole row as JSON. The checks get both
    variables and no argument. Commands start in the pipeline file's folder.

    The evaluator reads stdout and stderr completely, in the order of writing. The last value of each name counts. The score is the primary
    metric's; other metrics are in ``signals.secondary_metrics``, and ASI lines (``ASI key=value``) are in ``signals.asi``. If the
    primary metric is not a number in [0, 1] with higher numbers better, the slot key ``range`` states its scale.

    Checks with a non-zero exit code are a Failure ``checks_failed``; a command with one is ``crashed``. A missing primary metric
    is ``judge_output_invalid``. After the time limit (the slot key ``timeout``, 600 s by default, for checks and command together),
    dicast ends all started processes.

    :param command: a list of words, or a text that is split like a shell's and run without a shell.
    :param checks: a command that must succeed, in the same form; none by default.
    :param when: whether the checks run ``before`` the command, or ``after`` a successful command.
    :param primary: the metric that is the score; optional if there is only one metric.
    :param direction: ``higher_is_better`` (or ``higher``), or ``lower_is_better`` (``lower``), which needs the slot key ``range``.
    :param syntax: ``lenient`` allows surrounding blanks, ``5.``, ``1e3`` and a carriage return; ``strict`` is the protocol's own expression.
    """

    name = "metric_lines"
    tier = "truth"
    needs_output = False
    keeps_texts = True
    default_timeout = 600.0

    command: str | tuple[str, ...]
    checks: str | tuple[str, ...] | None = None
    when: Literal["before", "after"] = "before"
    primary: str | None = None
    direction: Direction = "higher_is_better"
    syntax: Literal["strict", "lenient"] = "lenient"

    def __attrs_post_init__(self) -> None:
        _ = self.commands  # raises an error for an empty command

    @property
    def lower_is_better(self) -> bool:
        """True if the slot's range is read from its end."""
        return self.direction in ("lower", "lower_is_better")

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """Return the words of the checks, if any, and of the command."""
        return [command_words(command) for command in (self.checks, self.command) if command is not None]

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """Yield the evaluator for one run.

        :raises ConfigError: when a command is missing.
        """
        for words in self.commands:
            if detail := missing(words, run.base):
                raise refused(words, run.base, detail)
        yield Measuring(self, run.base)

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the scripts named in the commands."""
        return {name: path for words in self.commands for name, path in scripts(words, base).items()}

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Measure *subject* in the current folder, outside of any run."""
        return await Measuring(self, Path()).score(subject)


class _Stopped(Exception):
    """A measurement that ended in a *failure*."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Measuring:
    """Live object that runs the commands of *options* in *folder*."""

    needs_output = False

    def __init__(self, options: MetricLinesEvaluator, folder: Path) -> None:
        self._options, self._folder = options, folder
        self.default_timeout = options.default_timeout

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Measure *subject*."""
        with case(subject, self._folder) as measured_case:
            if isinstance(measured_case, Failure):
                return measured_case
            try:
                return self._raw_score(await self._measure(measured_case))
            except _Stopped as stopped:
                return stopped.failure

    async def _measure(self, case: Case) -> Measurements:
        if self._options.when == "before":
            await self._check(case)
        lines = MetricLines(self._options.syntax)
        words = (*command_words(self._options.command), str(case.path))
        end = await self._run("Command", words, case, lines)
        if end.code:
            raise _Stopped(Failure("crashed", _exit_message("Command", end)))
        if self._options.when == "after":
            await self._check(case)
        return lines.result()

    async def _check(self, case: Case) -> None:
        if self._options.checks is None:
            return
        end = await self._run("Checks", command_words(self._options.checks), case, MetricLines())
        if end.code:
            raise _Stopped(Failure("checks_failed", _exit_message("Checks", end)))

    async def _run(self, what: str, words: Sequence[str], case: Case, lines: MetricLines) -> CommandEnd:
        try:
            return await call_command(words, folder=self._folder, env=case.environment, receive=lines.feed)
        except OSError as error:
            raise _Stopped(Failure("crashed", f"{what} failed to start: {error.strerror or error}")) from error

    def _raw_score(self, measured: Measurements) -> RawScore | Failure:
        if measured.dropped:
            message = f"{measured.dropped} METRIC or ASI lines are too long, or too many, to be read"
            return Failure("judge_output_invalid", message)
        primary = _primary(self._options.primary, list(measured.metrics))
        if isinstance(primary, Failure):
            return primary
        secondary = {name: value for name, value in measured.metrics.items() if name != primary}
        value = measured.metrics[primary]
        signals = {"primary_metric": value, "secondary_metrics": secondary, "asi": measured.asi}
        return RawScore(value, details=f"{primary}={value:g}", signals=signals)


def _primary(primary: str | None, names: Sequence[str]) -> str | Failure:
    """Return the name of the metric that is the score, from *names*."""
    if primary in names or (primary is None and len(names) == 1):
        return primary or names[0]
    if primary is not None:
        available = f"there were: {', '.join(names)}" if names else "there were none at all"
        return Failure("judge_output_invalid", f"no METRIC line of {primary!r}; {available}")
    if not names:
        return Failure("judge_output_invalid", "no METRIC line; the evaluator prints METRIC name=number")
    several = f"several metrics, {', '.join(names)}; choose one with primary"
    return Failure("judge_output_invalid", several)


def _exit_message(what: str, end: CommandEnd) -> str:
    errors = end.errors.decode(errors="replace").strip()[-_EXCERPT_CHARS:]
    return f"{what} exited with code {end.code}" + (f": {errors}" if errors else "")
