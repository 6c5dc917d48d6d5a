"""The sources ``rows/jsonl`` and ``rows/csv``, and how each reads a file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from math import inf
from typing import Any, Literal

import attrs

from dicast import (
    MAX_LINE_BYTES,
    DataError,
    InputCheck,
    InputFile,
    InputPath,
    Problem,
    RunContext,
    Subject,
    Within,
    dataset_records,
    nearest,
)

from .fields import Take, check_fields, example_taker, taker

KEPT, MAX_RECORDS = 100, 10_000
"""How many bad lines are named, also of a dataset."""

_ID, _OUTPUT = 1, 3
"""Where these stand among the parts of a subject."""

_NAMED = 20
"""How many columns are named."""


@attrs.frozen
class Jsonl:
    """Rows from a file of JSON lines: one object a line, each becomes a subject.

    :param path: the file; gzip is recognised, ``-`` is standard input.
    :param fields: which column holds which part of a row: keys ``id``, ``input``, ``output``, ``reference``, ``session_id``,
        ``context``, values dotted paths into the row (``meta.question``); a column of that name by default. A path given here
        must be in every row. Without an ``id`` a row is named by its line number, blank lines counted. All other columns land
        in the context, after those of an object in ``context``.
    :param kind: the subject kind of the rows.
    :param max_line_bytes: the longest line that is read, in bytes; 64 MiB by default.
    :param protocol: ``evaluator`` reads the file as a dataset of the evaluator protocol: at most 10,000 records, of which every
        bad line is named. A record may have any fields: rows are named by line numbers unless ``fields`` has an ``id``, and the
        context has the whole record as ``example``, which is what an evaluator is sent.
    """

    path: InputPath
    fields: Mapping[str, str] = attrs.field(factory=dict)
    kind: str = "row"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    protocol: Literal["evaluator"] | None = attrs.field(default=None, metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Rows]:
        """Give the live source, which can be read more than once whatever the path is."""
        with self._rows() as rows:
            yield rows

    def check(self) -> str:
        """Read all rows; see :meth:`Rows.check`."""
        with self._rows() as rows:
            return rows.check()

    def subjects(self) -> Iterator[Subject]:
        """Yield the rows; see :meth:`Rows.subjects`."""
        with self._rows() as rows:
            yield from rows.subjects()

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        with InputFile.opened(self.path) as file:
            dataset = self.protocol is not None
            yield Rows(
                file,
                example_taker(self.kind, self.fields) if dataset else taker(self.kind, self.fields),
                partial(dataset_records if dataset else InputFile.objects, file, self.max_line_bytes),
                self.kinds,
                self.fields.get("output", "output"),
                MAX_RECORDS if dataset else KEPT,
            )


@attrs.frozen
class Csv:
    """Rows from a CSV file with a header: each record becomes a subject, every value a string.

    :param path: the file; gzip is recognised, ``-`` is standard input.
    :param fields: which column holds which part of a row: keys ``id``, ``input``, ``output``, ``reference``, ``session_id``,
        ``context``, values names of columns; a column of that name by default. A column given here must be in the header.
        Without an ``id`` a row is named by the number of the line it starts on, blank lines counted. All other columns land in
        the context.
    :param kind: the subject kind of the rows.
    :param max_line_bytes: the longest line and the longest value that are read, in bytes; 64 MiB by default.
    """

    path: InputPath
    fields: Mapping[str, str] = attrs.field(factory=dict)
    kind: str = "row"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Rows]:
        """Give the live source, which can be read more than once whatever the path is."""
        with self._rows() as rows:
            yield rows

    def check(self) -> str:
        """Read all rows; see :meth:`Rows.check`."""
        with self._rows() as rows:
            return rows.check()

    def subjects(self) -> Iterator[Subject]:
        """Yield the rows; see :meth:`Rows.subjects`."""
        with self._rows() as rows:
            yield from rows.subjects()

    @contextmanager
    def _rows(self) -> Iterator[Rows]:
        with InputFile.opened(self.path) as file:
            yield Rows(
                file,
                taker(self.kind, self.fields),
                partial(_records, file, self.max_line_bytes, self.fields),
                self.kinds,
                self.fields.get("output", "output"),
            )


@attrs.define
class Rows:
    """An opened source of rows: *read* yields line numbers and rows, *take* the parts of their subjects.

    Of the bad lines *kept* are named. After a check *total* is how many there are, and *no_output* says why none of them has an output; *column* is where it is looked
    for.
    """

    file: InputFile
    take: Take
    read: Callable[[InputCheck | None], Iterator[tuple[int, dict[str, Any]]]]
    kinds: tuple[str, ...]
    column: str = "output"
    kept: int = KEPT
    total: int | None = None
    no_output: Problem | None = None

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: naming the bad lines, or that there are no rows.
        """
        with InputCheck(self.file, self.kept) as check:
            rows, found = 0, False
            columns: list[str] = []
            for line, row in self.read(check):
                rows += 1
                columns = columns or list(row)
                try:
                    parts = self.take(line, row)
                except DataError as error:
                    self.file.fault(error, line, check)
                else:
                    check.add_id(parts[_ID], line)
                    found = found or parts[_OUTPUT] is not None
            self.total = rows
            self.no_output = None if found else _no_output(self.file.label, self.column, columns)
            return check.finish(rows)

    def subjects(self) -> Iterator[Subject]:
        """Yield the rows in the order of the file.

        :raises DataError: at the first bad line.
        """
        take = self.take
        for line, row in self.read(None):
            try:
                subject = Subject(*take(line, row))
            except DataError as error:
                self.file.fault(error, line, None)
            else:
                yield subject


