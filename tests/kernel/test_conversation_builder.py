"""The builder of conversations in ``dicast.toolkit``, as a reader of another format uses it."""

from __future__ import annotations

import pytest

from dicast.toolkit.conversations import Conversation, Rules
from dicast.toolkit.parts import MediaPart, ReasoningPart, TextPart, ToolCall, ToolResult, UnknownPart
from dicast.toolkit.sessions import subjects

KINDS = ("tool_cycle", "turn", "session")


def built(*messages, rules=None, context=None, **options):
    conversation = Conversation("s", rules, **options)
    for role, *parts in messages:
        conversation.add(role, parts)
    return conversation, conversation.session(context or {})


def types(session):
    return [event.type for event in session.log]


def test_plain_texts_are_told_by_the_end_of_the_turn_alone():
    _, session = built(("user", TextPart("a")), ("assistant", TextPart("b")))
    assert types(session) == ["turn.completed", "session.ended"]
    assert session.turns[0].texts() == ("a", "b")


def test_texts_and_calls_of_one_message_keep_their_order():
    call, result = ToolCall("c", "f", {}), ToolResult("c", "r")
    _, session = built(
        ("user", TextPart("a")),
        ("assistant", TextPart("x"), call, TextPart("y")),
        ("tool", result),
        ("assistant", TextPart("z")),
    )
    payload = [event.payload.get("text", event.payload.get("tool_name")) for event in session.log][:5]
    assert payload == ["a", "x", "f", "y", "f"]
    assert session.turns[0].texts() == ("a", "z")


def test_turn_without_a_user_message_and_with_its_own_id():
    conversation = Conversation("s")
    conversation.start_turn("turn-7")
    conversation.add("assistant", [TextPart("hello")], time="2026-01-01T00:00:00Z")
    conversation.add("user", [TextPart("hi")], turn_id="turn-8")
    conversation.add("assistant", [TextPart("yes")])
    session = conversation.session({"k": 1})
    assert [(turn.id, turn.texts()) for turn in session.turns] == [
        ("turn-7", (None, "hello")),
        ("turn-8", ("hi", "yes")),
    ]
    assert session.log[0].time == "2026-01-01T00:00:00Z"
    assert session.context == {"k": 1}


def test_sub_agent_has_the_session_that_started_it_as_its_parent():
    _, session = built(("user", TextPart("a")), ("assistant", TextPart("b")), parent_id="main")
    assert [(subject.kind, subject.parent_id) for subject in subjects(session, KINDS)] == [
        ("turn", "s"),
        ("session", "main"),
    ]


def test_feedback_belongs_to_the_turn_that_it_names():
    conversation = Conversation("s")
    for text in "ab":
        conversation.add("user", [TextPart(text)])
        conversation.add("assistant", [TextPart(text.upper())])
    conversation.feedback("explicit", {"scope": "turn", "subject_turn_id": "s/1", "rating": "thumbs_down"})
    first, second = conversation.session({}).turns
    assert [event.type for event in first.events] == ["turn.completed", "feedback.explicit"]
    assert (first.feedback_after, [event.type for event in second.events]) == ((1,), ["turn.completed"])


def test_feedback_does_not_hide_the_end_of_a_turn():
    conversation = Conversation("s")
    conversation.add("user", [TextPart("a")])
    conversation.add("assistant", [TextPart("b")])
    conversation.feedback("explicit", {"rating": "thumbs_up"})
    session = conversation.session({})
    assert next(event.payload["stop_reason"] for event in session.log if event.type == "turn.completed") == "end_turn"
    assert (
        session.turns[0].events[-1].type == "turn.completed" or session.turns[0].events[-1].type == "feedback.explicit"
    )


def test_missing_values_of_a_model_call_stay_missing():
    conversation = Conversation("s")
    conversation.add("user", [TextPart("a")])
    conversation.model_call(stop_reason="stop")
    conversation.model_call(model="m", stop_reason="length", time="2026-01-01T00:00:00Z")
    conversation.add("assistant", [TextPart("b")])
    session = conversation.session({})
    calls = [event for event in session.events if event.type == "llm.call_completed"]
    assert [(event.payload, event.time) for event in calls] == [
        ({"model": "m", "stop_reason": "max_tokens"}, "2026-01-01T00:00:00Z")
    ]


def test_counts_say_what_the_conversation_had():
    conversation, _ = built(
        ("user", TextPart("a"), MediaPart("image", url="https://x.example/a.png")),
        ("assistant", ReasoningPart("hm"), UnknownPart("part", "hologram"), ToolCall("c", "f", "{broken"), ToolCall("d", "f", {})),
        ("tool", ToolResult("c", [TextPart("r"), MediaPart("file", data="AAAA")], is_error=True)),
        ("tool", ToolResult("x", "?")),
        ("user", TextPart("bye")),
    )  # fmt: skip
    counts = conversation.counts
    assert (counts.messages, counts.parts, counts.calls, counts.results) == (5, 6, 2, 2)
    assert (counts.failed_results, counts.unmatched_results, counts.unmatched_calls, counts.dropped) == (1, 1, 1, 1)


def test_last_turn_without_a_reply_is_kept_on_request():
    _, session = built(("user", TextPart("a")), rules=Rules(keep_trailing=True))
    assert len(session.turns) == 1
    assert len(built(("user", TextPart("a")))[1].turns) == 0


@pytest.mark.parametrize(
    ("part", "marker"),
    [
        (MediaPart("image"), "[image]"), (MediaPart("image", "image/png", size=999), "[image/png, 999 B]"),
        (MediaPart("audio", "audio/wav", size=48_123), "[audio/wav, 48 kB]"), (MediaPart("file", name="a\nb.pdf"), "[file, a\\nb.pdf]"),
        (MediaPart("file", url="data:text/plain,hello"), "[text/plain, 5 B]"), (UnknownPart("part", "au\ndio"), '[unknown part "au\\ndio"]'),
        (MediaPart("audio", transcript="so he said"), "so he said"),
    ],
)  # fmt: skip
def test_markers_are_one_line(part, marker):
    assert part.text == marker


def test_a_second_result_of_a_call_is_not_matched_with_a_call_without_an_id():
    conversation, session = built(
        ("user", TextPart("a")),
        ("assistant", ToolCall("c", "f", {}), ToolCall(None, "g", {})),
        ("tool", ToolResult("c", "r"), ToolResult("c", "r")),
        ("assistant", TextPart("z")),
    )
    assert (conversation.counts.unmatched_results, conversation.counts.unmatched_calls) == (1, 1)
    assert [event.payload["tool_name"] for event in session.log if event.type == "tool.completed"][0] == "f"
