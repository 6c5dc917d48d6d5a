"""Reading task files: one file, or all of a folder; a task set, a list of tasks, one task, or a task a line."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Protocol

import attrs
import orjson

from dicast import ConfigError, DataError, Problem
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.json_values import inexact, too_deep
from dicast.toolkit.surrogates import escaped, with_lone_surrogates

from .places import Path, json_place
from .shape import Fault, shorten
from .tasks import TASK, TASK_SET

SUFFIXES = (".json", ".jsonl", ".ndjson", ".yaml", ".yml")
"""The suffixes of task files in a folder; any file may be packed by gzip, as ``.jsonl.gz``."""

MAX_FILE_BYTES = 64 * 2**20
"""How large a file may be that is read whole; one of JSON lines has no limit."""

MAX_PROBLEMS = 100
"""The number of problems that are reported; the others are counted."""

_LINES = (".jsonl", ".ndjson")


class Digest(Protocol):
    """Takes bytes, as the hashes of ``hashlib`` do."""

    def update(self, data: bytes, /) -> None:
        """Take *data*."""
        ...


class Find(Protocol):
    """Returns the place of the value at a path, or with *key* of its key."""

    def __call__(self, path: Path, *, key: bool = False) -> tuple[int, int | None]:
        """Line and column, counted from 1."""
        ...


@attrs.define
class Findings:
    """The problems of the input: the first ones, and their total number."""

    problems: list[Problem] = attrs.field(factory=list)
    total: int = 0

    def add(self, *problems: Problem) -> None:
        """Count *problems*; keep them if they are among the first."""
        self.total += len(problems)
        self.problems += problems[: max(0, MAX_PROBLEMS - len(self.problems))]

    def add_faults(self, faults: list[Fault], label: str, find: Find) -> None:
        """Count *faults* in the file *label*, where *find* knows the places."""
        for fault in faults:
            line, column = find(fault.path, key=fault.key)
            self.add(Problem(fault.message, label, line, column, dotted(fault.path) or None, hint=fault.hint))

    def refuse(self) -> None:
        """Raise the problems, if there are any.

        :raises DataError: with every collected problem, and the number of the others.
        """
        if self.problems:
            rest = self.total - len(self.problems)
            listed = sorted(
                self.problems, key=lambda problem: (problem.file or "", problem.line or 0, problem.column or 0)
            )
            raise DataError([*listed, *([Problem(f"… and {rest:,} more")] if rest else [])])


@attrs.frozen
class TaskRecord:
    """A task in the right shape, with the name of its *task_set*. It is in *file* at *path*, and *find* returns its place. *failure* is the reason
    of a failed record.
    """

    task: dict[str, Any]
    task_set: Mapping[str, Any]
    file: str
    path: Path
    find: Find
    failure: str | None = None

    @property
    def where(self) -> str:
        """The file with the path or the line, which needs no search."""
        return f"{self.file} ({dotted(self.path)})" if self.path else f"{self.file}:{self.find(())[0]}"

    def problem(self, message: str, hint: str | None = None) -> Problem:
        """Return a problem of the task, at its place."""
        return Problem(message, self.file, *self.find(self.path), dotted(self.path) or None, self.task["id"], hint)


def task_files(path: FilePath) -> list[FilePath]:
    """*path* itself, or the task files below the folder that it is, by their names; hidden ones are left out."""
    if not path.is_dir():
        return [path]
    files = [file for file in path.rglob("*") if _suffix(file) in SUFFIXES and file.is_file()]
    return sorted(file for file in files if not any(part.startswith(".") for part in file.relative_to(path).parts))


def read_tasks(path: FilePath, findings: Findings, max_line_bytes: int, digest: Digest) -> Iterator[TaskRecord]:
    """Yield the valid tasks of the file at *path*; the problems of other tasks go to *findings*.

    *digest* receives all bytes of the file.
    """
    with InputFile.opened(path) as file:
        if _suffix(path) in _LINES:
            yield from _lines(file, findings, max_line_bytes, digest)
            return
        try:
            data = _read_whole(file)
            digest.update(data)
            value, find = _parse(_suffix(path), data)
        except DataError as error:
            findings.add(*(attrs.evolve(problem, file=file.label) for problem in error.problems))
        else:
            yield from _tasks(file.label, value, find, findings)


def dotted(path: Path) -> str:
    """*path* as messages show it: ``tasks[0].repo.source``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _suffix(path: FilePath) -> str:
    return path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix


