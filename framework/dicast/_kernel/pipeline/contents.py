"""What components read from outside their options, as digests: a changed file is a changed component."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...toolkit.files import file_sha256
from ..contract.kinds import parts
from ..values.errors import DicastError
from .builder import Built
from .faults import Fault, Invalid, Part
from .faults import Path as Address

_LEFT_OUT = "__pycache__"
"""Folders of what Python makes of the files beside them."""


class Contents:
    """Digests what components say that they read; each file and folder once for a pipeline, whose file is in *base*."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self._digests: dict[Path, str] = {}

    @property
    def files(self) -> list[Path]:
        """The files, and no folders, that were digested."""
        return [path for path in self._digests if path.is_file()]

    def of(self, built: Built, place: Address) -> list[dict[str, str]]:
        """What *built* at *place*, and each component inside it, reads: by its names for it, the digests.

        :raises Invalid: when a component cannot say what it reads, or that cannot be read.
        """
        try:
            return [read for part in parts(built.live) if (read := self._read(part))]
        except (DicastError, OSError) as error:
            message = f"what {built.component.name} reads cannot be read: {error}"
            raise Invalid([Fault((*place, Part(built.component.name)), message)]) from error
        except Exception as error:  # the border: what it reads is for a plugin's code to say
            message = f"{built.component.name} cannot say what it reads: {type(error).__name__}: {error}"
            raise Invalid([Fault(place, message, plugin=True)]) from error

    def _read(self, part: Any) -> dict[str, str]:
        reads = getattr(type(part), "reads", None)
        found = reads(part, self._base) if callable(reads) else {}
        return {name: self._digest(one) if isinstance(one, Path) else str(one) for name, one in found.items()}

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = _folder(path) if path.is_dir() else file_sha256(path)
        return self._digests[path]


def _folder(folder: Path) -> str:
    """The digest of all names, contents, links and rights to execute in *folder*."""
    whole = sha256()
    for path in _inside(folder):
        name = os.fsencode(path.relative_to(folder))
        if path.is_symlink():
            what = b"link " + os.fsencode(path.readlink())
        elif path.is_file():
            what = f"file {os.access(path, os.X_OK)} {file_sha256(path)}".encode()
        else:
            what = b"folder" if path.is_dir() else b"other"
        whole.update(b"%d %s %d %s" % (len(name), name, len(what), what))
    return whole.hexdigest()


def _inside(folder: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != _LEFT_OUT)
        yield from (Path(above, name) for name in sorted((*folders, *files)))
