"""Folders whose files are the parts of one session, such as a file for each event."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from .files import open_file
from .input_file import InputFile


@attrs.frozen
class SessionFolder:
    """A *folder* whose *files* are one session. *name* ends with the id of the session; *order* returns the sort key of a file.

    *copies* are files that repeat contents of *files*, and are not read.
    """

    name: str
    folder: Path
    files: tuple[Path, ...]
    order: Callable[[Path], Any] = attrs.field(eq=False)
    copies: tuple[Path, ...] = ()

    @property
    def first(self) -> Path:
        """The first of the files that is not empty, else the first one."""
        files = [path for path in self.files if path.stat().st_size] or self.files
        return min(files, key=self.order)

    @contextmanager
    def opened(self) -> Iterator[InputFile]:
        """Open the files as one file: a line has one part, if no part has line breaks. Empty parts are left out."""
        with tempfile.TemporaryDirectory(prefix="dicast-") as temporary:
            joined = Path(temporary, "parts.jsonl")
            with joined.open("wb") as target:
                for number, path in enumerate(
                    path for path in sorted(self.files, key=self.order) if path.stat().st_size
                ):
                    target.write(b"\n" * bool(number))
                    with open_file(path) as part:
                        shutil.copyfileobj(part, target)
            yield InputFile(joined, str(self.folder))
