"""An opened source of rows, and the code that its components share."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from dicast import DataError, Due, Failure, Problem, ReadCounts, Subject, nearest
from dicast.toolkit.files import error_reason
from dicast.toolkit.input_file import InputCheck, InputFile

from .failed import WhyFailed, output_ending, why_failed
from .fields import (
    Fields,
    Parts,
    Take,
    blank_media,
    example_taker,
    json_failure,
    media_columns,
    media_in,
    paths_of,
    taker,
)
from .unknown import Marker

MAX_FAULTS = 100
"""The number of bad rows that are reported."""

Numbered = Iterator[tuple[int, dict[str, Any]]]
Failures = dict[int, str]
"""Reasons of failed records, by number. A reader adds the reason before it yields the row."""
Read = Callable[[InputCheck | None, Failures], Numbered]
Fault = Callable[[str | Problem | DataError, int, InputCheck | None], None]
"""Function that reports a problem of the row with a number to the check, or raises it without a check."""

_ID, _OUTPUT = 1, 3
"""The places of these parts among the parts of a subject."""

_NAMED = 20
"""Most columns in a message."""

_LONG = 80
"""Most characters of a name in a message."""

_CHUNK = 2**18

_USUAL: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "question", "prompt", "query", "instruction", "user", "request"),
    "output": (
        "output",
        "answer",
        "response",
        "completion",
        "prediction",
        "reply",
        "generated",
        "generation",
        "result",
    ),
    "reference": ("reference", "gold", "expected", "expected_output", "ground_truth", "target", "label", "ideal"),
}
"""Usual names of the columns of each part, the most likely name first."""


@attrs.define(eq=False)
class Rows:
    """An opened source of rows: *read* yields numbers and rows, and *fields* name the columns of the subjects' parts.

    Faults of a row go to *fault* with its number, which counts in *unit*. The first *max_faults* bad rows are reported. After a
    check *total* is the number of rows, and *no_output* has the problem if no row has an output. The records of a *dataset* are
    taken whole, and none counts as failed. *marked* counts the values that the reader marked by kind. With *strip_reasoning* the
    reasoning of a model is left out of the outputs.
    """

    file: InputFile
    read: Read
    kind: str
    fields: Fields
    fault: Fault
    unit: str = "line"
    max_faults: int = MAX_FAULTS
    dataset: bool = False
    marked: Counter[str] = attrs.field(factory=Counter)
    strip_reasoning: bool = False
    total: int | None = None
    no_output: Problem | None = None
    _records: int = 0
    _failed: int = 0
    _stripped: int = 0
    _blank: Counter[str] = attrs.field(factory=Counter)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: naming the bad rows, or if there are no rows.
        """
        with InputCheck(self.file, self.max_faults, self.unit) as check:
            rows, has_missing, has_output = 0, False, False
            columns: list[str] = []
            take, has_media = self._taker(columns), bool(media_columns(self.fields))
            for number, row in self.read(check, take.failures):
                rows += 1
                try:
                    parts, failure = take(number, row)
                except DataError as error:
                    self.fault(error, number, check)
                    has_missing = True
                    continue
                for content in media_in(parts, self.fields) if has_media else ():
                    check.digest.update(content.encode())
                check.add_id(parts[_ID], number)
                if failure is None:
                    is_there = parts[_OUTPUT] is not None
                    has_output, has_missing = has_output or is_there, has_missing or not is_there
            self.total = rows
            paths = paths_of(self.fields)
            self.no_output = _no_output(self.file.label, paths, columns) if has_missing and not has_output else None
            return check.finish(rows)

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the rows in the order of the file; a record that failed is due with its failure.

        :raises DataError: at the first bad row.
        """
        self._records = self._failed = self._stripped = 0
        self.marked.clear()
        self._blank.clear()
        take, output = self._taker([]), paths_of(self.fields).get("output", "output")
        has_media = bool(media_columns(self.fields))
        place = f"{self.file.label}:" if self.unit == "line" else f"{self.file.label}, {self.unit} "
        for number, row in self.read(None, take.failures):
            try:
                parts, failure = take(number, row)
            except DataError as error:
                self.fault(error, number, None)
                continue
            self._records += 1
            if self.strip_reasoning:
                parts = self._without_reasoning(parts)
            if has_media:
                self._blank.update(blank_media(parts, self.fields))
            subject = Subject.of_fields(*parts, 1.0, f"{place}{number}")
            if failure is None:
                ending = None if parts[_OUTPUT] is None else output_ending(row, output)
                yield subject if ending is None else Due(subject, finish_reason=ending)
            else:
                self._failed += 1
                yield Due(subject, failure=Failure("source_error", failure))

    def read_counts(self) -> ReadCounts:
        """Return the number of rows in the newest pass, of failed rows among them, and of marked values."""
        details = {"contents": {"stripped_reasoning": self._stripped}} if self._stripped else {}
        rows = f"{self._records:,} row{'s' * (self._records != 1)}"
        notes = tuple(f"{count:,} of {rows} without {name}" for name, count in sorted(self._blank.items()))
        return ReadCounts(self._records, dict(self.marked), failed=self._failed, details=details, notes=notes)

    def _without_reasoning(self, parts: Parts) -> Parts:
        """Return *parts* with the reasoning removed from the output; an output without reasoning is unchanged."""
        output = parts[_OUTPUT]
        if type(output) is not str or "<think>" not in output:
            return parts
        from dicast.toolkit.parts import split_reasoning, visible_text  # imported late: few outputs have reasoning

        text = visible_text(split_reasoning(output)) or ""
        self._stripped += text != output
        return (*parts[:_OUTPUT], text, *parts[_OUTPUT + 1 :])

    @property
    def _folder(self) -> Path | None:
        """The folder of the data file; None for standard input."""
        return None if self.file.label == "<stdin>" else Path(self.file.label).parent

    def _taker(self, columns: list[str]) -> _Taker:
        make_taker = example_taker if self.dataset else taker
        return _Taker(
            make_taker(self.kind, self.fields, folder=self._folder),
            taker(self.kind, self.fields, failed=True),
            None if self.dataset else why_failed(paths_of(self.fields)),
            json_failure(self.fields),
            columns,
        )


@attrs.define(eq=False)
class _Taker:
    """Takes rows apart: failed ones by *take_failed*, which *why* and *broken* recognize. The first row's names go to *columns*."""

    take: Take
    take_failed: Take
    why: WhyFailed | None
    broken: WhyFailed | None
    columns: list[str]
    failures: Failures = attrs.field(factory=dict)

    def __call__(self, number: int, row: dict[str, Any]) -> tuple[Parts, str | None]:
        """Return the parts of the row's subject, and the reason why the row failed, or None.

        :raises DataError: (without a file) for an invalid row.
        """
        if not self.columns:
            self.columns.extend(row)
        failure = self.failures.pop(number, None) if self.failures else None
        if failure is None and self.why is not None:
            failure = self.why(row) or (self.broken and self.broken(row))
        return (self.take if failure is None else self.take_failed)(number, row), failure


