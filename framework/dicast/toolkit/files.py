"""Opening of files that a user names: the kind of file is checked, the size is limited, and no call waits forever.

A path may lead to an endless device, a pipe without a writer, a socket, or a file that is too large for memory. For such a path every
function here raises :class:`UnreadableFile`, an OSError, with the kind of file and the fix, before it reads.
"""

from __future__ import annotations

import errno
import hashlib
import os
import select
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .._kernel.values.paths import descriptor

if TYPE_CHECKING:
    from typing_extensions import Buffer

MAX_DOCUMENT_BYTES = 16 * 2**20
"""Size limit of a text that is read whole: configuration, a prompt, a rubric."""

MAX_DATA_BYTES = 2**30
"""Size limit of data that is read whole, such as a saved baseline."""

MAX_PIPE_BYTES = 4 * 2**30
"""Size limit of a pipe that is copied to a temporary file."""

MAX_FILE_BYTES = 2**40
"""Size limit of a file that is read in pieces. Larger are only sparse files and files of the system, such as ``/proc/kcore``."""

WRITER_SECONDS = 3.0
"""Seconds to wait for a program that writes to a named pipe."""

_PIECE = 2**18
_SYSTEM = ("/proc/", "/sys/")
_READ_AGAIN = "this is a pipe, and the file is read more than once. Write its data to a regular file."
_NO_DATA = "this is a file of the system, whose data may have no end. Copy its data to a file."
_KINDS = {stat.S_IFSOCK: "a socket", stat.S_IFBLK: "a block device", stat.S_IFCHR: "a device"}
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""Flags for a descriptor that does not block: a pipe opens without a writer, and a file such as ``/proc/kmsg`` ends with its present data."""


class UnreadableFile(OSError):
    """A path that is not read. ``strerror`` has the reason and the fix, without the path."""

    def __init__(self, path: Path | str, reason: str, number: int = errno.EINVAL) -> None:
        super().__init__(number, reason, str(path))

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def error_reason(error: BaseException) -> str:
    """Return the reason of an error of reading or writing a path that the message names: the system's words, else the text of *error*."""
    reason: str | None = getattr(error, "strerror", None)
    return reason or str(error)


class _Data(FileIO):
    """The bytes of a regular file. A file of the system that has no data at the moment is an error, not an end."""

    def __init__(self, number: int, path: Path) -> None:
        super().__init__(number)
        self._path = path

    def readinto(self, buffer: Buffer, /) -> int:
        """Read into *buffer*; return the number of bytes."""
        try:
            size = cast("int | None", super().readinto(buffer))
        except OSError as error:
            raise UnreadableFile(self._path, f"the file cannot be read: {error.strerror}", error.errno or 0) from error
        if size is None:
            raise UnreadableFile(self._path, _NO_DATA, errno.EAGAIN)
        return size


def open_file(path: Path) -> BufferedReader:
    """Return a buffered reader of the regular file at *path*, which may be read from its start as often as needed.

    The null device is an empty file.

    :raises OSError: if the path cannot be opened, or is any other kind of file.
    """
    number = _open(path)
    try:
        mode = os.fstat(number).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            raise UnreadableFile(path, _READ_AGAIN)
        _check_size(path, number, MAX_FILE_BYTES)
        return BufferedReader(_Data(number, path), _PIECE)
    except BaseException:
        os.close(number)
        raise


@contextmanager
def open_pieces(path: Path, max_bytes: int = MAX_PIPE_BYTES) -> Iterator[Iterator[bytes]]:
    """Yield an iterator over the data at *path* in pieces. The path leads to a regular file, the null device, a terminal or a pipe.

    :raises OSError: if the path cannot be read, or has more than *max_bytes*; for a pipe after that many bytes.
    """
    number = _open(path)
    try:
        _check_size(path, number, max_bytes)
        yield _bounded(path, _pieces(path, number), max_bytes)
    finally:
        os.close(number)


