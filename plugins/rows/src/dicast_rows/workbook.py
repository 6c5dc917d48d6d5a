"""The source ``rows/xlsx``: the rows of a sheet of an Excel workbook."""

from __future__ import annotations

import importlib.util
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, InputPath, Problem, nearest
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.files import open_file
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.installing import how_to_install
from dicast.toolkit.printable import one_line
from dicast.toolkit.scan import Scan

from .cells import BadCell, Cell, cells_of, column_letter, text_of
from .fields import Fields, check_fields, named_paths, paths_of
from .rows import Failures, Items, Numbered, Rows, names
from .sheet_parts import BadSheet, check_sizes, has_values
from .table import header_faults
from .unknown import Marker, Unknown
from .unpacking import unpacked

_OLD = b"\xd0\xcf\x11\xe0"
_PACKED = b"PK\x03\x04"
_FROM_BROKEN_FILES = (
    LookupError, ValueError, SyntaxError, TypeError, AttributeError, OverflowError, EOFError, zlib.error, NotImplementedError, RuntimeError,
)  # fmt: skip
"""Exceptions of openpyxl and zipfile for a broken workbook, in addition to their own exception classes."""


@attrs.frozen
class Xlsx:
    """Rows from a sheet of an Excel workbook (``.xlsx``, ``.xlsm``): each row becomes a subject. It needs openpyxl, of the extra ``xlsx``.

    Numbers and truth values stay so, numbers that are stored as text are texts. Dates and times become texts in ISO 8601, durations
    ``H:MM:SS``. A formula has the value that was stored with it; one without is an error. Each cell of a merged range has the range's
    value. An empty cell is null. Blank rows are passed over. An error value (``#N/A``) in a column that ``fields`` uses is an error with
    the cell's name; elsewhere it stays as text. Hidden rows and columns are read like the others. Rows or cells that are out of order or beyond the size of a
    sheet are an error, and so are merged ranges of more than 1,000,000 cells and parts that unpack to more than 200 times their size.

    :param path: the file; gzip is recognized, ``-`` is standard input.
    :param sheet: the sheet's name, or its number from 1. May be left out where only one sheet has values.
    :param fields: which column holds which part of a row, as for ``rows/csv``. A column given here must be in the header. An ``id`` may be a template that makes it of several columns, ``"{{ question }}-{{ model }}"``;
        ``{{ line }}`` in it is the row's number. Without an
        ``id`` a row is named by its number in the sheet.
    :param header: whether the first row that is not blank has the columns' names. ``false`` names the columns by their letters ``A``,
        ``B`` and so on, and a list gives them names.
    :param kind: the subject kind of the rows.
    :param strip_reasoning: leave each ``<think>…</think>`` out of an output that is a text. The column keeps it under its own name.
    :param unknown: ``error`` refuses an error value (``#N/A``) in a column that ``fields`` uses; ``mark`` keeps it as text, which the run counts.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    sheet: str | int | None = None
    fields: Fields = attrs.field(factory=dict)
    header: bool | tuple[str, ...] = True
    kind: str = "row"
    unknown: Unknown = attrs.field(default="error", metadata={"later": True})
    strip_reasoning: bool = attrs.field(default=False, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)
        if importlib.util.find_spec("openpyxl") is None:
            raise ConfigError(f"rows/xlsx needs openpyxl, which is not installed: {how_to_install('xlsx')}")
        if not isinstance(self.header, bool) and (wrong := [*header_faults(self.header)]):
            raise ConfigError(attrs.evolve(problem, path="header") for problem in wrong)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path) as file, ExitStack() as stack:
            items = Items(file, "row", Marker.of(self.unknown))
            sheet = _Sheet(file, self, items, stack)
            yield items.rows(self, sheet.rows)


@attrs.define
class _Sheet:
    """The reader of one sheet; problems of a row go to *items*. *plain* is the file without gzip."""

    file: InputFile
    options: Xlsx
    items: Items
    stack: ExitStack
    plain: Path | None = None

    def rows(self, check: InputCheck | None, _failures: Failures) -> Numbered:
        """Yield each row with its number in the sheet; faults go to *check*, or are raised."""
        if self.plain is None or check is not None:
            self.plain = unpacked(self.file, lambda what: self.items.fault(what, 0, check), self.stack, check)
        with open_file(self.plain) as file:
            first = file.read(len(_PACKED))
        if first != _PACKED:
            why = "is encrypted or in the old .xls format" if first == _OLD else "is not a workbook"
            self.items.fault(f"the file {why}; save it as .xlsx", 0, check)
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # openpyxl's, about formats and validations, which are no values
            yield from self._rows(self.plain, check)

    def _rows(self, plain: Path, check: InputCheck | None) -> Numbered:
        from zipfile import BadZipFile, ZipFile

        from openpyxl import load_workbook  # 100 ms, which only this source needs
        from openpyxl.utils.exceptions import InvalidFileException

        try:
            with open_file(plain) as file:
                with ZipFile(file) as archive:
                    check_sizes(archive.infolist())
                book = load_workbook(file, read_only=True, data_only=True)
                name = self._name(book, check)
                if name is None:
                    return
                formulas = load_workbook(file, read_only=True)[name] if check is not None else None
                yield from self._records(cells_of(book[name], formulas), check)
        except BadSheet as error:
            self.items.fault(f"the sheet cannot be read: {error}", 0, check)
        except (BadZipFile, InvalidFileException, *_FROM_BROKEN_FILES) as error:
            self.items.fault(f"the file cannot be read as a workbook: {one_line(str(error))}", 0, check)

    def _name(self, book: Any, check: InputCheck | None) -> str | None:
        """Return the name of the sheet to read; None, and a fault, if it is ambiguous or missing."""
        title, titles = self.options.sheet, [sheet.title for sheet in book.worksheets]
        if title is None:
            full = titles if len(titles) == 1 else [name for name in titles if has_values(book[name])]
            if len(full) == 1:
                return str(full[0])
            wrong = (
                f"sheets {names(full)} have values; write sheet: NAME (dicast init --sheet NAME)"
                if full
                else "no sheet has values"
            )
            self.items.fault(Problem(wrong, path="sheet"), 0, check)
            return None
        if isinstance(title, int) and 1 <= title <= len(titles):
            return str(titles[title - 1])
        if title in titles:
            return str(title)
        wrong = f"there is no sheet {title!r}; the workbook has {names(titles)}"
        self.items.fault(Problem(wrong, path="sheet", value=title, hint=nearest(str(title), titles)), 0, check)
        return None

    def _records(self, rows: Iterator[tuple[int, Mapping[int, Cell]]], check: InputCheck | None) -> Numbered:
        header: dict[int, str] | None = None
        for number, cells in rows:
            if not cells:
                continue
            if header is None:
                header = self._header(cells)
                if self._refuse([*header.values()], number, check):
                    return
                if self.options.header is True:
                    continue
            if (row := self._row(number, cells, header, check)) is not None:
                yield number, row

    def _header(self, cells: Mapping[int, Cell]) -> dict[int, str]:
        """Return the columns' names by their places; *cells* is the first row."""
        option = self.options.header
        if option is True:
            return {place: text_of(cell.value).strip() for place, cell in sorted(cells.items())}
        if option is False:
            return {place: column_letter(place) for place in range(1, max(cells) + 1)}
        return dict(enumerate(option, 1))

    def _refuse(self, header: Sequence[str], number: int, check: InputCheck | None) -> bool:
        problems = [*header_faults(header)] if self.options.header is True else []
        problems += [
            Problem(
                f"the header has no {path!r}; it has {names([*header])}",
                path=f"fields.{field}",
                hint=nearest(path, header),
            )
            for field, path in named_paths(self.options.fields)
            if path not in header
        ]
        for problem in problems:
            self.items.fault(problem, number, check)
        return bool(problems)

    def _row(
        self, number: int, cells: Mapping[int, Cell], header: Mapping[int, str], check: InputCheck | None
    ) -> dict[str, Any] | None:
        """Return the row's columns; report a fault and return None if a cell cannot be read."""
        paths = paths_of(self.options.fields)
        used = {paths.get(field, field) for field in ("id", "input", "output", "reference", "session_id")}
        wrong = [
            f"cell {column_letter(place)}{number} has a value, and column {column_letter(place)} has no name in the header"
            for place in sorted(cells.keys() - header.keys())
        ]
        row: dict[str, Any] = {}
        for place, name in header.items():
            cell = cells.get(place)
            try:
                row[name] = None if cell is None else self._checked(cell, is_used=name in used)
            except BadCell as error:
                wrong.append(f"cell {column_letter(place)}{number} {error}")
        for message in wrong:
            self.items.fault(message, number, check)
        return None if wrong else row

    def _checked(self, cell: Cell, *, is_used: bool) -> Any:
        """Return the value of *cell*. With ``unknown: mark`` an error value is returned as text, and counted."""
        if cell.is_error and is_used and self.items.marker.is_on:
            self.items.marker.mark(str(cell.value), str(cell.value))
            return cell.value
        return cell.checked(is_used)
