"""Folders of conversations with a file for each event: of the older application, of its newer server, and of the SDK."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from dicast.toolkit.files import read_bytes
from dicast.toolkit.session_folders import SessionFolder

_NUMBERED = re.compile(r"^(?:event-)?(\d+)(?:-[0-9A-Fa-f-]+)?\.json$")
_NAMED = re.compile(r"^[0-9A-Fa-f-]{32,36}\.json$")
_EVENTS, _SERVER = "events", "v1_conversations"
_CACHE = "event_cache"
"""The folder in which the older application has pages of the same events."""


def folders_of_events(cls: Any, root: Path, names: Sequence[str]) -> Sequence[SessionFolder]:
    """Return the folders with a file for each event below *root*, from the *names* of its files."""
    files: dict[Path, list[Path]] = {}
    pages: dict[Path, list[Path]] = {}
    for name in names:
        path = root / name
        folder = path.parent.absolute()
        is_numbered = folder.name == _EVENTS and _NUMBERED.match(path.name)
        if is_numbered or (folder.parent.name == _SERVER and _NAMED.match(path.name)):
            files.setdefault(path.parent, []).append(path)
        elif folder.name == _CACHE:
            pages.setdefault(path.parent, []).append(path)
    return [
        SessionFolder(_name(root, folder), folder, tuple(parts), _order, tuple(pages.get(folder.parent / _CACHE, ())))
        for folder, parts in files.items()
    ]


def _name(root: Path, folder: Path) -> str:
    """Return the path of the conversation below *root*, or its name if it is *root* or above."""
    whole = folder.absolute()
    conversation = whole.parent if whole.name == _EVENTS else whole
    top = root.absolute()
    return conversation.relative_to(top).as_posix() if top in conversation.parents else conversation.name


def _order(path: Path) -> tuple[int, str, str]:
    """Return the number in the name of the file, else the time of its event."""
    if match := _NUMBERED.match(path.name):
        return int(match[1]), "", path.name
    try:
        event = orjson.loads(read_bytes(path))
    except (OSError, orjson.JSONDecodeError):
        event = None
    return 0, str(event.get("timestamp")) if isinstance(event, dict) else "", path.name
