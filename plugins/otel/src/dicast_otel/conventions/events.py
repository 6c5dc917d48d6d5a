"""Messages in the events of a span: ``gen_ai.user.message``, ``gen_ai.choice``, ``gen_ai.content.prompt``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..span import SpanEvent
from .message import Collector
from .values import parsed, read_message, read_value

_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
}
CHOICE = "gen_ai.choice"
DETAILS = "gen_ai.client.inference.operation.details"
NAMES = frozenset((*_ROLES, CHOICE, "gen_ai.content.prompt", "gen_ai.content.completion", DETAILS))
"""The names of events that hold messages."""


def has_messages(events: Iterable[SpanEvent]) -> bool:
    """Return whether an event of *events* holds messages."""
    return any(event.name in NAMES for event in events)


def read_events(events: Iterable[tuple[str, Mapping[str, Any]]], inputs: Collector, outputs: Collector) -> None:
    """Collect the messages of *events*, pairs of a name and a body."""
    for name, attributes in events:
        body = _body(attributes)
        if name in _ROLES:
            read_message(_message(body, _ROLES[name]), name, inputs)
        elif name == CHOICE:
            _read_choice(body, outputs)
        elif name == "gen_ai.content.prompt":
            read_value(attributes.get("gen_ai.prompt", body.get("content")), "user", name, inputs)
        elif name == "gen_ai.content.completion":
            read_value(attributes.get("gen_ai.completion", body.get("content")), "assistant", name, outputs)


def _body(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body of an event: its attributes, or the JSON in one of them."""
    for key in ("gen_ai.event.content", "body"):
        value = parsed(attributes.get(key))
        if isinstance(value, dict):
            return value
    return attributes


def _message(body: Mapping[str, Any], role: str) -> dict[str, Any]:
    content = parsed(body.get("content"))
    content = content if isinstance(content, list) else body.get("content")
    message: dict[str, Any] = {"role": body.get("role") or role, "content": content}
    calls = parsed(body.get("tool_calls"))
    if isinstance(calls, list) and calls:
        message["tool_calls"] = calls
    id_ = body.get("id") or body.get("tool_call_id")
    if isinstance(id_, str):
        message["tool_call_id"] = id_
    if isinstance(body.get("name"), str):
        message["name"] = body["name"]
    return message


def _read_choice(body: Mapping[str, Any], outputs: Collector) -> None:
    if str(body.get("index") or 0) != "0":
        outputs.shapes.marked["choice after the first"] += 1
        return
    message = parsed(body.get("message"))
    before = len(outputs.messages)
    if isinstance(message, dict):
        read_message(_message({**body, **message}, "assistant"), CHOICE, outputs)
    elif isinstance(message, list):
        read_value([{"role": "assistant", "content": message}], "assistant", CHOICE, outputs)
    else:
        read_message(_message({**body, "content": body.get("content", message)}, "assistant"), CHOICE, outputs)
    stop = body.get("finish_reason")
    for added in outputs.messages[before:]:
        added.stop_reason = stop if isinstance(stop, str) else added.stop_reason