def read_bytes(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """Return the data at *path*, at most *max_bytes* bytes.

    :raises OSError: as :func:`open_pieces`.
    """
    with open_pieces(path, max_bytes) as pieces:
        return b"".join(pieces)


def read_text(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES, encoding: str = "utf-8") -> str:
    r"""Return the text at *path*, with ``\n`` as line end, as ``Path.read_text`` does.

    :raises OSError: as :func:`open_pieces`.
    :raises UnicodeDecodeError: if the data is not in *encoding*.
    """
    return read_bytes(path, max_bytes).decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of the regular file at *path*, in hexadecimal.

    :raises OSError: as :func:`open_file`.
    """
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_regular(path: Path) -> None:
    """Refuse *path* if it leads to anything but a regular file. Call it before a library opens the file.

    A path without a file passes: the library reports it.

    :raises UnreadableFile: if it is a folder, a pipe, a socket or a device.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    _check_kind(path, mode)
    if not stat.S_ISREG(mode):
        raise UnreadableFile(path, _READ_AGAIN)
    if is_of_system(path):
        raise UnreadableFile(path, _NO_DATA)


def is_of_system(path: Path) -> bool:
    """Return whether *path* leads below ``/proc`` or ``/sys``, where a regular file may have no end."""
    return os.path.realpath(path).startswith(_SYSTEM)


def copy_input(path: Path | None, target: Path) -> None:
    """Copy the data at *path*, or of standard input for None, to the file *target*.

    :raises OSError: as :func:`open_pieces`; also if *target* cannot be written.
    """
    with _standard_input() if path is None else open_pieces(path) as pieces, target.open("wb") as copy:
        for piece in pieces:
            try:
                copy.write(piece)
            except OSError as error:  # such as a full disk
                reason = f"the data cannot be copied to a temporary file: {error.strerror}"
                raise UnreadableFile(target, reason, error.errno or errno.EIO) from error


@contextmanager
def _standard_input() -> Iterator[Iterator[bytes]]:
    if sys.stdin is None:
        raise UnreadableFile("-", "standard input is closed. Name a file.")
    yield _bounded("-", iter(partial(sys.stdin.buffer.read, _PIECE), b""), MAX_PIPE_BYTES)


def _open(path: Path) -> int:
    """Return a descriptor of the file at *path*: a copy of the shell's descriptor for ``/dev/fd/N``, else a descriptor that does not block."""
    number = descriptor(path)
    if number is not None and not stat.S_ISREG(os.fstat(number).st_mode):
        _check_kind(path, os.fstat(number).st_mode, is_open=True)
        return os.dup(number)
    _check_kind(path, path.stat().st_mode)  # opening a device can already change it
    opened = os.open(path, _FLAGS)
    try:
        _check_kind(path, os.fstat(opened).st_mode)
    except BaseException:
        os.close(opened)
        raise
    return opened


def _check_kind(path: Path, mode: int, *, is_open: bool = False) -> None:
    """Refuse folders, sockets, and devices except the null device and terminals. With *is_open* a socket passes, and is read like a pipe.

    :raises UnreadableFile: with the kind of file and the fix.
    """
    if stat.S_ISDIR(mode):
        raise UnreadableFile(path, "this is a folder. Name a file in it.", errno.EISDIR)
    kind = _KINDS.get(stat.S_IFMT(mode))
    if kind is None or (is_open and stat.S_ISSOCK(mode)) or (stat.S_ISCHR(mode) and _has_end(path)):
        return
    raise UnreadableFile(path, f"this is {kind}, not a file. Name a regular file.")


def _has_end(path: Path) -> bool:
    """Return whether the character device at *path* is the null device or a terminal."""
    if Path(os.devnull).exists() and path.samefile(os.devnull):
        return True
    number = descriptor(path)
    if number is not None:
        return os.isatty(number)
    return Path(os.path.realpath(path)).is_relative_to("/dev/pts") or str(path) == "/dev/tty"


def _check_size(path: Path, number: int, max_bytes: int) -> None:
    size = os.fstat(number).st_size
    if size > max_bytes:
        raise UnreadableFile(path, f"the file has {size:,} bytes, and at most {max_bytes:,} are read", errno.EFBIG)


def _pieces(path: Path, number: int) -> Iterator[bytes]:
    mode = os.fstat(number).st_mode
    if stat.S_ISFIFO(mode) and descriptor(path) is None:
        yield _first_piece(path, number)
    while piece := _next_piece(path, number, waits=not stat.S_ISREG(mode)):
        yield piece


def _first_piece(path: Path, number: int) -> bytes:
    """Return the first data of the named pipe at *path*, or empty bytes once a program has opened it for writing.

    :raises UnreadableFile: if no program opens it within :data:`WRITER_SECONDS`.
    """
    deadline = time.monotonic() + WRITER_SECONDS
    while True:
        try:
            if piece := os.read(number, _PIECE):
                return piece
        except BlockingIOError:
            return b""
        if time.monotonic() >= deadline:
            reason = f"this is a pipe with a name, and no program wrote to it for {WRITER_SECONDS:g} s. Name a file."
            raise UnreadableFile(path, reason, errno.ETIMEDOUT)
        time.sleep(0.02)


def _next_piece(path: Path, number: int, *, waits: bool) -> bytes:
    while True:
        try:
            return os.read(number, _PIECE)
        except BlockingIOError as error:
            if not waits:
                raise UnreadableFile(path, _NO_DATA, errno.EAGAIN) from error
            select.select([number], [], [])


def _bounded(path: Path | str, pieces: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > max_bytes:
            raise UnreadableFile(
                path, f"there are more than {max_bytes:,} bytes, the limit. Name a smaller file.", errno.EFBIG
            )
        yield piece
