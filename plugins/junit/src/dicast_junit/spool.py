"""Cases on disk, so that memory does not grow with the number of subjects."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

_BLOCK = 1 << 18


class Spool:
    """Bytes in a file without a name in *folder*, returned in their order.

    If the disk is full, they stay in memory until there is space; :meth:`parts` reports a disk that stays full.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115  # closed by __exit__
        self._pending = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Keep *data*."""
        self._pending += data
        if len(self._pending) >= _BLOCK:
            try:
                self._flush()
            except OSError:  # said by parts(), if it lasts: the data is still here
                return

    def parts(self) -> Iterator[bytes]:
        """Yield all bytes, each time from the beginning.

        :raises OSError: if the disk is full.
        """
        self._flush()
        self._file.seek(0)
        left = self._size
        while left and (part := self._file.read(min(left, _BLOCK))):
            left -= len(part)
            yield part

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _flush(self) -> None:
        # From the known end, so that a write that broke off is written over and not added to.
        self._file.seek(self._size)
        written = 0
        try:
            while written < len(self._pending):
                written += self._file.write(self._pending[written:])
        except OSError as error:  # the file has no name, its folder has
            raise OSError(error.errno, error.strerror, str(self._folder)) from error
        self._size += written
        self._pending.clear()
