"""Files that ``dicast run --out FILE`` writes, each by the end of its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..values.errors import ConfigError
from .output import document_bytes

if TYPE_CHECKING:
    from ...toolkit.atomic_file import AtomicFile

_SINKS = {".html": "report/html", ".md": "report/markdown", ".csv": "csv/rows"}
_DOCUMENT = ".json"
_STARTS = (b'{\n  "run_id"', b'{\n  "suite"')
"""The first bytes of the documents of a run and of a suite."""
_LOST = 4
"""The exit code after data was lost."""

FORMATS = "FILE.html, .md, .csv, or .json, the document of --json"


class Outputs(AbstractContextManager["Outputs"]):
    """The files at *paths*. Their *sinks* are further sinks of the pipeline; documents are written at the end.

    :raises click.UsageError: for a name whose end is no known format.
    :raises ConfigError: if the file of a document cannot be written.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        unknown = [str(path) for path in paths if path.suffix.lower() not in (*_SINKS, _DOCUMENT)]
        if unknown:
            raise click.UsageError(
                f"--out {', '.join(unknown)}: the name ends in none of the formats; name it {FORMATS}"
            )
        self.sinks = [_sink(path) for path in paths if path.suffix.lower() != _DOCUMENT]
        self.flags = [word for path in paths for word in ("--out", str(path))]
        self._documents = [path for path in paths if path.suffix.lower() == _DOCUMENT]
        self._open: dict[Path, AtomicFile] = {}
        try:
            self._open.update((path, _document_file(path)) for path in self._documents)
        except ConfigError:
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        """Discard the files that have no document."""
        for file in self._open.values():
            file.discard()

    def write(self, document: Mapping[str, object], code: int) -> int:
        """Write *document* to its files; return the exit code *code*, or 4 if a file could not be written and *code* is lower."""
        for path in self._documents:
            file = self._open.pop(path, None) or _document_file(path)  # a further run writes the file anew
            try:
                with file:
                    file.write(document_bytes(document) + b"\n")
                    file.commit()
            except OSError as error:
                click.echo(f"--out {path}: {error.strerror or error}; the run is in the ledger", err=True)
                code = _LOST if code in (0, 1, 3) else code
        return code


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
