"""Logs of model calls, with the messages of the request and the response."""

from __future__ import annotations

from collections.abc import Sequence

from dicast import DataError
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.message_formats import read_item
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.sessions import Session

from ..values import Record, list_of, mapping_of, objects_of, text_of

_SYSTEM = "You are OpenHands agent"
_FIELDS = ("cost", "latency_sec", "timestamp", "context_window")


def is_log(record: Record) -> bool:
    """Return whether *record* has the messages and the response of a model call."""
    return isinstance(record.get("messages"), list) and "choices" in mapping_of(record, "response")


def is_prompt(messages: Sequence[Record]) -> bool:
    """Return whether *messages* begin with the system prompt of OpenHands."""
    content = messages[0].get("content") if messages and messages[0].get("role") == "system" else None
    blocks = content if isinstance(content, list) else [{"text": content}]
    text = blocks[0].get("text") if blocks and isinstance(blocks[0], dict) else None
    return isinstance(text, str) and text.startswith(_SYSTEM)


def read_log(record: Record, reading: SessionReading) -> Session:
    """Return the session of a log: the messages of the request, then the choices of the response."""
    response = mapping_of(record, "response")
    conversation = reading.conversation(reading.stem)
    _add_messages(list_of(record, "messages"), "messages", conversation, reading)
    usage = mapping_of(response, "usage") or None
    for number, choice in enumerate(objects_of(response, "choices")):
        model = text_of(response, "model")
        stop = text_of(choice, "finish_reason")
        conversation.model_call(model=model, usage=usage, cost_usd=record.get("cost"), stop_reason=stop)
        _add_messages([choice.get("message")], f"response.choices[{number}].message", conversation, reading)
    return reading.end(conversation, {key: record[key] for key in _FIELDS if record.get(key)})


def read_messages(record: Record, reading: SessionReading) -> Session:
    """Return the session of a list of messages."""
    conversation = reading.conversation(text_of(record, "id") or reading.stem)
    _add_messages(list_of(record, "messages"), "messages", conversation, reading)
    return reading.end(conversation)


def _add_messages(messages: list[object], path: str, conversation: Conversation, reading: SessionReading) -> None:
    for number, message in enumerate(messages):
        reading.totals.kinds["message"] += 1
        try:
            read_item(message, f"{path}[{number}]", "openai", reading.shapes, conversation)
        except DataError as error:
            conversation.add("context", [reading.malformed(error, "message")])
