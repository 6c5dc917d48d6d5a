"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from .._kernel.values.errors import ConfigError
from .files import is_of_system, open_file

_BLOCK = 1 << 16
_DATABASE = b"SQLite format 3\x00"
"""The first bytes of a ledger's file; such a file is never replaced."""


def output_path(folder: Path, path: Path, base_path: Path | None) -> Path:
    """Return *path*, which may be relative to *folder*. It must be inside *base_path*, which may be relative to *folder* too.

    :raises ConfigError: if it leads out of *base_path*, after links are resolved.
    """
    target = folder / path
    if base_path is not None and not target.resolve().is_relative_to((folder / base_path).resolve()):
        raise ConfigError(
            f"path {str(path)!r} leads out of base_path {str(base_path)!r}; write it below, or change base_path"
        )
    return target


class AtomicFile:
    """A file that appears under its name only when it is complete; missing folders above it are created.

    The bytes go to a hidden file next to it until :meth:`commit` moves that into place, so a process that dies leaves
    the previous file. Leaving the ``with`` block without a commit discards the bytes. After a :meth:`write` that failed, the
    file cannot be committed until the write is repeated. With the id of a *run*, the hidden file that a dead process of
    this run left is removed: only one process at a time has a run.

    A database, such as a ledger, is never replaced. With *replaces*, only empty files and files that begin with it are replaced.

    :raises ConfigError: if *path* cannot be written, is not a regular file, must not be replaced, or exists and *overwrite* is False.
    """

    def __init__(self, path: Path, *, overwrite: bool = True, run: str | None = None, replaces: bytes = b"") -> None:
        # Resolved, because a rename would replace a symbolic link and not the file it names.
        self.path = Path(os.path.realpath(path))  # Path.resolve refuses links in a circle
        self._hidden = self.path.with_name(f".{self.path.name}.{run or secrets.token_hex(4)}.tmp")
        self._overwrite, self._replaces = overwrite, replaces
        self._pending = bytearray()
        self._size = 0
        self._lacks: tuple[bytes, OSError] | None = None
        self._is_closed = False
        try:
            self._refuse_to_replace()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._hidden.unlink(missing_ok=True)
            self._file = self._hidden.open("xb", buffering=0)
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror or error}") from error

    def write(self, data: bytes) -> None:
        """Append all of *data*; after an OSError nothing is appended, and the call may be repeated."""
        before = len(self._pending)
        self._pending += data
        if len(self._pending) >= _BLOCK:
            try:
                with self._named():
                    self._flush()
            except OSError as error:
                del self._pending[before:]
                self._lacks = self._lacks or (data, error)
                raise
        if self._lacks is not None and self._lacks[0] == data:
            self._lacks = None

    def commit(self) -> None:
        """Move the file to its path. A second call does nothing; after an OSError the call may be repeated.

        :raises OSError: if the file cannot be moved, or a write failed and was not repeated: then the write's error.
        """
        if self._is_closed:
            return
        if self._lacks is not None:
            raise self._lacks[1]
        with self._named():
            if not self._file.closed:
                self._flush()
                os.fsync(self._file.fileno())
                self._file.close()
            self._refuse_to_replace()
            if self.path.exists():
                shutil.copymode(self.path, self._hidden)
            self._hidden.replace(self.path)
        self._is_closed = True

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Raise errors of the system with the path of the file, in place of no path or the hidden file's."""
        try:
            yield
        except OSError as error:
            if not error.errno:
                raise
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def discard(self) -> None:
        """Discard the bytes, unless they were committed."""
        if not self._is_closed:
            self._file.close()
            self._hidden.unlink(missing_ok=True)
            self._is_closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.discard()

    def _flush(self) -> None:
        # From the known end, so that the bytes of an interrupted write are overwritten.
        self._file.seek(self._size)
        written = 0
        while written < len(self._pending):
            written += self._file.write(self._pending[written:])
        self._file.truncate(self._size + written)
        self._size += written
        self._pending.clear()

    def _refuse_to_replace(self) -> None:
        if self.path.is_symlink():  # it is resolved
            raise FileExistsError(0, "it is a link that leads to itself")
        if is_of_system(self.path) and not self.path.parent.exists():
            raise FileNotFoundError(0, f"its folder {self.path.parent} does not exist")
        if (self.path.exists() and not self.path.is_file()) or is_of_system(self.path):
            raise FileExistsError(0, "it is not a regular file")
        if self.path.exists() and not self._overwrite:
            raise FileExistsError(0, "it exists, and overwrite is false")
        if self.path.exists():
            with open_file(self.path) as file:
                begins = file.read(max(len(_DATABASE), len(self._replaces)))
            if begins.startswith(_DATABASE):
                raise FileExistsError(0, "it is a SQLite database, such as a ledger; name another file")
            if begins and not begins.lower().startswith(self._replaces.lower()):
                raise FileExistsError(0, "it has other content than such a file; name another one, or move it away")
