"""Reading of line-based input, shared by the sources of rows and traces.

A source reads its input twice. The first pass (:class:`InputCheck`) checks every line, so that no subject is judged and no
money is spent if a later line is broken. The second pass streams the file.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import tempfile
import zlib
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Self, TypeVar, cast

import orjson

from .._kernel.classes import evolve, frozen
from .._kernel.values.errors import DataError, Problem
from .._kernel.values.names import json_type, nearest
from .files import copy_input, open_file
from .json_values import MAX_DEPTH, inexact, marked_numbers, repeated_key, too_deep
from .surrogates import with_lone_surrogates

if TYPE_CHECKING:
    import sqlite3

MAX_LINE_BYTES = 64 * 2**20
"""The most bytes of a line by default."""

MAX_LISTED = 100
"""The most bad lines that are listed; further bad lines are only counted."""

STDIN = Path("-")
UTF_8 = "utf-8"

_LONG_LINES = 4
"""A line of up to this many times the allowed length is skipped; after a longer line the check of the file ends."""

_BATCH = 5000
_EXCERPT = 40
_EXACT = {str, int, bool, type(None)}
"""Types of values that are read exactly and have no depth; numbers that do not fit into 64 bits become floats."""

_TOO_DEEP = (
    f"more than {MAX_DEPTH} levels of nesting cannot be recorded; flatten the line, or keep its deep part as text"
)

T = TypeVar("T")
Numbered = Iterator[tuple[int, T]]


@frozen
class InputFile:
    """A file of lines: UTF-8 with or without a byte order mark, any line end, gzip recognized by its magic bytes.

    *path* is the path of its bytes, *label* its name in messages. Make it with :meth:`opened`, which also takes ``-``.
    """

    path: Path
    label: str

    @classmethod
    @contextmanager
    def opened(cls, path: Path | str, encoding: str = UTF_8) -> Iterator[InputFile]:
        """Open the input at *path* for any number of passes, as in ``with InputFile.opened(path) as file``.

        ``-`` (standard input) and pipes, which can be read only once, are copied to a temporary file first, up to 4 GiB. A file in another
        *encoding* is copied as UTF-8.

        :raises DataError: if the bytes are not in *encoding*, or *path* is a device, a socket, a larger pipe, or a pipe with a name that no
            program writes to.
        """
        if encoding != UTF_8:
            with cls.opened(path) as raw, tempfile.TemporaryDirectory(prefix="dicast-") as folder:
                copy = Path(folder, "input")
                raw.transcode(copy, encoding)
                yield cls(copy, raw.label)
            return
        path = Path(path)
        if path != STDIN and (path.is_file() or path.is_dir() or not path.exists()):
            yield cls(path, str(path))
            return
        label = "<stdin>" if path == STDIN else str(path)
        with tempfile.TemporaryDirectory(prefix="dicast-") as folder:
            copy = Path(folder, "input")
            try:
                copy_input(None if path == STDIN else path, copy)
            except OSError as error:
                raise DataError(Problem(error.strerror or str(error), label)) from error
            yield cls(copy, label)

    def lines(self, max_line_bytes: int = MAX_LINE_BYTES, check: InputCheck | None = None) -> Numbered[bytes]:
        """Yield ``(number, line)`` for each line: its physical number, counted from 1, and its bytes with the line end; blank lines too.

        Lines that are too long are reported to *check* and left out, without being held in memory. Without *check* the
        first fault is raised.

        :raises DataError: if the file cannot be opened; without *check*, also for a long line or broken gzip.
        """
        digest = None if check is None else check.digest
        number = 0
        with self.binary() as file:
            try:
                for number, line in enumerate(iter(partial(file.readline, max_line_bytes + 2), b""), 1):
                    if len(line) > max_line_bytes and len(line.rstrip(b"\r\n")) > max_line_bytes:
                        self.fault(f"the line is longer than max_line_bytes ({max_line_bytes:,})", number, check)
                        if not _skip_line(file, line, _LONG_LINES * max_line_bytes):
                            return
                        continue
                    if digest is not None:
                        digest.update(line)
                    yield number, line
            except (EOFError, OSError, zlib.error) as error:
                reason = getattr(error, "strerror", None) or error
                self.fault(f"the data cannot be read to its end: {reason}", number + 1, check)

    def objects(
        self,
        max_line_bytes: int = MAX_LINE_BYTES,
        check: InputCheck | None = None,
        failures: MutableMapping[int, str] | None = None,
        numbers: Callable[[str], object] | None = None,
        *,
        unique: bool = False,
    ) -> Numbered[dict[str, Any]]:
        r"""Yield the JSON object of each line that is not blank, with the line's physical number; faults as in :meth:`lines`.

        With *failures*, a line whose only fault is a lone surrogate in a text is yielded too, with the surrogate written as its escape
        (``\ud83d``): *failures* has the reason why that record failed by its number. Take it out before the next line is read.
        With *numbers*, a number that needs more than 64 bits is no fault: *numbers* returns its replacement for its digits.
        With *unique* and *check*, a key that an object has twice is a fault; otherwise its last value counts.
        """
        is_trusted = check is None and numbers is None  # the line was checked by an earlier pass
        for number, line in self.lines(max_line_bytes, check):
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                if (item := self._failed(line, error, number, check, failures)) is not None:
                    yield number, item
                continue
            if type(value) is not dict:
                self.fault(f"the line is {json_type(value)}, it must be a JSON object", number, check)
                continue
            is_plain = is_trusted or _EXACT.issuperset(map(type, value.values()))
            if check is not None and not is_plain and too_deep(line, value):
                self.fault(_TOO_DEEP, number, check)
            elif unique and check is not None and (key := repeated_key(line)) is not None:
                self.fault(_repeated(line, key), number, check)
            elif not is_plain and (digits := inexact(line)):
                if numbers is None:
                    self.fault(_not_exact(line, digits), number, check)
                else:
                    yield number, marked_numbers(line, numbers)
            else:
                yield number, value

    def _failed(
        self,
        line: bytes,
        error: orjson.JSONDecodeError,
        number: int,
        check: InputCheck | None,
        failures: MutableMapping[int, str] | None,
    ) -> dict[str, Any] | None:
        """Return the object of a *line* that only a lone surrogate keeps orjson from reading, with the reason in *failures*. Else report the fault and return None."""
        if not line.strip():
            return None
        record = None if failures is None else with_lone_surrogates(line)
        if (wrong := _undecodable(line)) is not None:
            self.undecodable(wrong, number, check)
        elif record is None or failures is None:
            self.fault(_not_json(line, error), number, check)
        elif type(record.value) is not dict:
            self.fault(f"the line is {json_type(record.value)}, it must be a JSON object", number, check)
        elif check is not None and too_deep(line, record.value):
            self.fault(_TOO_DEEP, number, check)
        elif check is not None and (digits := inexact(line)):
            self.fault(_not_exact(line, digits), number, check)
        else:
            failures[number] = record.why
            return record.value
        return None

    def fault(self, fault: str | Problem | DataError, line: int, check: InputCheck | None) -> None:
        """Report the problem *fault* of *line* to *check*; without *check*, raise it as a :class:`~dicast.DataError`."""
        problem = Problem(fault) if isinstance(fault, str) else fault
        problems = problem.problems if isinstance(problem, DataError) else (problem,)
        placed = [evolve(problem, file=self.label, line=line) for problem in problems]
        if check is None:
            raise DataError(placed)
        for problem in placed:
            check.report(problem)

    def undecodable(self, what: Problem, line: int, check: InputCheck | None) -> None:
        """Report *what*, the problem of bytes of *line* that are not in the encoding: once for the whole file, with the number of such lines."""
        if check is None:
            self.fault(what, line, check)
        else:
            check.report_undecodable(evolve(what, file=self.label, line=line))

    def transcode(self, target: Path, encoding: str) -> None:
        """Write the text of this file, which is in *encoding*, to *target* as UTF-8.

        :raises DataError: at the first byte that is not in *encoding*.
        """
        decoder = codecs.getincrementaldecoder(encoding)()
        line = 1
        with self.binary() as source, target.open("w", encoding="utf-8", newline="") as copy:
            while True:
                piece = source.read(2**18)
                try:
                    text = decoder.decode(piece, final=not piece)
                except UnicodeDecodeError as error:
                    line += error.object[: error.start].count(b"\n")
                    wrong = (
                        f"byte 0x{error.object[error.start]:02x} is not {encoding}; name the encoding that the file has"
                    )
                    raise DataError(Problem(wrong, self.label, line)) from error
                copy.write(text)
                line += text.count("\n")
                if not piece:
                    return

    @contextmanager
    def binary(self) -> Iterator[BinaryIO]:
        """Open the bytes of the input, unpacked and without the byte order mark of UTF-8.

        :raises DataError: if the file cannot be opened.
        """
        with ExitStack() as stack:
            file: BinaryIO = stack.enter_context(self._raw())
            try:
                if cast("io.BufferedReader", file).peek(2)[:2] == b"\x1f\x8b":
                    import gzip  # Most inputs are not compressed.

                    packed = stack.enter_context(gzip.open(file))
                    # A GzipFile reads lines in Python, a BufferedReader in C.
                    file = io.BufferedReader(cast("io.RawIOBase", packed), 2**18)
                if cast("io.BufferedReader", file).peek(3)[:3] == codecs.BOM_UTF8:
                    file.read(3)
            except (EOFError, OSError, zlib.error) as error:
                reason = getattr(error, "strerror", None) or error
                raise DataError(Problem(f"the data cannot be read: {reason}", self.label, 1)) from error
            yield file

    def _raw(self) -> BinaryIO:
        try:
            return open_file(self.path)
        except OSError as error:
            folder, missing = self.path.parent, isinstance(error, FileNotFoundError)
            names = [entry.name for entry in folder.iterdir()] if missing and folder.is_dir() else []
            wrong = "no such file" if missing else f"the file cannot be opened: {error.strerror}"
            raise DataError(Problem(wrong, self.label, hint=nearest(self.path.name, names))) from error


def _not_json(line: bytes, error: orjson.JSONDecodeError) -> Problem:
    return Problem(f"the line is not JSON: {error.msg}", column=min(error.pos, len(line.decode().rstrip())) + 1)


def _not_exact(line: bytes, digits: str) -> Problem:
    excerpt = digits if len(digits) <= _EXCERPT else f"{digits[:_EXCERPT]}…"
    wrong = f"the number {excerpt} needs more than 64 bits, so it cannot be recorded exactly; write it as a string"
    return Problem(wrong, column=len(line[: line.find(digits.encode())].decode()) + 1, value=excerpt)


def _repeated(line: bytes, key: str) -> Problem:
    written = orjson.dumps(key)
    second = line.find(written, line.find(written) + 1)
    column = None if second < 0 else len(line[:second].decode()) + 1
    return Problem(f"an object has the key {key!r:.60} twice; keep one of its values", column=column, value=key)


def _undecodable(line: bytes) -> Problem | None:
    """Return the problem of a line that is not UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        return Problem(f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8", column=error.start + 1)
    return None


def _skip_line(file: BinaryIO, line: bytes, most: int) -> bool:
    """Read *file* to the end of the started *line*; return False if the line is longer than *most* bytes."""
    skipped = len(line)
    while line and not line.endswith(b"\n"):
        if skipped > most:
            return False
        line = file.readline(2**20)
        skipped += len(line)
    return True


class InputCheck:
    """The first pass over an input: counts every bad line, lists the first *most* of them, and finds ids that occur twice.

    Ids are in a temporary file, not in memory. Use ``with InputCheck(file, most, unit) as check``, and end with :meth:`finish`. *file* is the
    open :class:`InputFile`. *unit* is the unit of the input: ``line``, the ``item`` of a list, or the ``row`` of a table.
    """

    def __init__(self, file: InputFile, most: int = MAX_LISTED, unit: str = "line") -> None:
        self.file = file
        self.most = most
        self.unit = unit
        self.digest = hashlib.sha256()
        self.total = 0
        self._problems: list[Problem] = []
        self._undecodable: Problem | None = None
        self._undecodable_count = 0
        self._ids: list[tuple[str, str, int]] = []
        self._database: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._database is not None:
            self._database.close()

    def report(self, problem: Problem) -> None:
        """Count *problem*; keep it if it is among the first."""
        self.total += 1
        if len(self._problems) < self.most:
            self._problems.append(problem)

    def report_undecodable(self, problem: Problem) -> None:
        """Report bytes that are not in the file's encoding: all such problems are one, the first, with their number."""
        self._undecodable_count += 1
        if self._undecodable is None:
            self._undecodable = problem
            self.total += 1

    def add_id(self, id: str, line: int, kind: str = "id") -> None:
        """Record that *line*, a number in the check's unit, has *id*, which must be unique among ids of the same *kind*."""
        self._ids.append((kind, id, line))
        if len(self._ids) >= _BATCH:
            self._spool()

    def finish(self, subjects: int) -> str:
        """End the pass: return the SHA-256 of the data, in hexadecimal.

        :raises DataError: with the listed problems in the order of the lines, and the number of further problems; also if
            there are no *subjects*.
        """
        if self._ids:
            self._report_duplicates()
        if not self.total and not subjects:
            self.report(Problem("there are no subjects in this input", self.file.label))
        if self.total:
            all_problems = [*self._encoding_problem(), *self._problems]
            problems = sorted(all_problems, key=lambda problem: problem.line or 0)[: self.most]
            if unlisted := self.total - len(problems):
                problems.append(Problem(f"… and {unlisted:,} more", self.file.label))
            raise DataError(problems)
        return self.digest.hexdigest()

    def _encoding_problem(self) -> Iterator[Problem]:
        first, count = self._undecodable, self._undecodable_count
        if first is not None and count > 1:
            first = evolve(
                first, message=f"{first.message} ({count:,} {self.unit}s have such bytes, this is the first)"
            )
        if first is not None:
            yield first

    def _spool(self) -> sqlite3.Connection:
        if self._database is None:
            import sqlite3  # Only a first pass over many ids needs it.

            self._database = sqlite3.connect("", isolation_level=None)  # "" is a temporary file that SQLite deletes
            self._database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
            self._database.execute("CREATE TABLE ids (kind TEXT, id TEXT, line INTEGER)")
        self._database.execute("BEGIN")  # else each row is a transaction of its own
        self._database.executemany("INSERT INTO ids VALUES (?, ?, ?)", self._ids)
        self._database.execute("COMMIT")
        self._ids.clear()
        return self._database

    def _report_duplicates(self) -> None:
        database = self._spool()
        grouped = "SELECT kind, id, min(rowid) AS first, count(*) - 1 AS again FROM ids GROUP BY kind, id HAVING again"
        database.execute(f"CREATE TABLE twice AS {grouped}")
        (total,) = database.execute("SELECT coalesce(sum(again), 0) FROM twice").fetchone()
        rows = database.execute(
            "SELECT ids.kind, ids.id, ids.line, earlier.line FROM twice JOIN ids USING (kind, id) "
            "JOIN ids AS earlier ON earlier.rowid = first WHERE ids.rowid > first ORDER BY ids.rowid LIMIT ?",
            (self.most,),
        )
        for kind, id, line, first in rows if total else ():
            message, place = f"duplicate {kind} {id!r}, first on line {first}", line
            if self.unit != "line":
                message, place = f"{self.unit} {line}: duplicate {kind} {id!r}, first in {self.unit} {first}", None
            self._problems.append(Problem(message, self.file.label, place, value=id))
        self.total += total
