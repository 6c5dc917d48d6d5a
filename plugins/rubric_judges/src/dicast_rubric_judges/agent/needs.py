"""Parts of a conversation without which its agent cannot be judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dicast import Subject, TraceEvent

_SYSTEM = ("system", "developer")


def without_calls(subject: Subject) -> str | None:
    """Return the name of the missing part if *subject* has no tool calls, else None."""
    events = _all(subject) if subject.kind == "session" else iter(subject.events)
    return None if any(event.type == "tool.called" for event in events) else "tool calls"


def without_policy(subject: Subject) -> str | None:
    """Return the name of the missing part if no system message precedes the end of *subject*, else None."""
    if any(_is_policy(event) for event in _all(subject)):
        return None
    return "policy: its trace has no system message; write the rules as criteria"


def _all(subject: Subject) -> Iterator[TraceEvent]:
    """Yield all events of the session up to the end of *subject*."""
    yield from subject.events
    yield from subject.trail


def _is_policy(event: TraceEvent) -> bool:
    if event.type == "message.sent":
        return event.payload.get("role") in _SYSTEM
    if event.type != "llm.call_completed":
        return False
    value = event.payload.get("input")
    messages = value.get("messages") if isinstance(value, Mapping) else value
    return isinstance(messages, list) and any(
        isinstance(message, Mapping) and message.get("role") in _SYSTEM for message in messages
    )
