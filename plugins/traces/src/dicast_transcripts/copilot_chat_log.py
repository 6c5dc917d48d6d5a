"""Logs of chat sessions in VS Code: JSON lines that build the document of a session step by step.

A line is ``{"kind": 0, "v": document}`` or changes a value at the path ``k``: kind 1 sets it to ``v``, kind 2 cuts a list to ``i`` items and appends
the items ``v``, and kind 3 deletes it. See ``objectMutationLog.ts`` in the source of VS Code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from .copilot_chat import read_chat
from .values import Record, mapping_of

_START, _SET, _APPEND, _DELETE = range(4)


def is_operation(record: Record) -> bool:
    """Return whether *record* is a line of a log."""
    kind = record.get("kind")
    return type(kind) is int and kind in range(4) and ("v" in record or "k" in record)


def is_start(record: Record) -> bool:
    """Return whether *record* is the first line of a log of a chat."""
    document = mapping_of(record, "v")
    return is_operation(record) and record["kind"] == _START and "requests" in document and "sessionId" in document


class ChatLog:
    """The document of a chat, built by the lines of its log."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._document: dict[str, Any] | None = None

    def add(self, record: Record) -> None:
        """Add a line. A change at a place that does not exist is marked."""
        if record["kind"] == _START and isinstance(record.get("v"), dict):
            self._document = record["v"]
        elif self._document is None or not _is_changed(self._document, record):
            self._reading.unknown("change of a chat", str(record.get("k"))[:60], "k")

    def sessions(self) -> Iterator[Session]:
        """Yield the session, if there is one."""
        if self._document is not None:
            yield read_chat(self._document, self._reading)


def _is_changed(document: dict[str, Any], record: Record) -> bool:
    """Apply the change *record* to *document*; return False if its place does not exist."""
    path, value = record.get("k"), record.get("v")
    if not isinstance(path, list) or not path:
        return False
    holder, key = _value_at(document, path[:-1]), path[-1]
    if record["kind"] == _APPEND:
        items, size = _value_at(document, path), record.get("i")
        if items is None and isinstance(holder, dict) and isinstance(key, str):
            items = holder[key] = []
        if not isinstance(items, list) or not isinstance(value, list | None):
            return False
        if type(size) is int:
            del items[size:]
        items += value or ()
        return True
    if isinstance(holder, dict) and isinstance(key, str):
        if record["kind"] == _SET:
            holder[key] = value
        else:
            holder.pop(key, None)
        return True
    if not isinstance(holder, list) or type(key) is not int or not 0 <= key < len(holder) + (record["kind"] == _SET):
        return False
    holder[key : key + 1] = [value] if record["kind"] == _SET else []
    return True


def _value_at(value: Any, path: Sequence[object]) -> Any:
    """Return the value at *path* below *value*, or None if there is none."""
    for key in path:
        if isinstance(value, dict) and isinstance(key, str):
            value = value.get(key)
        elif isinstance(value, list) and type(key) is int and 0 <= key < len(value):
            value = value[key]
        else:
            return None
    return value
