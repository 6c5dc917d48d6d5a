"""Transcripts of AgentV: sessions that it imported from Codex, Copilot and other agents, with one message per line."""

from __future__ import annotations

from collections.abc import Iterator

from dicast import DataError
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.message_formats.blocks import ANY, read_content
from dicast.toolkit.parts import Part, ToolCall, ToolResult
from dicast.toolkit.roles import role_of
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from .values import Record, list_of, mapping_of, text_of

_FIELDS = ("test_id", "target", "transcript_token_usage", "transcript_duration_ms", "transcript_cost_usd")
_FAILED = ("error", "failed")


def is_line(record: Record) -> bool:
    """Return whether *record* is a line of a transcript."""
    return "message_index" in record and "role" in record and "target" in record


def is_of(beginning: Beginning, agent: str) -> bool:
    """Return whether *beginning* is that of a transcript of *agent*."""
    lines = [record for record in beginning.objects if is_line(record)]
    names = (text_of(mapping_of(record, "source"), "provider") or text_of(record, "target") or "" for record in lines)
    return any(name.startswith(agent) for name in names)


def version_of(beginning: Beginning) -> str | None:
    """Return the version of the format, or None if the file does not have it."""
    return next((version for record in beginning.objects if (version := text_of(record, "schema_version"))), None)


class Transcripts:
    """The transcripts in one file. The ids of the session and the test identify a transcript."""

    def __init__(self, reading: SessionReading) -> None:
        self._reading = reading
        self._open: dict[tuple[str | None, str | None], tuple[Conversation, dict[str, object]]] = {}

    def add(self, record: Record, line: int) -> None:
        """Add the message on *line*."""
        self._reading.totals.kinds["message"] += 1
        source = mapping_of(record, "source")
        key = (text_of(source, "session_id"), text_of(record, "test_id"))
        if key not in self._open:
            conversation = self._reading.conversation(key[0] or key[1] or self._reading.stem)
            context: dict[str, object] = {name: record[name] for name in _FIELDS if record.get(name) is not None}
            self._open[key] = conversation, context | ({"source": source} if source else {})
        conversation, _ = self._open[key]
        name = record.get("role")
        role = role_of(name)
        parts = self._parts(record)
        if role is None:
            parts = [self._reading.shapes.unknown_role(name, ""), *parts]
        if role == "assistant":
            conversation.model_call(model=text_of(source, "model"), time=text_of(record, "start_time"))
        conversation.add(role or str(name), parts, time=text_of(record, "start_time"))

    def sessions(self) -> Iterator[Session]:
        """Yield the transcripts in the order of the file."""
        for conversation, context in self._open.values():
            yield self._reading.end(conversation, context)

    def _parts(self, record: Record) -> list[Part]:
        try:
            parts = read_content(record.get("content"), "content", self._reading.shapes, ANY)
        except DataError as error:
            parts = [self._reading.malformed(error, "message")]
        for number, call in enumerate(list_of(record, "tool_calls")):
            if isinstance(call, dict) and (tool := text_of(call, "tool", "name")):
                id_ = text_of(call, "id")
                parts.append(ToolCall(id_, tool, call.get("input")))
                if "output" in call:
                    parts.append(ToolResult(id_, call["output"], tool, is_error=call.get("status") in _FAILED))
            else:
                parts.append(self._reading.unknown("tool call", call, f"tool_calls[{number}]"))
        return parts
