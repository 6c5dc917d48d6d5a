"""Digests of the files that components read: a changed file is a changed component."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...toolkit.files import file_sha256
from ..contract.kinds import parts
from ..contract.plugin_errors import error_text
from ..values.errors import DicastError
from .builder import Built
from .faults import Fault, Invalid, Part
from .faults import Path as Address

_IGNORED = "__pycache__"
"""Name of the folders with Python's bytecode."""


class Contents:
    """Digester of the files and folders that the components of a pipeline read, each file once. *base* is the folder of the pipeline file."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._digests: dict[Path, str] = {}

    @property
    def files(self) -> list[Path]:
        """The digested files, without folders."""
        return [path for path in self._digests if path.is_file()]

    @property
    def inputs(self) -> list[Path]:
        """The digested files and folders."""
        return [*self._digests]

    def of(self, built: Built, place: Address) -> list[dict[str, str]]:
        """Return the digests of the inputs of *built* and of each nested component, by the component's names for them.

        :param place: the address of *built*, for faults.
        :raises Invalid: when a component cannot list its inputs, or an input cannot be read.
        """
        try:
            return [read for part in parts(built.live) if (read := self._read(part))]
        except (DicastError, OSError) as error:
            message = f"an input of {built.component.name} cannot be read: {error_text(error)}"
            raise Invalid([Fault((*place, Part(built.component.name)), message)]) from error
        except Exception as error:  # code of a plugin
            message = f"{built.component.name} cannot list its inputs: {type(error).__name__}: {error_text(error)}"
            raise Invalid([Fault(place, message, plugin=True)]) from error

    def _read(self, part: Any) -> dict[str, str]:
        reads = getattr(type(part), "reads", None)
        inputs = reads(part, self._base) if callable(reads) else {}
        return {name: self._digest(value) if isinstance(value, Path) else str(value) for name, value in inputs.items()}

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = _folder(path) if path.is_dir() else file_sha256(path)
        return self._digests[path]


def _folder(folder: Path) -> str:
    """Return the digest of all names, contents, links and executable bits in *folder*."""
    digest = sha256()
    for path in _inside(folder):
        name = os.fsencode(path.relative_to(folder))
        if path.is_symlink():
            content = b"link " + os.fsencode(path.readlink())
        elif path.is_file():
            content = f"file {os.access(path, os.X_OK)} {file_sha256(path)}".encode()
        else:
            content = b"folder" if path.is_dir() else b"other"
        digest.update(b"%d %s %d %s" % (len(name), name, len(content), content))
    return digest.hexdigest()


def _inside(folder: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != _IGNORED)
        yield from (Path(above, name) for name in sorted((*folders, *files)))
