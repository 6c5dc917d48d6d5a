"""The source ``workload/runs``: finished runs of the workloads of a suite."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from math import inf
from pathlib import Path

import attrs

from dicast import DataError, Due, Failure, InputPath, ReadCounts, RunContext, Within
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile

from .record import Reader
from .suite import Suite


@attrs.frozen
class Runs:
    """Finished runs of workloads, one JSON object a line, each judged by its workload's own ``evaluate:`` block.

    A run has ``workload`` and ``run``, a unique id, or a number that is unique for the workload and the model. It may have
    ``model``, ``seed``, ``output`` (or ``final_response_text``), ``per_turn_scores``, ``turns``, ``cost_usd``,
    ``baseline_cost_usd``, ``llm_calls``, ``hard_failures``, ``delegate_calls``, ``provenance``. These are compared with the expectations in its workload's
    ``expect:``. A text with a lone surrogate makes its run a failed record (``source_error``).

    :param path: the file of the runs, JSON lines. gzip is recognized; ``-`` is standard input.
    :param workloads: the suite: a folder, with the YAML files in it and the ``workload.yaml`` of its folders, or a list of
        files and folders. Without it the runs are judged by the judge's own options, and no assertions are checked.
    :param max_line_bytes: the longest line that is read, in bytes; 64 MiB by default.
    """

    kinds = ("workload",)

    path: InputPath
    workloads: Path | tuple[Path, ...] = ()
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    _suite: Suite = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        paths = self.workloads if isinstance(self.workloads, tuple) else (self.workloads,)
        object.__setattr__(self, "_suite", Suite.read(paths))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Finished]:
        """Yield the live source. It can be read more than once, for any path."""
        with self._finished() as finished:
            yield finished

    def check(self) -> str:
        """Read all runs; see :meth:`Finished.check`."""
        with self._finished() as finished:
            return finished.check()

    def subjects(self) -> Iterator[Due]:
        """Yield the runs; see :meth:`Finished.subjects`."""
        with self._finished() as finished:
            yield from finished.subjects()

    @contextmanager
    def _finished(self) -> Iterator[Finished]:
        reader = Reader(self._suite.workloads or None)
        with InputFile.opened(self.path) as file:
            yield Finished(file, reader, self._suite.digest, self.max_line_bytes)


@attrs.define
class Finished:
    """An opened file of runs; *total* is how many there are, *suite* the digest of the workloads' files."""

    file: InputFile
    reader: Reader
    suite: str
    max_line_bytes: int
    kinds: tuple[str, ...] = ("workload",)
    total: int | None = None
    _records: int = 0
    _failed: int = 0

    def check(self) -> str:
        """Read everything once and return a digest of the runs and of the suite.

        :raises DataError: naming the bad lines, or that there are no runs.
        """
        with InputCheck(self.file) as check:
            count = 0
            for line, record in self.file.objects(self.max_line_bytes, check, {}):
                count += 1
                try:
                    check.add_id(self.reader.subject(record).id, line, "run")
                except DataError as error:
                    self.file.fault(error, line, check)
            self.total = count
            return hashlib.sha256(f"{check.finish(count)} {self.suite}".encode()).hexdigest()

    def subjects(self) -> Iterator[Due]:
        """Yield the runs in the order of the file, due as a benchmark.

        :raises DataError: at the first bad line.
        """
        self._records = self._failed = 0
        failures: dict[int, str] = {}
        for line, record in self.file.objects(self.max_line_bytes, None, failures):
            try:
                subject = self.reader.subject(record)
            except DataError as error:
                self.file.fault(error, line, None)
                continue
            subject = attrs.evolve(subject, place=f"{self.file.label}:{line}")
            why = failures.pop(line, None)
            self._records += 1
            self._failed += why is not None
            yield Due(subject, "benchmark", failure=None if why is None else Failure("source_error", why))

    def read_counts(self) -> ReadCounts:
        """Return the number of runs in the newest pass, and of failed ones among them."""
        return ReadCounts(self._records, failed=self._failed)
