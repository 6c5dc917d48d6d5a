"""An opened source of rows, and what the components that open one share."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any, Protocol

import attrs

from dicast import DataError, Due, Failure, InputCheck, InputFile, Problem, RunContext, Subject, nearest

from .fields import ERROR, Take, failure_in

KEPT = 100
"""How many bad rows are named."""

Numbered = Iterator[tuple[int, dict[str, Any]]]
Read = Callable[[InputCheck | None], Numbered]
Fault = Callable[[str | Problem | DataError, int, InputCheck | None], None]
"""Reports what is wrong with the row of a number, or raises it where there is no check."""

_ID, _OUTPUT = 1, 3
"""Where these stand among the parts of a subject."""

_NAMED = 20
"""How many columns are named."""

_LONG = 80
"""How many characters of a name are shown."""

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
"""Names that such columns often have, the likeliest first."""


@attrs.define
class Rows:
    """An opened source of rows: *read* yields numbers and rows, *take* the parts of their subjects.

    What is wrong with a row goes to *fault* with its number, which counts in *unit*. Of the bad rows *kept* are named. After a
    check *total* is how many there are, and *no_output* says why none of them has an output, which *fields* may name the
    column of.
    """

    file: InputFile
    take: Take
    read: Read
    kinds: tuple[str, ...]
    fields: Mapping[str, str]
    fault: Fault
    unit: str = "line"
    kept: int = KEPT
    total: int | None = None
    no_output: Problem | None = None

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: naming the bad rows, or that there are none.
        """
        with InputCheck(self.file, self.kept, self.unit) as check:
            rows, found = 0, False
            columns: list[str] = []
            for number, row in self.read(check):
                rows += 1
                columns = columns or list(row)
                failure = self.failure(row)
                try:
                    parts = self.take(number, row)
                except DataError as error:
                    self.fault(error, number, check)
                else:
                    check.add_id(parts[_ID], number)
                    found = found or parts[_OUTPUT] is not None or failure is not None
            self.total = rows
            self.no_output = None if found else _no_output(self.file.label, self.fields, columns)
            return check.finish(rows)

    def failure(self, row: Mapping[str, Any]) -> Failure | None:
        """Return the failure that *row* records in the column that ``fields`` names for it."""
        path = self.fields.get(ERROR)
        return None if path is None else failure_in(row, path)

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the rows in the order of the file, failed records with their failure.

        :raises DataError: at the first bad row.
        """
        take = self.take
        for number, row in self.read(None):
            failure = self.failure(row)
            try:
                subject = Subject(*take(number, row))
            except DataError as error:
                self.fault(error, number, None)
            else:
                yield subject if failure is None else Due(subject, failure=failure)


class Openable(Protocol):
    """A component that rows are read through."""

    def _rows(self) -> AbstractContextManager[Rows]: ...


@asynccontextmanager
async def open_rows(self: Openable, run: RunContext) -> AsyncIterator[Rows]:
    """Give the live source, which can be read more than once whatever the path is."""
    with self._rows() as rows:
        yield rows


def check_rows(self: Openable) -> str:
    """Read all rows; see :meth:`Rows.check`."""
    with self._rows() as rows:
        return rows.check()


def each_row(self: Openable) -> Iterator[Subject | Due]:
    """Yield the rows; see :meth:`Rows.subjects`."""
    with self._rows() as rows:
        yield from rows.subjects()


@attrs.define
class Items:
    """Says of rows that are numbered *unit*s of a *file* what is wrong with them; *line* is where the one at hand begins."""

    file: InputFile
    unit: str
    line: int | None = None

    def fault(self, what: str | Problem | DataError, number: int, check: InputCheck | None) -> None:
        """Report *what* is wrong with the unit *number*, or with the whole where that is 0; without *check* raise it."""
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


def chunks(file: InputFile, fault: Callable[[str], None], check: InputCheck | None) -> Iterator[bytes]:
    """Yield the bytes of *file*, which *check* digests, in pieces; what cannot be read to its end is told to *fault*."""
    with file.binary() as stream:
        while True:
            try:
                chunk = stream.read(_CHUNK)
            except (EOFError, OSError, zlib.error) as error:
                fault(f"the data cannot be read to its end: {error}")
                return
            if not chunk:
                return
            if check is not None:
                check.digest.update(chunk)
            yield chunk


def names(columns: list[str]) -> str:
    """The *columns* for a message: the first of them where they are many, the beginning of a long one."""
    shown = [name if len(name) <= _LONG else f"{name[:_LONG]}…" for name in columns[:_NAMED]]
    return ", ".join(shown) + (", …" if len(columns) > _NAMED else "")


def _no_output(label: str, fields: Mapping[str, str], columns: list[str]) -> Problem:
    """That no row has a value in the column of outputs, beside which there are these *columns*."""
    column = fields.get("output", "output")
    lacks = f"{column!r} is null in all of them" if column in columns else f"none has {column!r}"
    step = f"map them: fields: {_mapped(fields, columns)}, or add a task that makes the outputs"
    wrong = f"no row has an output: {lacks}; the file has the columns {names(columns)}; {step}"
    return Problem(wrong, label, path="fields.output", hint=None if column in columns else nearest(column, columns))


def _mapped(fields: Mapping[str, str], columns: list[str]) -> str:
    """The option ``fields`` as it may be meant: what it has, and columns with usual names for what is absent."""
    lower = {name.lower(): name for name in reversed(columns)}
    free = {name: column for name, column in lower.items() if column not in fields.values()}
    meant = {**fields, "output": "COLUMN"}
    for part, usual in _USUAL.items():
        if part not in fields and part not in columns:
            found = next((free.pop(name) for name in usual if name in free), None)
            meant |= {} if found is None else {part: found}
    order = sorted(meant, key=lambda part: (part not in fields, list(_USUAL).index(part) if part in _USUAL else -1))
    return "{" + ", ".join(f"{part}: {meant[part]}" for part in order) + "}"
