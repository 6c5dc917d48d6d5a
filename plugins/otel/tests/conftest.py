"""Builders of spans, and the conversations that are read of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from dicast import Due, ReadCounts, TraceEvent
from dicast_otel import Spans, spans


@attrs.frozen
class Reading:
    """The content of a file: the messages, calls and results of each session as lines, failures, events and counts."""

    sessions: Mapping[str, Sequence[str]]
    parents: Mapping[str, str | None]
    failures: Mapping[str, str]
    events: Mapping[str, Sequence[TraceEvent]]
    contexts: Mapping[str, Mapping[str, Any]]
    counts: ReadCounts
    digest: str

    @property
    def only(self) -> Sequence[str]:
        """The lines of the only session."""
        assert len(self.sessions) == 1, (self.sessions, self.failures)
        return next(iter(self.sessions.values()))

    def payloads(self, type: str) -> list[Mapping[str, Any]]:
        """Return the payloads of the events of a type."""
        return [event.payload for events in self.events.values() for event in events if event.type == type]


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _lines(events: Iterable[TraceEvent]) -> list[str]:
    lines: list[str] = []
    turn: list[str] = []
    for event in events:
        payload: Mapping[str, Any] = event.payload
        if event.type == "message.sent":
            turn.append(f"{payload['role']}: {payload['text']}")
        elif event.type == "tool.called":
            turn.append(f"call {payload['tool_name']} {_text(payload['input'])}")
        elif event.type == "tool.completed":
            turn.append(f"result {_text(payload['output'])}")
        elif event.type == "tool.failed":
            turn.append(f"failed {payload['error']}")
        elif event.type == "turn.completed":
            texts = payload["signals_extra"]
            user, answer = texts.get("user_prompt_text"), texts.get("final_response_text")
            if user is not None and not any(line.startswith("user: ") for line in turn):
                turn.insert(0, f"user: {user}")
            if answer is not None and payload["stop_reason"] != "tool_use" and f"assistant: {answer}" != turn[-1]:
                turn.append(f"assistant: {answer}")
        if event.type in ("turn.completed", "session.ended") or event.turn_id is None:
            lines += turn
            turn = []
    return lines


def _read(path: Path, **options: Any) -> Reading:
    """Read a file, with its spans in memory and in a database: both give the same."""
    reading = _read_once(path, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spans, "MOST_BYTES", -1)
        again = _read_once(path, **options)
    assert again == reading
    return reading


def _read_once(path: Path, **options: Any) -> Reading:
    reading = Reading({}, {}, {}, {}, {}, ReadCounts(0), "")
    sessions: Any = reading.sessions
    with Spans(path, subjects=["session"], **options).reading() as live:
        digest = live.check()
        for item in live.subjects():
            subject = item.subject if isinstance(item, Due) else item
            if isinstance(item, Due) and item.failure is not None:
                reading.failures[subject.id] = item.failure.message  # type: ignore[index]
                continue
            assert subject.trail is not None
            sessions[subject.id] = _lines(subject.trail)
            reading.parents[subject.id] = subject.parent_id  # type: ignore[index]
            reading.events[subject.id] = list(subject.trail)  # type: ignore[index]
            reading.contexts[subject.id] = subject.context  # type: ignore[index]
        return attrs.evolve(reading, counts=live.read_counts(), digest=digest)


@pytest.fixture
def read() -> Callable[..., Reading]:
    """Return a function that reads a file of spans."""
    return _read


@pytest.fixture
def span() -> Callable[..., dict[str, Any]]:
    """Return a function that makes a span as an SDK dumps it.

    The span lasts from the second *at* for *last* seconds. *id* and *parent* are repeated to whole ids.
    """

    def make(id: str, attributes: Mapping[str, Any] | None = None, *, trace: str = "a", parent: str | None = None, at: int = 0,
             last: int = 1, **fields: Any) -> dict[str, Any]:  # fmt: skip
        return {
            "name": "span",
            "spanContext": {"traceId": (trace * 32)[:32], "spanId": (id * 16)[:16]},
            "parentSpanId": None if parent is None else (parent * 16)[:16],
            "startTime": [1_700_000_000 + at, 0],
            "endTime": [1_700_000_000 + at + last, 0],
            "attributes": dict(attributes or {}),
            **fields,
        }

    return make


@pytest.fixture
def read_spans(tmp_path: Path) -> Callable[..., Reading]:
    """Return a function that writes spans to a file and reads it."""

    def write(*spans: Mapping[str, Any], **options: Any) -> Reading:
        path = tmp_path / "spans.json"
        path.write_text(json.dumps(list(spans)))
        return _read(path, **options)

    return write
