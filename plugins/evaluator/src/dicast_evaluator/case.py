"""The case that a command measures: a file that the row names, or its text in a temporary one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import orjson

from dicast import Failure, Subject, columns
from dicast.toolkit.files import read_text

_COLUMNS = ("case", "path")


@attrs.frozen
class Case:
    """Where a case is, and where its row as JSON."""

    path: Path
    row: Path

    @property
    def environment(self) -> dict[str, str]:
        """The variables that say so."""
        return {"DICAST_CASE": str(self.path), "DICAST_ROW": str(self.row)}


@contextmanager
def case(subject: Subject, base: Path) -> Iterator[Case | Failure]:
    """The case of *subject*, as long as the block runs; a Failure where it has none. Paths are relative to *base*."""
    with tempfile.TemporaryDirectory(prefix="dicast-case-") as name:
        row = {column: value for column, value in columns(subject).items() if value is not None}
        folder = Path(name)
        (folder / "row.json").write_bytes(orjson.dumps(row))
        path = _path(subject, base, folder / "case.txt")
        yield path if isinstance(path, Failure) else Case(path, folder / "row.json")


def _path(subject: Subject, base: Path, own: Path) -> Path | Failure:
    column = next((column for column in _COLUMNS if column in subject.context), None)
    if column is not None:
        return _named(subject.context[column], column, base)
    if subject.output is None and subject.input is None:
        return Failure(
            "missing_input", f"the {subject.kind} has no case: no output, no input, and no column case or path"
        )
    text = subject.text if subject.output is not None else attrs.evolve(subject, output=subject.input).text
    own.write_bytes(text.encode(errors="replace"))
    return own


def _named(value: object, column: str, base: Path) -> Path | Failure:
    if not isinstance(value, str) or not value:
        return Failure("missing_input", f"{column} is {value!r:.80}, not the path of a case")
    path = (base / value).absolute()
    return path if path.exists() else Failure("missing_input", f"there is no case {value!r:.200} ({column})")


def case_text(subject: Subject, base: Path) -> str | Failure:
    """The text of the case that *subject* asks about: of the file that it names, else its input, else its output."""
    column = next((column for column in _COLUMNS if column in subject.context), None)
    if column is not None:
        path = _named(subject.context[column], column, base)
        return path if isinstance(path, Failure) else _read(path, column)
    given = subject.output if subject.input is None else subject.input
    if given is None:
        return Failure(
            "missing_input", f"the {subject.kind} has no case: no input, no output, and no column case or path"
        )
    return attrs.evolve(subject, output=given).text


def _read(path: Path, column: str) -> str | Failure:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        return Failure("missing_input", f"the case {path} cannot be read ({column}): {error}")
