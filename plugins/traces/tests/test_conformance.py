"""The trace sources keep the contract."""

from __future__ import annotations

import json

from dicast.testing import SourceConformance

CONVERSATION = {
    "messages": [
        {"role": "user", "content": "Look up ZFA04Y."},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "get", "arguments": '{"id": "ZFA04Y"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "two passengers"},
        {"role": "assistant", "content": "It is for two."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "You are welcome."},
    ]
}
EVENTS = [
    {"type": "tool.called", "payload": {"tool_use_id": "c1", "tool_name": "get", "input_hash": "6c1f"}},
    {"type": "tool.completed", "payload": {"tool_use_id": "c1", "tool_name": "get", "success": True}},
    {"type": "turn.completed", "payload": {"stop_reason": "end_turn", "tool_call_count": 1, "signals_extra": {}}},
]


class TestMessages(SourceConformance):
    source = "traces/messages"
    files = {"chats.jsonl": f"{json.dumps(CONVERSATION)}\n{json.dumps(CONVERSATION)}\n"}
    options = {"path": "chats.jsonl", "subjects": ["turn", "tool_cycle", "session"], "tool_error": "^Error"}


class TestEvents(SourceConformance):
    source = "traces/events"
    files = {
        "trace.jsonl": "".join(json.dumps({"session_id": "s", "turn_id": "t", **event}) + "\n" for event in EVENTS)
    }
    options = {"path": "trace.jsonl", "subjects": ["turn", "tool_cycle", "session"]}
