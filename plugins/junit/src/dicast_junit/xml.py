"""The sink that writes a run as JUnit XML: a suite for each label, a case for each subject."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dicast import Event, RunContext
from dicast.reporting import ALL_METRICS, JudgedSubject, OutcomeReader, not_started
from dicast.toolkit.atomic_file import AtomicFile, output_path

from .cases import Counts, case, skip_results
from .spool import Spool
from .suites import root, run_suite, suite

ENDS = ("run.completed", "run.stopped")
"""The events that carry the run's document."""


@attrs.frozen
class Xml:
    r"""The run as JUnit XML: a suite for each label (all metrics together, each metric, each judge, each criterion), a case for each subject.

    A file with one metric has this metric's suite alone. The suite ``run`` has the case ``gate``, and an error if the run did not end in order.

    A subject whose score is below the label's ``pass_at``, or that does not pass a criterion by its flag, is a ``failure`` with its
    reason. A subject without a score is an ``error`` with its kind. If the gate passed, both are ``skipped`` with a message that starts with
    ``not passed:`` or ``not judged:``, so that the report is no worse than the exit code. A subject that was not judged is ``skipped``. The
    ``properties`` have numbers with all their digits: of a case ``score``, ``pass_at``, ``basis``,
    ``cost_usd``; of a suite the run's id, gate and cost, and the label's mean and pass rate. A character that XML cannot hold is written
    as an escape (``\u0000``). The file appears under its name when the run ends, also when the run is interrupted.

    :param path: the file to write. Missing folders are made.
    :param labels: the labels that have a suite; by default all of the run.
    :param content: write the judged texts as each case's ``system-out``.
    :param base_path: a folder that must contain *path*, links resolved; any folder by default.
    """

    name = "xml"
    wants = (*OutcomeReader.wants, *ENDS)
    rewrites = True

    path: Path = attrs.field(converter=Path)
    labels: tuple[str, ...] = attrs.field(default=(), converter=tuple)
    content: bool = False
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @property
    def label_options(self) -> Mapping[str, Sequence[str]]:
        """The labels that have a suite, where only some do."""
        return {"labels": self.labels}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[XmlFile]:
        """Make the file's folder for *run*; paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written, or lies outside *base_path*.
        """
        place = output_path(run.base, self.path, self.base_path)
        file = partial(AtomicFile, place, run=run.run_id)
        file().discard()
        with ExitStack() as stack:
            yield XmlFile(self, file, lambda: stack.enter_context(Spool(place.resolve().parent)))


@attrs.frozen
class _Suite:
    """The cases of one label so far."""

    cases: Spool
    counts: Counts = attrs.field(factory=Counts)


class XmlFile:
    """The suites so far, and the file they are going to be."""

    def __init__(self, options: Xml, file: Callable[[], AtomicFile], spool: Callable[[], Spool]) -> None:
        self._options, self._file, self._spool = options, file, spool
        self._reader = OutcomeReader()
        self._suites: dict[str, _Suite] = {}
        self._start_time = ""
        self._done: Mapping[str, Any] | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Take *events*; return how many subjects are finished with them."""
        finished = self._reader.take(events)
        if not self._start_time and self._reader.started is not None:
            self._start_time = events[0].time
        payloads = [event.payload for event in events if event.type in ENDS]
        if payloads:
            finished += self._reader.end()
            self._done = payloads[-1]
        for label in self._labels():  # a criterion is known once a record names it
            if label not in self._suites:
                self._suites[label] = _Suite(self._spool())
        for subject in finished:
            self._add(subject)
        return len(finished)

    def close(self) -> int:
        """Write the file. A run that never ended leaves none; may be repeated after an error."""
        if self._done is not None:
            with self._file() as file:
                for part in self._parts(self._done):
                    file.write(part)
                file.commit()
            self._done = None
        return 0

    def _labels(self) -> list[str]:
        """Return the labels that have a suite: without all metrics together if the only metric has a suite with the same cases."""
        labels = [label for label in self._reader.labels if label in self._options.labels or not self._options.labels]
        return [label for label in labels if label != ALL_METRICS or self._reader.only_metric not in labels]

    def _add(self, subject: JudgedSubject) -> None:
        group = f"{(self._reader.started or {}).get('name')}.{subject.kind}"
        for label, outcome in subject.outcomes.items():
            if label in self._suites:
                line, counts = case(subject, outcome, group, content=self._options.content)
                self._suites[label].cases.add(line)
                self._suites[label].counts.add(counts)

    def _parts(self, done: Mapping[str, Any]) -> Iterator[bytes]:
        about_run, total = run_suite(done, not_started(self._reader.started or {}, done))
        has_passed = done["gate"] is not None and done["gate"]["passed"] is True
        counts = {label: suite_.counts for label, suite_ in self._suites.items()}
        if has_passed:
            counts = {label: count.with_results_skipped() for label, count in counts.items()}
        for count in counts.values():
            total.add(count)
        begin, end = root(done, total)
        yield begin
        yield about_run
        for label, suite_ in self._suites.items():
            head, tail = suite(label, done, counts[label], self._start_time)
            yield head
            yield from skip_results(suite_.cases.parts()) if has_passed else suite_.cases.parts()
            yield tail
        yield end
