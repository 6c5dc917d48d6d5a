"""The output of ``opencode run --format json``: one event per line, with a part of the answer."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import TextPart
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record, mapping_of, text_of
from .parts import add_error, read_part

_TYPES = ("text", "tool_use", "step_start", "step_finish", "reasoning", "error")


def is_line(record: Record) -> bool:
    """Return whether *record* is an event of the output."""
    return "sessionID" in record and record.get("type") in _TYPES and ("part" in record or "error" in record)


@attrs.define
class Stream:
    """Collects the events of one file by session."""

    _reading: SessionReading
    _open: dict[str, Conversation] = attrs.field(factory=dict)

    def add(self, record: Record) -> None:
        """Add an event."""
        id_ = str(record["sessionID"])
        if id_ not in self._open:
            self._open[id_] = self._reading.conversation(id_)
            self._open[id_].start_turn()
        conversation, part = self._open[id_], mapping_of(record, "part")
        if record["type"] == "error":
            self._reading.totals.kinds["error"] += 1
            error = record.get("error")
            text = text_of(error, "message", "name") if isinstance(error, dict) else error
            conversation.add("context", [TextPart(str(text))])
            add_error(mapping_of(record, "error"), str(text), conversation)
            return
        if part.get("type") == "step-finish":
            usage = mapping_of(part, "tokens") or None
            conversation.model_call(usage=usage, cost_usd=part.get("cost"), stop_reason=text_of(part, "reason"))
        parts = read_part(part, "part", self._reading)
        if parts:
            conversation.add("assistant", parts)

    def sessions(self) -> Iterator[Session]:
        """Yield the sessions."""
        for conversation in self._open.values():
            yield self._reading.end(conversation)
