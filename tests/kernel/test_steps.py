"""Steps of a subject in the terminal: messages, reasoning and tool calls with their results."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dicast import Event
from dicast._kernel.cli.steps import Trace, trace, whole_steps


def events(*steps):
    time = "2026-01-01T00:00:00.000Z"
    return [Event("0" * 26, type, time, "run", payload) for type, payload in steps]


def lines(*steps, **subject):
    return list(whole_steps(Trace(events(*steps)), subject.get("input"), subject.get("output")))


def call(id, **fields):
    return "tool.called", {"tool_use_id": id, "tool_name": "Bash", **fields}


def test_a_call_has_its_arguments_and_its_result_below():
    steps = (
        call("a", input={"command": "ls\n"}),
        call("b"),
        ("tool.failed", {"tool_use_id": "b", "error": "exit 1"}),
        ("tool.completed", {"tool_use_id": "a", "output": {"files": ["x"]}}),
        call("c", input="text"),
        call("e"),
        ("tool.completed", {"tool_use_id": "e", "success": True}),
        ("tool.completed", {"tool_use_id": "d", "tool_name": "Read", "output": "no", "success": False}),
        ("llm.call_failed", {"error": "overloaded"}),
    )
    assert lines(*steps) == [
        r'call Bash {"command":"ls\n"}',
        '  returned: {"files":["x"]}',
        "call Bash",
        "  failed: exit 1",
        "call Bash text",
        "  no result",
        "call Bash",
        "  returned",
        "call Read",
        "  failed: no",
        "the model's call failed: overloaded",
    ]


def test_messages_are_shown_with_reasoning_but_not_the_input_and_output_again():
    parts = [{"type": "reasoning", "text": "Hm.\nWell."}]
    steps = (
        ("message.sent", {"role": "system", "text": "Be kind."}),
        ("message.sent", {"role": "user", "text": "Where?"}),
        ("message.sent", {"role": "assistant", "text": "One moment.", "parts": parts}),
        ("message.sent", {"role": "user", "text": "Where?"}),
        ("message.sent", {"role": "assistant", "text": "Here."}),
        ("turn.completed", {"signals_extra": {"final_response_text": "Here."}}),
        ("turn.completed", {}),
    )
    shown = ["reasoning: Hm.", "  Well.", "assistant: One moment.", "user: Where?"]
    assert lines(*steps, input="Where?", output="Here.") == shown
    assert lines(*steps) == ["user: Where?", *shown, "assistant: Here."]


def test_an_answer_of_the_end_of_a_turn_is_shown_once():
    steps = (
        ("turn.completed", {"signals_extra": {"final_response_text": "There."}}),
        ("message.sent", {"role": "assistant", "text": "Once."}),
        ("turn.completed", {"signals_extra": {"final_response_text": "Once."}}),
    )
    assert lines(*steps) == ["assistant: There.", "assistant: Once."]


def test_texts_of_several_lines_are_whole_and_indented():
    long = "é" * 500
    steps = (call("a", input=long), ("tool.failed", {"tool_use_id": "a", "error": "one\ntwo"}))
    assert lines(*steps) == [f"call Bash {long}", "  failed: one", "    two"]


def test_steps_of_which_only_digests_were_recorded_are_named_as_missing():
    assert lines(("tool.called", {"digest": "0"})) == ["its steps were not recorded (a ledger with content: digest)"]


@pytest.mark.parametrize(
    ("kind", "id", "shown"),
    [
        ("turn", "t-1", [0, 1]),
        ("turn", "t-2", [2]),
        ("tool_cycle", "c", [1, 2]),
        ("session", "s", [0, 1, 2, 3]),
        ("row", "r", []),
    ],
)
def test_a_subject_has_the_steps_of_its_turn_its_call_or_its_session(kind, id, shown):
    def event(type, payload, **about):
        return Event("0" * 26, type, "2026-01-01T00:00:00.000Z", "run", payload, session_id="s", **about)

    steps = [
        event("message.sent", {"text": "a"}, turn_id="t-1"),
        event("tool.called", {"tool_use_id": "c"}, turn_id="t-1"),
        event("tool.completed", {"tool_use_id": "c"}, turn_id="t-2"),
        event("message.sent", {"text": "b"}),
    ]
    own = event("tool.failed", {"tool_use_id": "c"}, subject_kind="turn", subject_id="t-1")
    read = event("subject.read", {}, subject_kind=kind, subject_id=id)
    entries = [SimpleNamespace(event=each) for each in (read, *steps, own)]
    ledger = SimpleNamespace(read=lambda query: (entry for entry in entries if entry.event.type in query.types))
    assert trace(ledger, id, "run").events == (() if kind == "row" else [steps[at] for at in shown])
