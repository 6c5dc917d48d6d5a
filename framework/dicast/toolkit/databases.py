"""SQLite databases of other programs, opened for reading alone."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .files import check_regular

SQLITE = b"SQLite format 3\0"
"""The first bytes of a SQLite database."""


def database_files(path: Path) -> tuple[Path, ...]:
    """Return the files that hold the data of the database at *path*: itself, and its write-ahead log if there is one."""
    log = path.with_name(f"{path.name}-wal")
    return (path, log) if log.is_file() and log.stat().st_size > 0 else (path,)


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the database at *path*. With a write-ahead log next to it, a copy of both is opened; nothing is written next to the database.

    :raises sqlite3.Error: if it is no database.
    :raises UnreadableFile: if it is no regular file.
    """
    check_regular(path)
    files = database_files(path)
    with ExitStack() as stack:
        mode = "mode=ro&immutable=1"
        if len(files) > 1:
            folder, mode = stack.enter_context(TemporaryDirectory(prefix="dicast-")), "mode=rw"
            path, *_ = [Path(shutil.copy(file, folder)) for file in files]
        yield stack.enter_context(closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)))
