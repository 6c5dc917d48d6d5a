"""Conversations: detection of their records, and the keys that name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..toolkit.beginning import Beginning
from ..toolkit.message_formats import is_message

_LISTS = ("messages", "contents", "conversations", "conversation")
_IDS = ("id", "conversation_id", "session_id", "thread_id", "chat_id", "dialog_id", "dialogue_id", "uuid")
"""The keys that name a conversation, the likeliest first."""

_SECOND_NAMES = (
    "trial",
    "epoch",
    "run",
    "run_id",
    "attempt",
    "sample",
    "model",
    "variant",
    "seed",
    "turn",
    "index",
    "split",
)
"""The keys that distinguish conversations with the same id, the likeliest first."""

_ANSWERS = ("output", "response", "completion", "answer", "prediction", "generated", "reply")


def is_conversation(record: object) -> bool:
    """Return whether *record* is a conversation in a form that ``traces/messages`` reads."""
    if isinstance(record, list):
        return bool(record) and all(map(is_message, record))
    if not isinstance(record, dict):
        return False
    if record.get("object") == "response":
        return True
    for key in _LISTS:
        if isinstance(messages := record.get(key), list):
            return bool(messages) and all(map(is_message, messages)) and not _is_row(record, messages)
    output = record.get("output")
    return isinstance(output, list) and bool(output) and all(map(is_message, output))


def _is_row(record: Mapping[str, Any], messages: list[Any]) -> bool:
    """Return whether *record* is a row: the *messages* are a prompt, and another key has the answer as text."""
    last = messages[-1].get("role", messages[-1].get("from"))
    return last in ("user", "human") and any(isinstance(record.get(name), str) for name in _ANSWERS)


def are_conversations(beginning: Beginning) -> bool:
    """Return whether a file with this *beginning* has conversations, on lines or in an array, or is one conversation."""
    records = beginning.records
    if beginning.layout == "array" and records and all(map(is_message, records)):
        return True  # the messages of one conversation
    return bool(records) and is_conversation(records[0])


def id_templates(record: object) -> list[tuple[str, str]]:
    """Return templates of ids for conversations such as *record*, the likeliest first, each with the reason for it."""
    if not isinstance(record, dict):
        return []
    plain = [name for name, value in record.items() if isinstance(value, str | int) and not isinstance(value, bool)]
    ids = [name for name in _IDS if name in plain]
    templates = [(f"{{{{ {name} }}}}", f"key {name!r} (guessed: its name)") for name in ids]
    second_names = [name for name in _SECOND_NAMES if name in plain and name not in ids]
    return templates + [
        (f"{{{{ {name} }}}}-{{{{ {second} }}}}", f"keys {name!r} and {second!r} (guessed: {name!r} alone occurs twice)")
        for name in ids
        for second in second_names
    ]
