"""A trace of many agents at work, and the pipeline that judges it. Every call makes the same one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

AT_ONCE = 10
"""Sessions that are under way together, a turn of each in turn."""

TURNS = 5
"""Turns of a session."""

CALLS = 6
"""Calls of tools in a turn, which has three events for each and two more."""

EVENTS_PER_SESSION = TURNS * (3 * CALLS + 2) + 1

PIPELINE = """\
name: benchmark
source: {traces/events: {path: trace.jsonl, subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
gate: {on: heuristic/session, min_score: 0}
ledger: {ledger/sqlite: {path: ledger.db}}
"""

TURNS_ALONE = """\
name: benchmark
source: {traces/events: {path: trace.jsonl}}
judges: [heuristic/turn]
ledger: {ledger/sqlite: {path: ledger.db}}
"""

_WORDS = (
    "lisbon",
    "oslo",
    "quito",
    "dakar",
    "hanoi",
    "perth",
    "turin",
    "early",
    "late",
    "direct",
    "cheap",
    "window",
    "aisle",
)
_SAID = "There are three flights that day. The cheapest leaves at nine in the morning and costs 312 dollars. " * 3


def events(count: int) -> Iterator[dict[str, Any]]:
    """At least *count* events of whole sessions. One call of a tool in twenty fails, one in ten is made again at once."""
    chance = random.Random(7)
    made = 0
    while made < count:
        sessions = [f"session-{made // EVENTS_PER_SESSION + place:06}" for place in range(AT_ONCE)]
        for number in range(TURNS):
            for session in sessions:
                yield from _turn(session, f"{session}/{number}", chance)
        for session in sessions:
            yield _event("session.ended", session, None, {"disposition": "completed"})
        made += AT_ONCE * EVENTS_PER_SESSION


def _turn(session: str, turn: str, chance: random.Random) -> Iterator[dict[str, Any]]:
    yield _event("route.decided", session, turn, {"chosen_model": "model-1"})
    asked: dict[str, Any] = {}
    for number in range(CALLS):
        usage = {"input_tokens": 900 + number, "output_tokens": 40}
        yield _event(
            "llm.call_completed", session, turn, {"model": "model-1", "stop_reason": "tool_use", "usage": usage}
        )
        if not asked or chance.random() > 0.1:
            asked = {"query": " ".join(chance.choices(_WORDS, k=6)), "limit": chance.randint(1, 50)}
        tool = {"tool_use_id": f"{turn}/{number}", "tool_name": "search_flights"}
        yield _event("tool.called", session, turn, {**tool, "input": asked})
        yield _event("tool.completed", session, turn, {**tool, "success": chance.random() > 0.05, "output_size": 1200})
    texts = {"user_prompt_text": f"Find me a flight to {chance.choice(_WORDS)}, please.", "final_response_text": _SAID}
    ended = {"stop_reason": "end_turn", "tool_call_count": CALLS, "signals_extra": texts}
    yield _event("turn.completed", session, turn, ended)


def _event(type_: str, session: str, turn: str | None, payload: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": type_,
        "time": "2026-03-01T12:00:00.000Z",
        "session_id": session,
        "turn_id": turn,
        "payload": payload,
    }


def write(folder: Path, count: int, pipeline: str = PIPELINE) -> tuple[int, int]:
    """Put ``trace.jsonl`` and ``pipeline.yaml`` into *folder*; return how many events and how many subjects there are."""
    ends = {"turn.completed"} if pipeline == TURNS_ALONE else {"tool.completed", "turn.completed", "session.ended"}
    lines = subjects = 0
    with (folder / "trace.jsonl").open("w", encoding="utf-8") as file:
        for event in events(count):
            lines += 1
            subjects += event["type"] in ends
            file.write(json.dumps(event) + "\n")
    (folder / "pipeline.yaml").write_text(pipeline, encoding="utf-8")
    return lines, subjects