def _lines(file: InputFile, findings: Findings, max_line_bytes: int, digest: Digest) -> Iterator[TaskRecord]:
    wrong: dict[int, list[Fault]] = defaultdict(list)
    with InputCheck(file) as check:
        failures: dict[int, str] = {}
        for line, task in file.objects(max_line_bytes, check, failures):
            faults, failure = list(TASK(task, ())), failures.pop(line, None)
            if not faults:
                yield TaskRecord(task, {}, file.label, (), _at_line(line), failure)
            elif findings.total + len(wrong) < MAX_PROBLEMS:
                wrong[line] = faults
            else:
                findings.total += len(faults)
        try:
            digest.update(check.finish(1).encode())
        except DataError as error:
            findings.add(*error.problems)
    for line, text in file.lines(max_line_bytes, InputCheck(file)) if wrong else ():
        if line in wrong:
            findings.add_faults(wrong[line], file.label, _in_line(text.decode(), line))


def _at_line(line: int) -> Find:
    def find(path: Path, *, key: bool = False) -> tuple[int, int | None]:
        return line, None

    return find


def _in_line(text: str, line: int) -> Find:
    return lambda path, *, key=False: (line, json_place(text, path, key=key)[1])


def _read_whole(file: InputFile) -> bytes:
    parts, size = list[bytes](), 0
    for line, part in file.lines(MAX_FILE_BYTES):
        parts.append(part)
        size += len(part)
        if size > MAX_FILE_BYTES:
            limit = f"{MAX_FILE_BYTES // 2**20} MiB"
            raise DataError(Problem(f"the file is larger than {limit}; write a task a line, as .jsonl", line=line))
    return b"".join(parts)


def _parse(suffix: str, data: bytes) -> tuple[Any, Find]:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            Problem(f"byte 0x{data[error.start]:02x} is not UTF-8; save the file as UTF-8", line=line)
        ) from error
    if suffix in (".yaml", ".yml"):
        return _yaml(text)
    broken = None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        broken = with_lone_surrogates(data)
        if broken is None:
            raise DataError(Problem(f"not JSON: {error.msg}", line=error.lineno, column=error.colno)) from error
        value = json.loads(data)  # of whose tasks some have texts that are not Unicode
    if too_deep(data, value if broken is None else broken.value):
        raise DataError(Problem("nested too deep to be recorded; flatten it, or keep its deep part as text", line=1))
    if (digits := inexact(data)) is not None:
        raise DataError(Problem(f"the number {digits:.40} needs more than 64 bits; write it as a string", line=1))
    return value, lambda path, *, key=False: json_place(text, path, key=key)


def _yaml(text: str) -> tuple[Any, Find]:
    from dicast.toolkit import yaml  # most task sets are JSON

    try:
        node = yaml.read_yaml(text, "", limit=yaml.MAX_DATA_NODES)
    except ConfigError as error:
        raise DataError(error.problems) from error

    def find(path: Path, *, key: bool = False) -> tuple[int, int | None]:
        place = node.place_of(path, key=key)
        return place.line or 1, place.column

    return node.plain(), find


def _tasks(label: str, value: Any, find: Find, findings: Findings) -> Iterator[TaskRecord]:
    """Yield the tasks of a document: a task set, which has neither id nor goal; a list; or one task."""
    is_set = isinstance(value, Mapping) and ("tasks" in value or not {"id", "goal"} & value.keys())
    if not isinstance(value, Mapping | list):
        message = f"a task file is a task set, a list of tasks or one task, not {shorten(value)}"
        findings.add(Problem(message, label, *find(())))
        return
    faults = list(TASK_SET(value, ())) if is_set else []
    findings.add_faults(faults, label, find)
    about: Mapping[str, Any] = value if isinstance(value, Mapping) and is_set else {}
    tasks = about.get("tasks") if is_set else value
    named = {name: about[name] for name in ("name", "version") if about.get(name) is not None}
    task_set = named if (other := escaped(named)) is None else other.value
    places: list[Path] = [()]
    if isinstance(tasks, list):
        places = [("tasks", index) if is_set else (index,) for index in range(len(tasks))]
    for place, data in zip(places, tasks if isinstance(tasks, list) else [] if is_set else [tasks], strict=False):
        broken = escaped(data)
        task = data if broken is None else broken.value
        faults = list(TASK(task, place))
        findings.add_faults(faults, label, find)
        if not faults:
            yield TaskRecord(task, task_set, label, place, find, None if broken is None else broken.why)
