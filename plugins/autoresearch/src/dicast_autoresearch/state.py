"""What a session has to know after a kill: the tree to go back to, where the repository stood, and what was being written."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from dicast import AtomicFile

from .git import Place
from .session import FOLDER
from .snapshot import Entry, Snapshot

_FILE = f"{FOLDER}/state.json"
_LAST = f"{FOLDER}/last_run.json"


@attrs.frozen
class Pending:
    """A round that is under way.

    :ivar before: the tree to go back to.
    :ivar stand: where the repository stood.
    :ivar mark: by which the processes of the round are known.
    :ivar own: the session's own files and git's, as long as a proposer or what measures may change them.
    :ivar entry: what is about to be committed and written down.
    """

    before: Snapshot
    stand: Place
    mark: str
    own: Mapping[Path, bytes | None] = attrs.field(factory=dict)
    entry: Mapping[str, Any] | None = None


def save(root: Path, pending: Pending) -> None:
    """Write down that a round is under way."""
    files = {path: [entry.mode, entry.blob, list(entry.signature)] for path, entry in pending.before.files.items()}
    stand = attrs.asdict(pending.stand) | {"index": _text(pending.stand.index)}
    _write(
        root / _FILE,
        {
            "files": files,
            "folders": sorted(pending.before.folders),
            "nested": dict(pending.before.nested),
            "stand": stand,
            "mark": pending.mark,
            "own": {str(path): _text(data) for path, data in pending.own.items()},
            "entry": pending.entry,
        },
    )


def load(root: Path) -> Pending | None:
    """The round that was under way; None where there is none."""
    found = _read(root / _FILE)
    if found is None:
        return None
    files = {path: Entry(mode, blob, tuple(signature)) for path, (mode, blob, signature) in found["files"].items()}
    stand = Place(**{**found["stand"], "index": _bytes(found["stand"]["index"])})
    own = {Path(path): _bytes(text) for path, text in found["own"].items()}
    before = Snapshot(files, frozenset(found["folders"]), found["nested"])
    return Pending(before, stand, found["mark"], own, found["entry"])


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def clear(root: Path) -> None:
    """Nothing is under way."""
    (root / _FILE).unlink(missing_ok=True)


def save_last(root: Path, run: Mapping[str, Any]) -> None:
    """Keep the newest measured run, for ``decide`` and ``log``."""
    _write(root / _LAST, run)


def load_last(root: Path) -> dict[str, Any] | None:
    """The newest measured run that no entry of the log is about."""
    return _read(root / _LAST)


def clear_last(root: Path) -> None:
    """The newest run is in the log."""
    (root / _LAST).unlink(missing_ok=True)


def _write(path: Path, value: object) -> None:
    with AtomicFile(path) as file:
        # names of files may be no UTF-8; Python's writer keeps them as escapes
        file.write(json.dumps(value).encode())
        file.commit()


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return value if isinstance(value, dict) else None
