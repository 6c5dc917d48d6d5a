"""The source ``rows/csv``: values between delimiters."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path

import attrs

from dicast import ConfigError, InputPath, Problem, Within, nearest
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.scan import Scan
from dicast.toolkit.surrogates import escaped

from .encodings import UTF_8, known_encoding, texts
from .fields import Fields, check_fields, named_paths
from .rows import Failures, Numbered, Rows, names
from .unknown import Unknown

_TABS = ("\t", "\\t", "tab")
_RETURN = "a carriage return ends no line; save the file with LF or CRLF line ends"
_LIKELY = ";\t|,"
"""Delimiters to propose for a file that has another delimiter than expected."""


@attrs.frozen
class Csv:
    r"""Rows from a file of values between commas, tabs or other delimiters: each record becomes a subject, every value a string.

    :param path: the file. gzip is recognized; ``-`` is standard input.
    :param fields: the column of each part of a row: keys ``id``, ``input``, ``output``, ``reference``, ``session_id``,
        ``context``, values names of columns; by default the column of that name. The header must have a column that is named here.
        An ``id`` may be a template over several columns, ``"{{ question }}-{{ model }}"``;
        ``{{ line }}`` in it is the row's number. Without an ``id`` a row is named by the number of its first line, blank lines counted. All other columns are in
        the context. A further key, ``error``, names a column of errors: a row with an error there is a failed record.
        ``{column: gold, json: true}`` in place of a name reads the column's texts as JSON.
    :param kind: the subject kind of the rows.
    :param strip_reasoning: leave each ``<think>…</think>`` out of an output that is a text. The column keeps it under its name.
    :param max_line_bytes: the longest line and the longest value that are read, in bytes (in characters, for an encoding such as
        UTF-16); 64 MiB by default.
    :param delimiter: the character between two values; ``tab`` or ``\t`` is the tab. By default the tab in a ``.tsv`` file, else the
        comma.
    :param encoding: the file's encoding, by a name that Python knows (``cp1252``, ``utf-16``, ``shift_jis``); UTF-8 by default, with
        or without a byte order mark. Bytes that are not in it are an error with their place.
    :param header: whether the first record has the columns' names. For a file without names ``false`` names the columns ``column_1``,
        ``column_2`` and so on, and a list gives them names.
    :param unknown: the treatment of unknown values. A table has none, because every cell is text; for pipelines that read any kind of file.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    fields: Fields = attrs.field(factory=dict)
    kind: str = "row"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    delimiter: str | None = attrs.field(default=None, metadata={"later": True})
    encoding: str = attrs.field(default=UTF_8, metadata={"later": True})
    header: bool | tuple[str, ...] = attrs.field(default=True, metadata={"later": True})
    unknown: Unknown = attrs.field(default="error", metadata={"later": True})
    strip_reasoning: bool = attrs.field(default=False, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)
        known_encoding(self.encoding)
        if self.delimiter is not None and not _is_delimiter(self.delimiter):
            what = (
                f"{self.delimiter!r} is not a delimiter; write one character that is not a quote or a line end, or tab"
            )
            raise ConfigError(Problem(what, path="delimiter", value=self.delimiter))
        if not isinstance(self.header, bool) and (wrong := [*header_faults(self.header)]):
            raise ConfigError(attrs.evolve(problem, path="header") for problem in wrong)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path) as file:
            delimiter, sure = _delimiter(self.delimiter, self.path), self.delimiter is not None
            table = _Table(
                file,
                tuple(named_paths(self.fields)),
                self.max_line_bytes,
                delimiter,
                sure,
                known_encoding(self.encoding),
                self.header,
            )
            yield Rows(file, table.rows, self.kind, self.fields, file.fault, strip_reasoning=self.strip_reasoning)


