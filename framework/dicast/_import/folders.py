"""Folders of an import whose files are one session each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from .._kernel.values.errors import DataError
from ..toolkit.beginning import read_beginning
from ..toolkit.encodings import UTF_8
from ..toolkit.session_folders import SessionFolder

SourceClass = tuple[str, Any]
"""The name of a source, and its class."""


@attrs.frozen
class SessionFolders:
    """Folders whose files are one session each, with the name and the class of the source that reads them."""

    folders: tuple[tuple[SessionFolder, str, Any], ...] = ()

    @classmethod
    def below(cls, paths: Sequence[Path], files: Sequence[Path], sources: Sequence[SourceClass]) -> SessionFolders:
        """Return the folders below *paths*, from all *files* and the *sources* that may read them."""
        folders: dict[Path, tuple[SessionFolder, str, Any]] = {}
        for root in paths:
            names = [file.relative_to(root).as_posix() for file in files if root in file.parents]
            for name, source in sources:
                for folder in source.session_folders(root, names) if hasattr(source, "session_folders") else ():
                    if _is_detected(folder, source):
                        folders.setdefault(folder.folder, (folder, name, source))
        return cls(tuple(folders.values()))

    @property
    def copies(self) -> list[Path]:
        """The files that repeat contents of the folders."""
        return [path for folder, _, _ in self.folders for path in folder.copies]

    @property
    def parts(self) -> frozenset[Path]:
        """The files that are read with their folder, or repeat contents of it."""
        return frozenset(path for folder, _, _ in self.folders for path in (*folder.files, *folder.copies))


def _is_detected(folder: SessionFolder, source: Any) -> bool:
    try:
        return source.detect(read_beginning(folder.first, UTF_8)) is not None
    except (DataError, OSError):
        return False
