"""Steps of a subject in the terminal: its messages, reasoning and tool calls, from the trace events of the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import orjson

from ...toolkit.printable import one_line
from ...toolkit.text_table import WIDTH
from ..contract.protocols import Ledger
from ..events import SUBJECT_READ
from ..values import Event, Query

_TYPES = ("message.sent", "tool.called", "tool.completed", "tool.failed", "llm.call_failed", "turn.completed")
_SYSTEM = ("system", "developer")
_KINDS = ("tool_cycle", "turn", "session")

MOST = 40
"""Largest number of steps that are shown; of later steps only the failed calls."""


@attrs.define
class _Step:
    """A line with the lines below it, each in full length."""

    line: str
    below: list[str] = attrs.field(factory=list)
    is_failed: bool = False


def step_lines(events: Sequence[Event], subject: Mapping[str, Any]) -> Iterator[str]:
    """Yield the steps in *events* as lines of at most 80 characters, without the texts that are the input or output of *subject*."""
    recorded = [event for event in events if event.payload.keys() != {"digest"}]
    if len(recorded) < len(events):
        yield "  its steps were not recorded (a ledger with content: digest)"
    left_out = 0
    for number, step in enumerate(_steps(recorded, (subject.get("input"), subject.get("output")))):
        if number < MOST or step.is_failed:
            yield from map(_shortened, (step.line, *step.below))
        else:
            left_out += 1
    if left_out:
        yield f"  … {left_out:,} more step{'s' * (left_out > 1)}, without a failed call; dicast report shows them"


def trace(ledger: Ledger, subject_id: str, run_id: str) -> list[Event]:
    """Return the messages and tool calls of a turn, a tool cycle or a session, as they were recorded for the run *run_id*; else an empty list."""
    query = Query(run_id, (SUBJECT_READ,), subject_id=subject_id, newest_first=True, limit=1)
    read = next((entry.event for entry in ledger.read(query)), None)
    if read is None or read.session_id is None or read.subject_kind not in _KINDS:
        return []
    recorded_by = str(read.payload.get("from_run") or run_id)
    events = (entry.event for entry in ledger.read(Query(recorded_by, _TYPES, session_id=read.session_id)))
    return [event for event in events if _is_of(event, read.subject_kind, subject_id)]


def _is_of(event: Event, kind: str, id: str) -> bool:
    if event.subject_kind is not None:  # an event of the run about a subject
        return False
    if kind == "tool_cycle":
        return event.payload.get("tool_use_id") == id
    return kind == "session" or event.turn_id == id


def _steps(events: Iterable[Event], known: Sequence[object]) -> list[_Step]:
    steps: list[_Step] = []
    calls: dict[str, _Step] = {}
    for event in events:
        payload: Mapping[str, Any] = event.payload
        match event.type:
            case "message.sent":
                steps += _of_message(payload, known)
            case "turn.completed":
                texts = payload.get("signals_extra")
                final = texts.get("final_response_text") if isinstance(texts, Mapping) else None
                answer = _of_message({"role": "assistant", "text": final}, known)
                steps += (step for step in answer if step not in steps[-1:])
            case "tool.called":
                arguments = f" {_text(payload['input'])}" if "input" in payload else ""
                step = _Step(f"  call {payload.get('tool_name')}{arguments}", ["    no result"])
                calls[str(payload.get("tool_use_id"))] = step
                steps.append(step)
            case "tool.completed" | "tool.failed":
                id = str(payload.get("tool_use_id"))
                if id not in calls:  # the trace has no event of the call
                    calls[id] = _Step(f"  call {payload.get('tool_name') or '(unknown)'}")
                    steps.append(calls[id])
                step = calls[id]
                step.is_failed = event.type == "tool.failed" or payload.get("success") is False
                result = payload.get("error" if event.type == "tool.failed" else "output")
                step.below = [f"    {'failed' if step.is_failed else 'returned'}: {_text(result)}".removesuffix(": ")]
            case _:
                steps.append(_Step(f"  the model's call failed: {_text(payload.get('error'))}", is_failed=True))
    return steps


def _of_message(payload: Mapping[str, Any], known: Sequence[object]) -> Iterator[_Step]:
    """Yield the reasoning and the text of a message. The message of a system is not a step."""
    if payload.get("role") in _SYSTEM:
        return
    for part in payload.get("parts") or ():
        if isinstance(part, Mapping) and part.get("type") == "reasoning" and part.get("text"):
            yield _Step(f"  reasoning: {part['text']}")
    text = payload.get("text")
    if text and text not in known:
        yield _Step(f"  {payload.get('role')}: {_text(text)}")


def _text(value: object) -> str:
    """Return a text unchanged, None as an empty text, any other JSON value as compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _shortened(line: str) -> str:
    line = one_line(line).rstrip()
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