@attrs.frozen
class _Table:
    """Reader of a file of values."""

    file: InputFile
    fields: Sequence[tuple[str, str]]
    max_line_bytes: int
    delimiter: str
    sure: bool  # whether the user has set the delimiter
    encoding: str
    header: bool | Sequence[str]

    def rows(self, check: InputCheck | None, failures: Failures) -> Numbered:
        """Yield each record with the number of the line it starts on; faults go to *check*, or are raised."""
        header: list[str] | None = None
        for line, record in self._records(check):
            if header is None:
                header = self._names(record)
                if self._refuse(header, record, line, check):
                    return
                if self.header is True:
                    continue
            if len(record) == len(header):
                row = dict(zip(header, record, strict=True))
                if self.encoding != UTF_8 and (broken := escaped(row)) is not None:  # which UTF-7 can spell
                    row, failures[line] = broken.value, broken.why
                yield line, row
            else:
                whose = "the header" if self.header is True else "the option header" if self.header else "the first"
                wrong = f"the record has {_count(record, 'value')}, {whose} has {_count(header, 'column')}"
                self.file.fault(f"{wrong}: {names(header)}", line, check)

    def _records(self, check: InputCheck | None) -> Iterator[tuple[int, list[str]]]:
        """Yield each record that is not blank, with its first line."""
        csv.field_size_limit(
            self.max_line_bytes
        )  # The module has one limit for the whole process, far lower by default.
        lines = texts(self.file, self.encoding, self.max_line_bytes, check)
        reader = csv.reader(lines, strict=True, delimiter=self.delimiter)
        while True:
            line = reader.line_num + 1
            try:
                record = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                why = _RETURN if "new-line character" in str(error) else error
                self.file.fault(f"the record is not CSV: {why}", line, check)
            else:
                if record:
                    yield line, record

    def _names(self, first: list[str]) -> list[str]:
        """Return the columns' names; *first* is the first record."""
        if self.header is True:
            return first
        return list(self.header) if self.header else [f"column_{number}" for number in range(1, len(first) + 1)]

    def _refuse(self, header: list[str], first: list[str], line: int, check: InputCheck | None) -> bool:
        """Report the faults of the header, and return True if there are any."""
        without = "; if the file has no header, write header: false" if self.header is True else ""
        problems = [
            attrs.evolve(problem, message=f"{problem.message}{self._other(first) or without}")
            for problem in header_faults(header)
        ]
        problems += [
            Problem(
                f"the header has no {path!r}; it has {names(header)}{self._other(first)}",
                path=f"fields.{name}",
                hint=nearest(path, header),
            )
            for name, path in self.fields
            if path not in header
        ]
        if not problems and self.header is True and (other := self._other(first)):
            problems.append(Problem(f"the header has one column, {first[0]!r}{other}", value=first[0]))
        if self.header is not True and first == header:
            problems.append(Problem("the first record has the names that the option header gives; leave header out"))
        for problem in problems:
            self.file.fault(problem, line, check)
        return bool(problems)

    def _other(self, first: list[str]) -> str:
        """Return advice for a file whose *first* record is one value with another usual delimiter in it."""
        delimiter = next((mark for mark in _LIKELY if mark in first[0]), None)
        if len(first) > 1 or self.sure or delimiter is None:
            return ""
        spelling = "tab" if delimiter == "\t" else f"'{delimiter}'"
        return f"; if it is delimited by {spelling}, write delimiter: {spelling}"


def _count(values: Sequence[str], what: str) -> str:
    return f"{len(values)} {what}{'' if len(values) == 1 else 's'}"


def _is_delimiter(text: str) -> bool:
    return text in _TABS or (len(text) == 1 and text not in '"\r\n\0')


def _delimiter(option: str | None, path: Path) -> str:
    if option is None:
        return "\t" if ".tsv" in path.suffixes[-2:] else ","
    return "\t" if option in _TABS else option


def header_faults(header: Sequence[str]) -> Iterator[Problem]:
    """Yield the problems of the columns' names: repeated, empty, or none at all."""
    for name, times in Counter(header).items():
        if times > 1 or not name:
            wrong = f"the header names {name!r} twice" if name else "the header has a column without a name"
            yield Problem(wrong, value=name)
    if not header:
        yield Problem("the header names no columns; leave it out, or let it be true or false")