class ItemSource(Protocol):
    """Options of a source whose rows are items of its file."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def fields(self) -> Fields: ...  # noqa: D102
    @property
    def strip_reasoning(self) -> bool: ...  # noqa: D102


@attrs.define(eq=False)
class Items:
    """Reports the faults of rows that are numbered *unit*s of a *file*; *line* is the first line of the current row."""

    file: InputFile
    unit: str
    marker: Marker = attrs.field(factory=lambda: Marker(is_on=False))
    line: int | None = None

    def rows(self, source: ItemSource, read: Read) -> Rows:
        """Return the rows that *read* yields, under the options of *source*."""
        return Rows(
            self.file,
            read,
            source.kind,
            source.fields,
            self.fault,
            self.unit,
            marked=self.marker.counts,
            strip_reasoning=source.strip_reasoning,
        )

    def fault(self, what: str | Problem | DataError, number: int, check: InputCheck | None) -> None:
        """Report a problem of the unit *number*, or of the whole file if *number* is 0. Without *check* raise it."""
        problems = what.problems if isinstance(what, DataError) else (Problem(what) if isinstance(what, str) else what,)
        for problem in problems:
            placed = attrs.evolve(
                problem,
                message=f"{self.unit} {number}: {problem.message}" if number else problem.message,
                file=self.file.label,
                line=problem.line or self.line,
            )
            if check is None:
                raise DataError(placed)
            check.report(placed)

    def undecodable(self, what: Problem, number: int, check: InputCheck | None) -> None:
        """Report bytes that are not in the file's encoding: once for the whole file, with the number of such units."""
        if check is None:
            self.fault(what, number, check)
        else:
            check.report_undecodable(attrs.evolve(what, file=self.file.label, line=what.line or self.line))


def chunks(file: InputFile, fault: Callable[[str], None], check: InputCheck | None) -> Iterator[bytes]:
    """Yield the bytes of *file* in pieces, which *check* digests. If the file cannot be read to its end, report it to *fault*."""
    with file.binary() as stream:
        while True:
            try:
                chunk = stream.read(_CHUNK)
            except (EOFError, OSError, zlib.error) as error:
                fault(f"the data cannot be read to its end: {error_reason(error)}")
                return
            if not chunk:
                return
            if check is not None:
                check.digest.update(chunk)
            yield chunk


def names(columns: list[str]) -> str:
    """Return the *columns* for a message: the first of many columns, and the beginning of a long name."""
    shortened = [name if len(name) <= _LONG else f"{name[:_LONG]}…" for name in columns[:_NAMED]]
    return ", ".join(shortened) + (", …" if len(columns) > _NAMED else "")


def _no_output(label: str, fields: Mapping[str, str], columns: list[str]) -> Problem:
    """Return the problem that no row has a value in the column of outputs; the file has these *columns*."""
    column = fields.get("output", "output")
    lacks = f"{column!r} is null in all of them" if column in columns else f"none has {column!r}"
    step = f"map them: fields: {_mapped(fields, columns)}, or add a task that makes the outputs"
    wrong = f"no row has an output: {lacks}; the file has the columns {names(columns)}; {step}"
    return Problem(wrong, label, path="fields.output", hint=None if column in columns else nearest(column, columns))


def _mapped(fields: Mapping[str, str], columns: list[str]) -> str:
    """Return a proposal for the option ``fields``: its entries, and columns with usual names for the missing parts."""
    lower = {name.lower(): name for name in reversed(columns)}
    free = {name: column for name, column in lower.items() if column not in fields.values()}
    meant = {**fields, "output": "COLUMN"}
    for part, usual in _USUAL.items():
        if part not in fields and part not in columns:
            column = next((free.pop(name) for name in usual if name in free), None)
            meant |= {} if column is None else {part: column}
    order = sorted(meant, key=lambda part: (part not in fields, list(_USUAL).index(part) if part in _USUAL else -1))
    return "{" + ", ".join(f"{part}: {meant[part]}" for part in order) + "}"
