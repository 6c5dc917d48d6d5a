"""Case that a command measures: the file named in the row, or a temporary file with the row's text."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import orjson

from dicast import Failure, Subject, columns
from dicast.toolkit.files import error_reason, read_text

_COLUMNS = ("case", "path")


@attrs.frozen
class Case:
    """Paths of a case, and of its row as JSON."""

    path: Path
    row: Path

    @property
    def environment(self) -> dict[str, str]:
        """Variables with the paths."""
        return {"DICAST_CASE": str(self.path), "DICAST_ROW": str(self.row)}


@contextmanager
def case(subject: Subject, base: Path) -> Iterator[Case | Failure]:
    """Yield the case of *subject*, valid inside the block; a Failure if it has none. Paths are relative to *base*."""
    with tempfile.TemporaryDirectory(prefix="dicast-case-") as name:
        row = {column: value for column, value in columns(subject).items() if value is not None}
        folder = Path(name)
        (folder / "row.json").write_bytes(orjson.dumps(row))
        path = _path(subject, base, folder / "case.txt")
        yield path if isinstance(path, Failure) else Case(path, folder / "row.json")


def _path(subject: Subject, base: Path, temporary: Path) -> Path | Failure:
    column = next((column for column in _COLUMNS if column in subject.context), None)
    if column is not None:
        return _named(subject.context[column], column, base)
    if subject.output is None and subject.input is None:
        return Failure(
            "missing_input", f"the {subject.kind} has no case: no output, no input, and no column case or path"
        )
    text = subject.text if subject.output is not None else attrs.evolve(subject, output=subject.input).text
    temporary.write_bytes(text.encode(errors="replace"))
    return temporary


def _named(value: object, column: str, base: Path) -> Path | Failure:
    if not isinstance(value, str) or not value:
        return Failure("missing_input", f"{column} is {value!r:.80}, not the path of a case")
    path = (base / value).absolute()
    return path if path.exists() else Failure("missing_input", f"there is no case {value!r:.200} ({column})")


def case_text(subject: Subject, base: Path) -> str | Failure:
    """Return the text of the case of *subject*: the content of the file named in the row, else its input, else its output."""
    column = next((column for column in _COLUMNS if column in subject.context), None)
    if column is not None:
        path = _named(subject.context[column], column, base)
        return path if isinstance(path, Failure) else _read(path, column)
    content = subject.output if subject.input is None else subject.input
    if content is None:
        return Failure(
            "missing_input", f"the {subject.kind} has no case: no input, no output, and no column case or path"
        )
    return attrs.evolve(subject, output=content).text


def _read(path: Path, column: str) -> str | Failure:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        return Failure("missing_input", f"the case {path} cannot be read ({column}): {error_reason(error)}")