def _no_output(label: str, column: str, columns: list[str]) -> Problem:
    """That no row has a value in the *column* of outputs, beside which there are these *columns*."""
    names = ", ".join(columns[:_NAMED]) + (", …" if len(columns) > _NAMED else "")
    lacks = f"{column!r} is null in all of them" if column in columns else f"none has {column!r}"
    step = "name the one with the outputs, fields: {output: COLUMN}, or add a task that makes them"
    return Problem(f"no row has an output: {lacks}; the columns are {names}: {step}", label, path="fields.output")


def _records(
    file: InputFile, max_line_bytes: int, fields: Mapping[str, str], check: InputCheck | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(max_line_bytes)  # The module has one limit for the whole process, far lower by default.
    reader = csv.reader(file.texts(max_line_bytes, check), strict=True)
    header: list[str] | None = None
    for line, record in _numbered(reader, file, check):
        if header is None:
            header = record
            if _refuse_header(header, fields, file, line, check):
                return
        elif len(record) == len(header):
            yield line, dict(zip(header, record, strict=True))
        else:
            file.fault(f"the record has {len(record)} values, the header has {len(header)} columns", line, check)


def _numbered(
    reader: Iterator[list[str]], file: InputFile, check: InputCheck | None
) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the line it starts on."""
    while True:
        line = reader.line_num + 1  # type: ignore[attr-defined]  # csv.reader has it, its type has no public name
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            file.fault(f"the record is not CSV: {error}", line, check)
        else:
            if record:
                yield line, record


def _refuse_header(
    header: list[str], fields: Mapping[str, str], file: InputFile, line: int, check: InputCheck | None
) -> bool:
    """Report what is wrong with the header, and say whether anything was."""
    problems = [
        Problem(f"the header names {name!r} twice" if name else "the header has a column without a name", value=name)
        for name, times in Counter(header).items()
        if times > 1 or not name
    ]
    problems += [
        Problem(
            f"the header has no {path!r}; it has {', '.join(header)}", path=f"fields.{name}", hint=nearest(path, header)
        )
        for name, path in fields.items()
        if path not in header
    ]
    for problem in problems:
        file.fault(problem, line, check)
    return bool(problems)
