"""Files that grow: each is read from its last position on, even if it is renamed."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from .lines import Line
from .tail import Identity, Position, Tail

GONE_SECONDS = 10.0
"""Seconds for which a renamed or deleted file is still read: its writer may still have it open."""

MAX_OPEN = 200
"""Most open files. Other files are opened again when they grow."""


class Following:
    """A file, or the ``*.jsonl`` files of a directory, read as they grow.

    *is_at_end* is always false, because a file may always grow. *is_behind* is true if the last reading left bytes for the next.
    """

    is_at_end = False
    is_behind = False

    def __init__(self, path: Path, max_line_bytes: int) -> None:
        self.path, self._most = path, max_line_bytes
        self._tails: dict[Identity, Tail] = {}
        self._left: dict[int, Position] = {}  # positions of an earlier process, by inode, newest last
        self._unreadable: dict[Path, None] = {}
        self._complaints: list[Line] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for tail in self._tails.values():
            tail.close()

    def restore(self, positions: Sequence[Position]) -> None:
        """Continue from the *positions* of an earlier process, the newest of a file last.

        Additions to a file that now has another name in its directory are read before the file in its place.
        """
        for position in positions:
            self._left.pop(position["inode"], None)
            self._left[position["inode"]] = position
        folders = {Path(position["path"]).parent for position in self._left.values()}
        named = {entry.inode(): entry for folder in folders if folder.is_dir() for entry in os.scandir(folder)}
        watched = {str(path) for path in self._paths()}
        for inode in list(self._left):
            entry = named.get(inode)
            if entry is not None and entry.path not in watched and entry.is_file():
                self._open(Path(entry.path), is_known=True)

    def read(self, most: int) -> Sequence[Line]:
        """Return the new complete lines, about *most* bytes of them; older files come first."""
        self._look()
        lines, self._complaints = self._complaints, []
        self.is_behind = False
        for tail in list(self._tails.values()):
            tail.is_behind = True
            while tail.is_behind:
                if most <= 0:
                    self.is_behind = True
                    return lines
                lines += tail.read()
                most -= tail.taken
            lines += self._part(tail)
        self._hold_fewer()
        return lines

    def rest(self) -> Sequence[Line]:
        """Return the last lines without a line end that are complete events, for the end of the input."""
        return [line for tail in self._tails.values() for line in tail.end(only_complete=True)]

    def positions(self) -> list[Position]:
        """Return the positions of the files that were read since the last call."""
        moved = [tail for tail in self._tails.values() if tail.changed]
        for tail in moved:
            tail.changed = False
        return [tail.position() for tail in moved]

    @property
    def unread(self) -> int:
        """Number of bytes that were not returned as lines yet."""
        return sum(tail.unread for tail in self._tails.values())

    @property
    def file_count(self) -> int:
        """Number of followed files."""
        return len(self._tails)

    def _look(self) -> None:
        """Open new files, and check which files have another name, or none."""
        named: dict[Identity, Path] = {}
        for path in self._paths():
            try:
                status = path.stat()
                if stat.S_ISFIFO(status.st_mode) or stat.S_ISDIR(status.st_mode):
                    self._complain(
                        path, "it is a named pipe or a directory"
                    )  # opening a pipe would wait for its writer
                    continue
                named[status.st_dev, status.st_ino] = path
                if (status.st_dev, status.st_ino) not in self._tails:
                    self._open(path)
            except FileNotFoundError:
                continue  # it does not exist yet, or was deleted after the directory was listed
            except OSError as error:
                self._complain(path, error.strerror)
        for identity, tail in self._tails.items():
            tail.path = named.get(identity, tail.path)
            if identity in named:
                tail.gone_since = None
            elif tail.gone_since is None:
                tail.gone_since = time.monotonic()

    def _complain(self, path: Path, reason: str | None) -> None:
        if path not in self._unreadable:
            self._unreadable[path] = None
            self._complaints.append(Line(str(path), 0, b"", f"the file cannot be read: {reason}"))

    def _paths(self) -> list[Path]:
        if not self.path.is_dir():
            return [self.path]
        return [Path(entry.path) for entry in sorted(os.scandir(self.path), key=_name) if entry.name.endswith(".jsonl")]

    def _open(self, path: Path, *, is_known: bool = False) -> None:
        """Follow a file; with *is_known*, only if an earlier process has read it."""
        tail = Tail(path, self._most)
        inode = tail.identity[1]
        # The same file, else one that took its place and begins alike.
        copied = [number for number in reversed(self._left) if self._left[number]["path"] == str(path)]
        for number in (inode, *copied):
            if number in self._left and tail.continues(self._left[number]):
                tail.seek(self._left.pop(number))
                break
        else:
            if is_known:
                tail.close()
                return
        self._tails[tail.identity] = tail

    def _part(self, tail: Tail) -> Iterator[Line]:
        """Close a file that has lost its name and has not grown for a while."""
        since = tail.gone_since
        if since is None or (tail.is_open and time.monotonic() < max(since, tail.read_at) + GONE_SECONDS):
            return
        yield from tail.end(only_complete=False)
        tail.close()
        del self._tails[tail.identity]

    def _hold_fewer(self) -> None:
        open_tails = [tail for tail in self._tails.values() if tail.is_open]
        if len(open_tails) <= MAX_OPEN:
            return
        open_tails.sort(key=lambda tail: tail.read_at)
        for tail in open_tails[:-MAX_OPEN]:
            if not tail.unread:
                tail.close()


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name
