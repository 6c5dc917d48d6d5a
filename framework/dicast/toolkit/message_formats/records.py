"""Whole records of conversations: the keys with the messages of each dialect, and the dialect of a message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NoReturn

from dicast import DataError, Problem, nearest

from ..conversations import Conversation
from . import gemini, langchain, responses, sharegpt
from .blocks import ANTHROPIC, ANY, OPENAI, Block, read_content
from .chat import read_message
from .shapes import Shapes, refuse

Format = Literal["auto", "openai", "responses", "anthropic", "gemini", "sharegpt", "langchain"]
FORMATS: tuple[Format, ...] = ("auto", "openai", "responses", "anthropic", "gemini", "sharegpt", "langchain")

_LISTS = ("messages", "contents", "conversations", "conversation", "items")
"""The keys of a record that hold a list of messages; the first of them is read."""

_OTHER_KEYS = frozenset(("type", "parts", "from"))
"""Fields that a message of another dialect than OpenAI Chat or Anthropic has."""

_SHOWN_KEYS = 10

ReadItem = Callable[[Block, str, Shapes, Conversation], None]

_READERS: Mapping[str, ReadItem] = {
    "openai": partial(read_message, types=OPENAI),
    "anthropic": partial(read_message, types=ANTHROPIC),
    "any": partial(read_message, types=ANY),
    "responses": responses.read_response_item,
    "gemini": gemini.read_gemini,
    "sharegpt": sharegpt.read_sharegpt,
    "langchain": langchain.read_langchain,
}


def read_record(record: dict[str, Any], format: Format, shapes: Shapes, conversation: Conversation) -> str:
    """Add the messages of *record* to *conversation*, and return the name of its format. The messages are taken out of the record.

    Unknown shapes are recorded in *shapes*. The format of a record with plain texts alone is ``openai``; if it has shapes of several
    dialects, their names are joined by ``+``.

    :raises DataError: (without a line) if it is no conversation.
    """
    key = next((key for key in _LISTS if key in record), None)
    if key is not None:
        _add_prompts(record, shapes, conversation)
        lists = [(key, _messages(record.pop(key), key))]
    elif _is_response(record):
        shapes.dialects.add("responses")
        lists = responses.response_items(record, shapes, conversation)
    elif "candidates" in record:
        shapes.dialects.add("gemini")
        lists = []
    else:
        _refuse_record(record)
    for name, items in lists:
        if name == "output" and items:
            _start_output(record, conversation)
        for number, item in enumerate(items):
            read_item(item, f"{name}[{number}]", format, shapes, conversation)
    gemini.add_candidates(record, shapes, conversation)
    return format if format != "auto" else "+".join(sorted(shapes.dialects)) or "openai"


def read_item(item: object, path: str, format: Format, shapes: Shapes, conversation: Conversation) -> None:
    """Add one message or item of a dialect at *path* to *conversation*.

    :raises DataError: (without a line) if it is no message.
    """
    if not isinstance(item, dict):
        refuse("a message is an object with a 'role'", path)
    if format == "auto" and _OTHER_KEYS.isdisjoint(item):  # as most messages
        read_message(item, path, shapes, conversation, ANY)
        return
    _READERS[_dialect(item) if format == "auto" else format](item, path, shapes, conversation)


def is_message(item: object) -> bool:
    """Return whether *item* looks like one message, and not like a record of several."""
    if not isinstance(item, dict) or any(isinstance(item.get(key), list) for key in _LISTS):
        return False
    return "role" in item or "from" in item or isinstance(item.get("type"), str)


def failure_of(record: Mapping[str, Any]) -> str | None:
    """Return the error of a record that failed where it was recorded; None for a conversation."""
    error = record.get("error")
    if record.get("object") == "response" and record.get("status") in ("failed", "cancelled"):
        return _error_text(error) or f"the response has the status {record['status']!r}"
    if (reason := gemini.failure_of_candidates(record)) is not None:
        return reason
    if any(record.get(key) for key in (*_LISTS, "output", "candidates")):
        return None
    feedback = record.get("promptFeedback") or record.get("prompt_feedback")
    if isinstance(feedback, dict) and feedback.get("blockReason"):
        return f"the prompt was blocked: {feedback['blockReason']}"
    return _error_text(error) if error else None


def _refuse_record(record: Mapping[str, Any]) -> NoReturn:
    """Refuse a record without messages, and name its keys.

    :raises DataError: always, without a line.
    """
    keys = ", ".join(list(record)[:_SHOWN_KEYS]) or "no keys"
    rest = ", …" if len(record) > _SHOWN_KEYS else ""
    hint = next((near for key in record if (near := nearest(key, (*_LISTS, "input", "output")))), None)
    expected = "'messages', a list of messages ('contents' for Gemini, 'conversations' for ShareGPT, 'input' and 'output' for Responses)"
    problem = f"a conversation needs {expected}; the record has {keys}{rest}"
    raise DataError(Problem(problem, path="messages", hint=hint))


def _error_text(error: object) -> str | None:
    if isinstance(error, dict):
        parts = [error[key] for key in ("type", "code", "message") if isinstance(error.get(key), str)]
        return ": ".join(parts) or str(error)
    return None if error is None else str(error)


def _dialect(item: Block) -> str:
    """Return the name of the reader of *item*."""
    if item.get("type") is None:
        return "gemini" if "parts" in item else "sharegpt" if "from" in item and "role" not in item else "any"
    if langchain.is_langchain(item):
        return "langchain"
    if "role" in item:
        return "gemini" if "parts" in item else "any"
    return "responses"


def _is_response(record: Mapping[str, Any]) -> bool:
    """Return whether *record* is a response object of OpenAI, or has lists of items like one."""
    if record.get("object") == "response":
        return True
    return any(isinstance(record.get(key), list) for key in ("input", "output"))


def _messages(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(f"a conversation needs {key!r}, a list of messages", key)
    return value


def _add_prompts(record: dict[str, Any], shapes: Shapes, conversation: Conversation) -> None:
    """Add the system prompt that a record has next to its messages, which is taken out of it."""
    system = record.get("system")
    if (isinstance(system, str) and system) or (
        isinstance(system, list) and all(isinstance(block, dict) for block in system)
    ):
        if isinstance(system, list):
            shapes.dialects.add("anthropic")
        conversation.add("system", read_content(record.pop("system"), "system", shapes, ANTHROPIC))
    gemini.add_system(record, shapes, conversation)


def _start_output(record: Mapping[str, Any], conversation: Conversation) -> None:
    """Start the answer of a response: its prompt may be unknown."""
    if not conversation.has_turns:
        conversation.start_turn()
    responses.add_response_call(record, conversation)
