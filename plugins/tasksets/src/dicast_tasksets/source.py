"""The source ``tasksets/files``."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import (
    ConfigError,
    DataError,
    Due,
    Failure,
    InputPath,
    Problem,
    ReadCounts,
    Subject,
    Within,
    identifier,
    nearest,
)
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.scan import Scan

from .reading import MAX_PROBLEMS, Findings, TaskRecord, read_tasks, task_files
from .tasks import as_subject

_ID_KEYS = ("id", "task_id")
_FAILURE = "\0failure"
"""The key of a stored output for the reason of a failed record; no file has it as a column."""


def _existing(path: Path) -> Path:
    """Return the *path* of a file or a folder.

    :raises ConfigError: if it does not exist.
    """
    if path.exists():
        return path
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    problem = Problem(f"the file {path.name!r} does not exist: {path}", path="path", value=str(path))
    raise ConfigError(attrs.evolve(problem, hint=nearest(path.name, names)))


def _rising(instance: object, attribute: attrs.Attribute[Any], value: tuple[float, float] | None) -> None:
    if value is not None and not 0 <= value[0] <= value[1] <= 1:
        raise ValueError(
            f"invalid value for difficulty, expected [low, high] with 0 <= low <= high <= 1, got {[*value]}"
        )


@attrs.frozen
class Files:
    """Evaluation tasks from files, joined with the outputs of a system under test.

    A file is a task set ``{name, version, tasks}``, a list of tasks, or one task, as JSON or YAML; or a task a line (``.jsonl``,
    ``.ndjson``). Each task becomes a subject. Its input is an object with ``goal`` and, if present, ``repo_source``, ``repo_ref``,
    ``focus_files`` and ``expected_commands``. Its reference is the content of its first gold file. ``constraints``,
    ``gold_files``, ``expected``, ``metadata`` and ``task_set`` are in its context.

    :param path: a file, or a folder whose task files are all read, in the order of their names.
    :param outputs: a file of JSON lines, each with the ``id`` of a task (or ``task_id``) and its ``output``, any JSON value. A
        line may have a ``session_id``; all other keys are in the context. A line with an ``error`` and no output is a failed record
        (``source_error``). Without this option no task has an output.
    :param allow_missing: take tasks without a line in ``outputs``, without an output; else they are errors.
    :param tags: only tasks with at least one of these tags; all by default.
    :param difficulty: only tasks with a difficulty from the first to the second of these two numbers, both included.
    :param ids: only these tasks.
    :param kind: the subject kind of the tasks.
    :param max_line_bytes: the longest line that is read, in bytes; 64 MiB by default.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: Path = attrs.field(converter=_existing)
    outputs: InputPath | None = None
    allow_missing: bool = False
    tags: tuple[str, ...] = ()
    difficulty: tuple[float, float] | None = attrs.field(default=None, validator=_rising)
    ids: tuple[str, ...] = ()
    kind: str = "task"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    open, check, subjects = open_source, check_source, each_subject

    def is_wanted(self, task: dict[str, Any]) -> bool:
        """Return True if *task* passes the filters."""
        metadata = task.get("metadata") or {}
        if self.ids and task["id"] not in self.ids:
            return False
        if self.tags and not set(self.tags).intersection(metadata.get("tags") or ()):
            return False
        low, high = self.difficulty or (None, None)
        difficulty = metadata.get("difficulty")
        return low is None or high is None or (difficulty is not None and low <= difficulty <= high)

    @contextmanager
    def reading(self) -> Iterator[Tasks]:
        """Open the input and yield the live source."""
        database = sqlite3.connect("", isolation_level=None)  # a file without a name, gone at the end
        try:
            database.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;")
            database.execute("CREATE TABLE tasks (id BLOB PRIMARY KEY, place TEXT, wanted BOOL) WITHOUT ROWID")
            database.execute("CREATE TABLE outputs (id BLOB PRIMARY KEY, line INTEGER, row BLOB)")
            if self.outputs is None:
                yield Tasks(self, database, None)
            else:
                with InputFile.opened(self.outputs) as file:
                    yield Tasks(self, database, file)
        finally:
            database.close()


