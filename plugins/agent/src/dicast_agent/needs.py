"""What a conversation has to have, so that something can be said of its agent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dicast import Subject, TraceEvent

_SYSTEM = ("system", "developer")


def without_calls(subject: Subject) -> str | None:
    """Tool calls, where the agent made none in *subject*."""
    events = _all(subject) if subject.kind == "session" else iter(subject.events)
    return None if any(event.type == "tool.called" for event in events) else "tool calls"


def without_policy(subject: Subject) -> str | None:
    """The policy, where no system message has come up to *subject*."""
    if any(_is_policy(event) for event in _all(subject)):
        return None
    return "policy: its trace has no system message; write the rules as criteria"


def _all(subject: Subject) -> Iterator[TraceEvent]:
    """All that had happened in the session."""
    yield from subject.events
    yield from subject.trail


def _is_policy(event: TraceEvent) -> bool:
    if event.type == "message.sent":
        return event.payload.get("role") in _SYSTEM
    if event.type != "llm.call_completed":
        return False
    given = event.payload.get("input")
    messages = given.get("messages") if isinstance(given, Mapping) else given
    return isinstance(messages, list) and any(
        isinstance(message, Mapping) and message.get("role") in _SYSTEM for message in messages
    )
