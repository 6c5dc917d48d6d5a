"""One file that grows, and the position of its reading."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .lines import Line, Splitter

HEAD = 1024
"""Number of bytes at the start of a file that distinguish it from another file with its name."""

CHUNK = 2**18
"""Most bytes of one read. Between two reads the watch may end."""

GZIP = b"\x1f\x8b"

Position = Mapping[str, Any]
"""Position in one file: its ``path``, ``inode``, ``offset`` and ``line``, and the digest ``head`` of its first bytes."""

Identity = tuple[int, int]
"""A file's device and inode."""


class Tail:
    """A file that is read line by line as it grows. It stays the same file under another name, or without a name.

    *gone_since* is the time when its name belonged to another file or to none. *changed* is True if it was read since *changed*
    was set to false. *taken* is the number of bytes of the last reading, and *is_behind* is True if it ended within the file.
    """

    def __init__(self, path: Path, max_line_bytes: int) -> None:
        """Open the file.

        :raises OSError: when it cannot be opened.
        """
        self.path, self._most = path, max_line_bytes
        self.gone_since: float | None = None
        self.changed = self.is_behind = False
        self.taken = 0
        self.read_at = time.monotonic()
        self._file: int | None = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        status = os.fstat(self._file)
        self.identity: Identity = (status.st_dev, status.st_ino)
        self._refused = False
        self._restart()

    def read(self) -> Iterator[Line]:
        """Yield the lines that were completed since the last call, at most a chunk of bytes.

        A file that has become shorter, or now starts with other bytes, is read from its start again.
        """
        self.taken, self.is_behind = 0, False
        size = self.size()
        at = self._lines.offset + len(self._lines.rest)
        if size == at or self._refused:
            return
        if size < at or self._begins() != self._head:
            self._restart()
            at = 0
        data = self._at(at, CHUNK)
        if at == 0 and data.startswith(GZIP):
            self._refused = True
            yield Line(
                str(self.path), 1, b"", "a compressed file is not followed; unpack it, or judge it with dicast run"
            )
            return
        self.changed, self.read_at = True, time.monotonic()
        self.taken, self.is_behind = len(data), len(data) == CHUNK
        yield from self._lines.cut(data)
        self._note_head()

    def end(self, *, only_complete: bool) -> Iterator[Line]:
        """Yield the last line without a line end. With *only_complete*, only if it is a complete object."""
        line = self._lines.last() if only_complete else self._lines.finish()
        if line is not None:
            self.changed = True
            yield line

    def size(self) -> int:
        """Return the size of the file in bytes; the size that was read if its name is gone."""
        if self._file is not None:
            return os.fstat(self._file).st_size
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return self._lines.offset
        is_same_file = (status.st_dev, status.st_ino) == self.identity
        return status.st_size if is_same_file else self._lines.offset

    @property
    def unread(self) -> int:
        """Number of bytes that were not returned as lines yet."""
        return 0 if self._refused else max(0, self.size() - self._lines.offset)

    @property
    def is_open(self) -> bool:
        """True if the file is open."""
        return self._file is not None

    def position(self) -> Position:
        """Return the position of the reading."""
        lines = self._lines
        return {
            "path": str(self.path),
            "inode": self.identity[1],
            "offset": lines.offset,
            "line": lines.number,
            "skipping": lines.skipping,
            "head": self._head,
            "head_bytes": self._head_bytes,
        }

    def continues(self, position: Position) -> bool:
        """Return True if *position* is a position in this file, by its first bytes."""
        head = _digest(self._at(0, position["head_bytes"]))
        return bool(self.size() >= position["offset"] and head == position["head"])

    def seek(self, position: Position) -> None:
        """Continue from *position*."""
        self._lines.offset, self._lines.number = position["offset"], position["line"]
        self._lines.skipping = position["skipping"]
        self._head, self._head_bytes = position["head"], position["head_bytes"]

    def close(self) -> None:
        """Close the file; it is opened again when it has grown."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _at(self, offset: int, count: int) -> bytes:
        """Return the bytes from *offset* on, at most *count*."""
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        os.lseek(self._file, offset, os.SEEK_SET)  # os.pread does not exist on every system
        return os.read(self._file, count)

    def _restart(self) -> None:
        self._lines = Splitter(str(self.path), self._most)
        self._head, self._head_bytes = "", 0

    def _begins(self) -> str:
        return _digest(self._at(0, self._head_bytes))

    def _note_head(self) -> None:
        size_ = min(HEAD, self._lines.offset)
        if size_ != self._head_bytes:
            self._head, self._head_bytes = _digest(self._at(0, size_)), size_


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else ""
