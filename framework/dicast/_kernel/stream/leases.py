"""A run belongs to one process at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..values.errors import ConfigError


def _lock_file(run_id: str) -> Path:
    return Path(tempfile.gettempdir()) / f"dicast-{run_id}.lock"


@contextmanager
def claimed(run_id: str) -> Iterator[None]:
    """Hold the run while the block runs; the operating system lets go of it when the process dies.

    :raises ConfigError: when another process of this machine holds it.
    """
    try:
        import fcntl
    except ImportError:  # not POSIX: nobody is kept out
        yield
        return
    path = _lock_file(run_id)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigError(f"run {run_id} is still under way in another process; wait for it, or end it") from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def alive(run_id: str) -> bool:
    """Whether a process of this machine holds the run."""
    if not _lock_file(run_id).exists():
        return False
    try:
        with claimed(run_id):
            return False
    except ConfigError:
        return True
