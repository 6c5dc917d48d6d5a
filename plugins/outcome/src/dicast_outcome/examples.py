"""The source of labeled steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import attrs

from dicast import DataError, Due, Failure, InputPath, Problem, ReadCounts, Subject, Within, identifier
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.scan import Scan

from .step import KEYS, Step

_SCORE = "outcome_score"


@attrs.frozen
class LabelFile:
    """Labeled steps from a file of JSON lines that ``outcome/labels`` wrote. Each step becomes a subject to score again.

    A line is an object with ``step_utility`` (from -1 to 1) or ``step_utility_norm`` (from 0 to 1), ``verification_delta`` or
    ``tests_before`` and ``tests_after``, ``was_repeated`` and ``params_valid``. They become the subject's output, together with
    ``outcome_score``. ``id`` (the line number by default), ``session_id`` and ``input`` become fields of the subject, and all other keys
    its context. A line with incomplete, invalid or contradictory labels is refused before any judgment. A text with
    a lone surrogate makes its step a failed record (``source_error``).

    :param path: the file; gzip is recognized, ``-`` is standard input.
    :param kind: the subject kind of the steps.
    :param max_line_bytes: the maximum length of a line in bytes; 64 MiB by default.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    name = "labels"

    path: InputPath
    kind: str = "tool_cycle"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds of the source."""
        return (self.kind,)

    open, check, subjects = open_source, check_source, each_subject

    @contextmanager
    def reading(self) -> Iterator[Examples]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path) as file:
            yield Examples(file, self.kind, self.max_line_bytes)


@attrs.define
class Examples:
    """An opened file of labeled steps; *total* is their number after :meth:`check`."""

    file: InputFile
    kind: str
    max_line_bytes: int
    total: int | None = None
    _records: int = 0
    _failed: int = 0

    def check(self) -> str:
        """Read the whole file and return the SHA-256 of its data.

        :raises DataError: if lines are invalid, or there are no steps.
        """
        with InputCheck(self.file) as check:
            steps = 0
            for line, row in self.file.objects(self.max_line_bytes, check, {}):
                steps += 1
                try:
                    check.add_id(_subject(self.kind, line, row).id, line)
                except DataError as error:
                    self.file.fault(error, line, check)
            self.total = steps
            return check.finish(steps)

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the steps in the order of the file.

        :raises DataError: at the first bad line.
        """
        self._records = self._failed = 0
        failures: dict[int, str] = {}
        for line, row in self.file.objects(self.max_line_bytes, None, failures):
            try:
                subject = _subject(self.kind, line, row)
            except DataError as error:
                self.file.fault(error, line, None)
                continue
            subject = attrs.evolve(subject, place=f"{self.file.label}:{line}")
            self._records += 1
            if line in failures:
                self._failed += 1
                yield Due(subject, failure=Failure("source_error", failures.pop(line)))
            else:
                yield subject

    def read_counts(self) -> ReadCounts:
        """Return the number of steps in the newest pass, and of failed ones among them."""
        return ReadCounts(self._records, failed=self._failed)


def _subject(kind: str, line: int, row: dict[str, Any]) -> Subject:
    """Return the step of *row*, whose keys are removed.

    :raises DataError: (without file and line) with every problem of the step.
    """
    Step.read(row)
    _check_score(row.get(_SCORE))
    name, session, value = row.pop("id", line), row.pop("session_id", None), row.pop("input", None)
    output = {key: row.pop(key) for key in (*KEYS, _SCORE) if key in row}
    return Subject(
        kind,
        identifier(name),
        value,
        output,
        context=row,
        session_id=None if session in (None, "") else identifier(session, "session_id"),
    )


def _check_score(value: object) -> None:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1):
        return
    raise DataError(Problem(f"{_SCORE} is not a number from 0 to 1", path=_SCORE, value=value))
