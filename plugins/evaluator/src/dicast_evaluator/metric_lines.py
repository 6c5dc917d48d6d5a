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

_SHOWN = 500
Direction = Literal["higher_is_better", "lower_is_better", "higher", "lower"]


@attrs.frozen
class MetricLinesEvaluator:
    """Scores with a command that prints METRIC lines, such as ``METRIC quality=0.75``.

    The path of the case is the command's last argument. It is the file that the row's column ``case`` or ``path`` names, relative to the
    pipeline file's folder; of a row without such a column it is a temporary file with the row's output, or with its input where the row
    has no output. The variable ``DICAST_CASE`` has the same path, and ``DICAST_ROW`` that of the whole row as JSON; the checks have both,
    and no argument. Commands start in the pipeline file's folder.

    All of stdout and stderr is read, in the order in which it was written. The last value of each name counts. The score is the primary
    metric's; the others are ``signals.secondary_metrics``, and what ASI lines (``ASI key=value``) say is ``signals.asi``. Where the
    primary metric is no number in [0, 1] with higher ones better, the slot key ``range`` says on which scale it is.

    Checks that end with another exit code than 0 are a Failure ``checks_failed``; a command that does so is ``crashed``. No primary metric
    is ``judge_output_invalid``. When the time is over (the slot key ``timeout``, 600 s by default, for checks and command together),
    everything that was started is ended.

    :param command: a list of words, or a text that is taken apart as a shell would, and run without one.
    :param checks: a command that must succeed, likewise; by default there is none.
    :param when: whether the checks run ``before`` the command, or ``after`` it where it succeeded.
    :param primary: the metric that is the score; it may be left out where there is one metric alone.
    :param direction: ``higher_is_better`` (or ``higher``), or ``lower_is_better`` (``lower``), which needs the slot key ``range``.
    :param syntax: ``lenient`` allows blanks around, ``5.``, ``1e3`` and a carriage return; ``strict`` is the protocol's own expression.
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
        _ = self.commands  # refused where there is no command in them

    @property
    def lower_is_better(self) -> bool:
        """Whether the slot's range is read from its end."""
        return self.direction in ("lower", "lower_is_better")

    @property
    def commands(self) -> list[tuple[str, ...]]:
        """The words of the checks, where there are any, and of the command."""
        return [command_words(command) for command in (self.checks, self.command) if command is not None]

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Metric]:
        """Ready for one run.

        :raises ConfigError: when a command is not there.
        """
        for words in self.commands:
            if detail := missing(words, run.base):
                raise refused(words, run.base, detail)
        yield Measuring(self, run.base)

    def reads(self, base: Path) -> dict[str, Path]:
        """The scripts that the commands name."""
        return {name: path for words in self.commands for name, path in scripts(words, base).items()}

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Measure *subject* in the current folder, outside of any run."""
        return await Measuring(self, Path()).score(subject)


class _Stopped(Exception):
    """What was to be measured came to a *failure*."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Measuring:
    """Runs the commands of *options* in *folder*."""

    needs_output = False

    def __init__(self, options: MetricLinesEvaluator, folder: Path) -> None:
        self._options, self._folder = options, folder
        self.default_timeout = options.default_timeout

    async def score(self, subject: Subject) -> RawScore | Failure:
        """Measure *subject*."""
        with case(subject, self._folder) as found:
            if isinstance(found, Failure):
                return found
            try:
                return self._raw_score(await self._measure(found))
            except _Stopped as stopped:
                return stopped.failure

    async def _measure(self, found: Case) -> Measurements:
        if self._options.when == "before":
            await self._check(found)
        lines = MetricLines(self._options.syntax)
        words = (*command_words(self._options.command), str(found.path))
        end = await self._run("Command", words, found, lines)
        if end.code:
            raise _Stopped(Failure("crashed", _said("Command", end)))
        if self._options.when == "after":
            await self._check(found)
        return lines.result()

    async def _check(self, found: Case) -> None:
        if self._options.checks is None:
            return
        end = await self._run("Checks", command_words(self._options.checks), found, MetricLines())
        if end.code:
            raise _Stopped(Failure("checks_failed", _said("Checks", end)))

    async def _run(self, what: str, words: Sequence[str], found: Case, lines: MetricLines) -> CommandEnd:
        try:
            return await call_command(words, folder=self._folder, env=found.environment, receive=lines.feed)
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


def _primary(wanted: str | None, names: Sequence[str]) -> str | Failure:
    """Which of the metrics *names* is the score."""
    if wanted in names or (wanted is None and len(names) == 1):
        return wanted or names[0]
    if wanted is not None:
        there = f"there were: {', '.join(names)}" if names else "there were none at all"
        return Failure("judge_output_invalid", f"no METRIC line of {wanted!r}; {there}")
    if not names:
        return Failure("judge_output_invalid", "no METRIC line; the evaluator prints METRIC name=number")
    several = f"several metrics, {', '.join(names)}; say with primary which one counts"
    return Failure("judge_output_invalid", several)


def _said(what: str, end: CommandEnd) -> str:
    said = end.errors.decode(errors="replace").strip()[-_SHOWN:]
    return f"{what} exited with code {end.code}" + (f": {said}" if said else "")
