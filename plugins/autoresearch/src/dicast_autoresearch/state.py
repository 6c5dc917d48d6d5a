"""The session's own state in ``.auto``: the round under way, the newest run, the loop's ref, and the lock."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

from .session import FOLDER

_FILE = f"{FOLDER}/state.json"
_LAST = f"{FOLDER}/last_run.json"
_REF = f"{FOLDER}/loop.json"
_LOCK = f"{FOLDER}/lock"


@attrs.frozen
class Pending:
    """A round under way.

    :ivar mark: the value of a variable by which the processes of the round are found.
    :ivar folder: the temporary folder of its checkouts.
    :ivar base: the commit that it started from.
    :ivar entry: the entry of the log, with the commit to which the loop's ref is moved.
    """

    mark: str
    folder: str
    base: str
    entry: Mapping[str, Any] | None = None


def save(root: Path, pending: Pending) -> None:
    """Record that a round is under way."""
    _write(root / _FILE, attrs.asdict(pending))


def load(root: Path) -> Pending | None:
    """Return the round under way; None if there is none."""
    pending = _read(root / _FILE)
    if pending is None:
        return None
    if not {"mark", "folder", "base"} <= pending.keys():
        raise ConfigError(
            f"{root / _FILE}: an older release stopped in the middle of a round. Finish the round with that release, or check git"
            " status and delete the file"
        )
    return Pending(pending["mark"], pending["folder"], pending["base"], pending.get("entry"))


def clear(root: Path) -> None:
    """Record that no round is under way."""
    (root / _FILE).unlink(missing_ok=True)


def save_last(root: Path, run: Mapping[str, Any]) -> None:
    """Store the newest run for ``decide`` and ``log``."""
    _write(root / _LAST, run)


def load_last(root: Path) -> dict[str, Any] | None:
    """Return the newest run that is not in the log yet."""
    return _read(root / _LAST)


def clear_last(root: Path) -> None:
    """Record that the newest run is in the log."""
    (root / _LAST).unlink(missing_ok=True)


def save_ref(root: Path, ref: str) -> None:
    """Record the ref of the session's loop."""
    _write(root / _REF, {"ref": ref})


def load_ref(root: Path) -> str | None:
    """Return the ref of the session's loop; None if it has none yet."""
    recorded = _read(root / _REF)
    return None if recorded is None else str(recorded["ref"])


@contextmanager
def exclusive(root: Path) -> Iterator[None]:
    """Keep other processes from working on the session below *root*.

    :raises ConfigError: if another process does, or the system has no such locks (Windows).
    """
    try:
        import fcntl  # missing on Windows, and reading a session needs no lock
    except ImportError as error:
        message = (
            f"dicast autoresearch needs file locks and sessions of POSIX, which this system lacks ({sys.platform}): run it in WSL,"
            " on Linux or on macOS"
        )
        raise ConfigError(message) from error
    (root / FOLDER).mkdir(exist_ok=True)
    with (root / _LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"another dicast autoresearch works in {root}: wait for its end, or stop it"
            raise ConfigError(message) from error
        yield


def _write(path: Path, value: object) -> None:
    try:
        with AtomicFile(path) as file:
            # file names may be invalid UTF-8; Python's writer keeps them as escapes
            file.write(json.dumps(value).encode())
            file.commit()
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror or error}") from error


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(read_bytes(path, MAX_DATA_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return value if isinstance(value, dict) else None