class Tasks:
    """An opened source of tasks; ids and outputs wait in a temporary database, so that memory does not grow with them."""

    def __init__(self, options: Files, database: sqlite3.Connection, outputs: InputFile | None) -> None:
        self.kinds = options.kinds
        self.total: int | None = None
        self._options, self._database, self._outputs = options, database, outputs
        self._records = self._failed = self._filtered = 0

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: with the problems of the tasks and their outputs, or if no task passes the filters.
        """
        findings, digest = Findings(), hashlib.sha256()
        self._database.executescript("BEGIN; DELETE FROM tasks; DELETE FROM outputs")
        try:
            count = self._note_tasks(findings, digest)
            if self._outputs is not None:
                self._note_outputs(self._outputs, findings, digest)
        finally:
            self._database.execute("COMMIT")
        if not findings.total and not count:
            findings.add(Problem("there is no task in these files that passes the filters", str(self._options.path)))
        findings.refuse()
        self.total = count
        return digest.hexdigest()

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the tasks that pass the filters, in the order of the files; a task whose output failed is due with its failure.

        :raises DataError: when something is wrong with any of them.
        """
        if self.total is None:
            self.check()
        findings = Findings()
        self._records = self._failed = self._filtered = 0
        for record in self._all(findings, hashlib.sha256()):
            self._records += 1
            if not self._options.is_wanted(record.task):
                self._filtered += 1
                continue
            row = self._row(record.task["id"])
            failure = record.failure or row.pop(_FAILURE, None)
            subject = as_subject(record.task, self._options.kind, record.task_set, row)
            subject = attrs.evolve(subject, place=record.where)
            self._failed += failure is not None
            yield subject if failure is None else Due(subject, failure=Failure("source_error", failure))
        findings.refuse()

    def read_counts(self) -> ReadCounts:
        """Return the number of tasks in the newest pass, of tasks that the filters left out, and of failed tasks."""
        dropped = {"filtered": self._filtered} if self._filtered else {}
        return ReadCounts(self._records, dropped=dropped, failed=self._failed)

    def _all(self, findings: Findings, digest: Any) -> Iterator[TaskRecord]:
        for file in task_files(self._options.path):
            digest.update(b"\0" + file.name.encode(errors="surrogateescape"))
            yield from read_tasks(file, findings, self._options.max_line_bytes, digest)

    def _note_tasks(self, findings: Findings, digest: Any) -> int:
        """Note which tasks there are; return how many pass the filters."""
        count, tags = 0, set[str]()
        for record in self._all(findings, digest):
            id_ = record.task["id"]
            tags.update((record.task.get("metadata") or {}).get("tags") or ())
            is_wanted = self._options.is_wanted(record.task)
            count += is_wanted
            try:
                self._database.execute("INSERT INTO tasks VALUES (?, ?, ?)", (_key(id_), record.where, is_wanted))
            except sqlite3.IntegrityError:
                findings.add(record.problem(f"duplicate id {id_!r}, first at {self._place(id_)}"))
        if not findings.total:
            self._check_filters(tags, findings)
        return count

    def _check_filters(self, tags: Collection[str], findings: Findings) -> None:
        """Report tags and ids of the filters that no task has: they are misspelled, or the set is the wrong one."""
        for tag in sorted(set(self._options.tags).difference(tags)):
            findings.add(Problem(f"no task has the tag {tag!r}", path="tags", value=tag, hint=nearest(tag, tags)))
        for id_ in self._options.ids:
            if self._place(id_) is None:
                findings.add(Problem(f"there is no task {id_!r}", path="ids", value=id_, hint=self._near(id_)))

    def _note_outputs(self, file: InputFile, findings: Findings, digest: Any) -> None:
        with InputCheck(file) as check:
            failures: dict[int, str] = {}
            for line, row in file.objects(self._options.max_line_bytes, check, failures):
                if (failure := failures.pop(line, None) or error_of(row)) is not None:
                    row = {"output": None, **row, _FAILURE: failure}  # noqa: PLW2901  # what is kept of it
                try:
                    self._note_output(line, row, must_have_task=not findings.total)
                except DataError as error:
                    file.fault(error, line, check)
            try:
                digest.update(check.finish(1).encode())
            except DataError as error:
                findings.add(*error.problems)
        if not findings.total and not self._options.allow_missing:
            self._check_missing(file.label, findings)

    def _note_output(self, line: int, row: dict[str, Any], *, must_have_task: bool) -> None:
        """Store an output by its task.

        :raises DataError: without a place, if it is not valid, or if *must_have_task* is set and there is no such task.
        """
        names = [name for name in _ID_KEYS if name in row]
        for name, is_present in (("id", names), ("output", "output" in row)):
            if not is_present:
                hint = nearest(name, row)
                raise DataError(Problem(f"the line has no {name!r}; it has {', '.join([*row][:10])}", hint=hint))
        id_ = identifier(row.pop(names[0]), names[0])
        if row.get("session_id") is not None:
            row["session_id"] = identifier(row["session_id"], "session_id")
        if must_have_task and self._place(id_) is None:
            raise DataError(Problem(f"there is no task {id_!r}", path=names[0], value=id_, hint=self._near(id_)))
        first = self._database.execute("SELECT line FROM outputs WHERE id = ?", (_key(id_),)).fetchone()
        if first is not None:
            raise DataError(Problem(f"duplicate {names[0]} {id_!r}, first on line {first[0]}", value=id_))
        self._database.execute("INSERT INTO outputs VALUES (?, ?, ?)", (_key(id_), line, orjson.dumps(row)))

    def _check_missing(self, label: str, findings: Findings) -> None:
        """Report tasks without an output, among the tasks that pass the filters."""
        without = "SELECT 1 FROM tasks WHERE wanted AND id NOT IN (SELECT id FROM outputs)"
        if self._database.execute(without).fetchone() is None:
            return
        for record in self._all(Findings(), hashlib.sha256()):
            if self._options.is_wanted(record.task) and not self._row(record.task["id"]):
                name = record.task["id"]
                advice = "with allow_missing it is judged without"
                findings.add(record.problem(f"{label} has no output for the task {name!r}; {advice}"))

    def _row(self, id_: str) -> dict[str, Any]:
        stored = self._database.execute("SELECT row FROM outputs WHERE id = ?", (_key(id_),)).fetchone()
        row: dict[str, Any] = {} if stored is None else orjson.loads(stored[0])
        return row

    def _place(self, id_: str) -> str | None:
        """Return the place of a task; None if there is no such task."""
        record = self._database.execute("SELECT place FROM tasks WHERE id = ?", (_key(id_),)).fetchone()
        return None if record is None else str(record[0])

    def _near(self, id_: str) -> str | None:
        names = self._database.execute("SELECT id FROM tasks LIMIT ?", (MAX_PROBLEMS * MAX_PROBLEMS,))
        return nearest(id_, (bytes(name).decode(errors="surrogatepass") for (name,) in names))


def _key(id_: str) -> bytes:
    """*id_* as the database keeps it: a lone surrogate too."""
    return id_.encode(errors="surrogatepass")


def error_of(row: Mapping[str, Any]) -> str | None:
    """Return the error of a *row* of outputs that has one in place of an output; None for any other row."""
    error, output = row.get("error"), row.get("output")
    if not error or not (output is None or output == ""):
        return None
    if isinstance(error, Mapping) and isinstance(error.get("message"), str):
        return f"{error['code']}: {error['message']}" if isinstance(error.get("code"), str | int) else error["message"]
    return error if isinstance(error, str) else orjson.dumps(error).decode()
