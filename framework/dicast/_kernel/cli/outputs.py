"""Files that ``dicast run --out FILE`` writes, each by the end of its name."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...toolkit.printable import one_line
from ...toolkit.terminal import print_wrapped
from ..values.errors import ConfigError, Problem
from .output import document_bytes

if TYPE_CHECKING:
    from ...toolkit.atomic_file import AtomicFile

_SINKS = {".html": "report/html", ".md": "report/markdown", ".csv": "csv/rows"}
_DOCUMENT = ".json"
_TABLE = ".csv"
_CONTENT = "llm_content"
"""The column of a task's output in a table."""

_ROW = "row_"
"""Prefix of a column of the data whose name a column of the verdict has."""
_STARTS = (b'{\n  "run_id"', b'{\n  "suite"')
"""The first bytes of the documents of a run and of a suite."""
_BEGINNINGS = {
    ".html": rb'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy"',
    ".md": rb"## [^\n]*: (no gate|passed|failed|undecided|disabled|nothing was judged)\b",
    ".csv": rb"[^\n]*\bsubject_kind,subject_id,",
}
"""Patterns of the first bytes of the files that the sinks write, by the end of the name."""
_HEAD = 1 << 16
"""The number of bytes in which a file's beginning is looked for."""
_EXPERIMENT = "${experiment}"
_LOST = 4
"""The exit code after data was lost."""

FORMATS = "FILE.html, .md, .csv, or .json, the document of --json"


class Outputs(AbstractContextManager["Outputs"]):
    """The files at *paths*. Their *sinks* are further sinks of the pipeline; documents are written at the end.

    A file replaces only an older file of the same format: any other file may be the user's.

    :raises click.UsageError: for a name whose end is no known format.
    :raises ConfigError: if the file of a document cannot be written.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        unknown = [str(path) for path in paths if path.suffix.lower() not in (*_SINKS, _DOCUMENT)]
        if unknown:
            raise click.UsageError(
                f"--out {', '.join(unknown)}: the name ends in none of the formats; name it {FORMATS}"
            )
        self._paths = self._named = paths
        self.sinks = [_sink(path) for path in paths if path.suffix.lower() != _DOCUMENT]
        self._documents = [path for path in paths if path.suffix.lower() == _DOCUMENT]
        self._open: dict[Path, AtomicFile] = {}
        try:
            self._open.update((path, _document_file(path)) for path in self._documents)
        except ConfigError:
            self.__exit__()
            raise

    def check(self, experiments: Collection[str] = ()) -> None:
        """Refuse to replace files that dicast did not write.

        :param experiments: the experiments of a suite, whose names a path may have.
        :raises ConfigError: naming every such file.
        """
        self._named = named = [
            Path(str(path).replace(_EXPERIMENT, name))
            for path in self._paths
            for name in (experiments if _EXPERIMENT in str(path) else ("",))
        ]
        problems = [
            Problem(f"cannot write {path}: {reason}; name another one, or move it away", path="--out")
            for path in named
            if (reason := _refusal(path)) is not None
        ]
        if problems:
            raise ConfigError(problems)

    def __exit__(self, *error: object) -> None:
        """Discard the files that have no document."""
        for file in self._open.values():
            file.discard()

    def write(self, document: Mapping[str, object], code: int) -> int:
        """Write *document* to its files; return the exit code *code*, or 4 if a file could not be written and *code* is lower.

        A note on stderr names the column of a task's output in a table, and the columns of the data that have another name there.
        """
        for path in self._documents:
            file = self._open.pop(path, None) or _document_file(path)  # a further run replaces the file
            try:
                with file:
                    file.write(document_bytes(document) + b"\n")
                    file.commit()
            except OSError as error:
                print_wrapped(f"--out {path}: {error.strerror or error}; the run is in the ledger", err=True)
                code = _LOST if code in (0, 1, 3) else code
        for path in dict.fromkeys(self._named):
            if notes := _column_notes(path):
                print_wrapped(one_line(f"--out {path}: {'; '.join(notes)}"), err=True)
        return code


def _column_notes(path: Path) -> list[str]:
    """Return notes about the table at *path*: the column of a task's output, and each column of the data that has another name.

    The verdict has columns of these names.
    """
    if path.suffix.lower() != _TABLE or not path.is_file():
        return []
    import csv  # most runs write no table

    from ...toolkit.run_table import SUBJECT

    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next(csv.reader(file), [])
    output = [f"the output of the task is in the column {_CONTENT}"] if _CONTENT in names else []
    return output + [
        f"the column {name!r} of the data is named {_ROW + name}, because the verdict has a column {name}"
        for name in SUBJECT
        if _ROW + name in names
    ]


def _refusal(path: Path) -> str | None:
    """Return the reason not to replace the file at *path*: content that no sink of its format writes, or content that cannot be read."""
    beginning = _BEGINNINGS.get(path.suffix.lower())
    if beginning is None or not path.is_file():
        return None
    from ...toolkit.files import open_file  # most runs write no file

    try:
        with open_file(path) as file:
            head = file.read(_HEAD)
    except OSError as error:
        return f"the file there cannot be read ({error.strerror or error})"
    return "it has other content than such a file" if head and re.match(beginning, head) is None else None


def _document_file(path: Path) -> AtomicFile:
    """Return the new file at *path*, which may replace only an older document: other JSON may be the user's data."""
    from ...toolkit.atomic_file import AtomicFile  # most runs write no document

    for start in _STARTS:
        try:
            return AtomicFile(path, replaces=start)
        except ConfigError as error:
            refusal = error
    raise refusal


def _sink(path: Path) -> dict[str, object]:
    return {_SINKS[path.suffix.lower()]: {"as": f"--out {path}", "path": str(path.absolute())}}
