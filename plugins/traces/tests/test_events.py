from __future__ import annotations

import tracemalloc
from pathlib import Path

import orjson
import pytest

from dicast import DataError, Source
from dicast_traces import Events


def event(type, session="s", turn=None, payload=None, **fields):
    return {"type": type, "session_id": session, "turn_id": turn, "payload": payload or {}, **fields}


def completed(turn, session="s", **texts):
    extra = {"signals_extra": texts} if texts else {}
    return event("turn.completed", session, turn, {"stop_reason": "end_turn", "tool_call_count": 0, **extra})


def source(folder: Path, *events, **options) -> Events:
    path = folder / "trace.jsonl"
    path.write_bytes(b"".join(orjson.dumps(item_) + b"\n" for item_ in events))
    return Events(path, **options)


def read(folder, *events, **options):
    source_ = source(folder, *events, **options)
    source_.check()
    return list(source_.subjects())


def test_turn_holds_its_events_and_texts(tmp_path):
    called = event("tool.called", "s", "t", {"tool_use_id": "u"}, time="2024-05-15T15:00:00Z")
    source_ = source(
        tmp_path,
        called,
        event("tool.called", "s", "other"),
        completed("t", user_prompt_text="q", final_response_text="a"),
    )
    assert isinstance(source_, Source)
    (turn,) = source_.subjects()
    assert (turn.kind, turn.id, turn.session_id, turn.parent_id) == ("turn", "t", "s", "s")
    assert (turn.input, turn.output, turn.context) == ("q", "a", {})
    assert [item_.type for item_ in turn.events] == ["tool.called", "turn.completed"]
    assert turn.events[0].time == "2024-05-15T15:00:00Z"


def test_assistant_response_text_is_the_same_as_final_response_text(tmp_path):
    assert read(tmp_path, completed("t", assistant_response_text="a"))[0].output == "a"


@pytest.mark.parametrize("nothing", [None, "", " "])
def test_nothing_under_one_key_does_not_hide_a_text_under_the_other(tmp_path, nothing):
    (turn,) = read(tmp_path, completed("t", final_response_text=nothing, assistant_response_text="a"))
    assert turn.output == "a"
    (turn,) = read(tmp_path, completed("t", final_response_text=nothing, assistant_response_text=None))
    assert turn.output == (nothing or "")


def test_turn_without_texts_has_an_empty_output_and_no_input(tmp_path):
    (turn,) = read(tmp_path, completed("t"))
    assert (turn.input, turn.output) == (None, "")


def test_turn_that_is_not_completed_is_no_subject(tmp_path):
    assert [turn.id for turn in read(tmp_path, event("tool.called", "s", "a"), completed("b"))] == ["b"]


def test_unknown_types_and_fields_are_kept(tmp_path):
    odd = event("my.event", "s", "t", {"x": [1]}, host="h")
    (turn,) = read(tmp_path, odd, completed("t"))
    assert (turn.events[0].type, turn.events[0].payload, turn.events[0].extra) == (
        "my.event",
        {"x": [1]},
        {"host": "h"},
    )


def test_mixed_sessions_come_in_the_order_of_their_last_lines(tmp_path):
    events = [completed("a1", "a"), completed("b1", "b"), completed("a2", "a"), completed("c1", "c"), event("x", "b")]
    assert [turn.id for turn in read(tmp_path, *events)] == ["a1", "a2", "c1", "b1"]


def test_only_open_sessions_are_held_in_memory(tmp_path):
    text = "x" * 50_000
    source_ = source(tmp_path, *(completed(f"t{n}", f"s{n}", final_response_text=f"{n}{text}") for n in range(300)))
    tracemalloc.start()
    try:
        assert source_.check()
        assert sum(1 for _ in source_.subjects()) == 300
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_feedback_belongs_to_the_turn_it_is_about(tmp_path):
    up = event("feedback.explicit", "s", "t2", {"scope": "turn", "subject_turn_id": "t1", "rating": "thumbs_up"})
    retry = event("feedback.implicit", "s", None, {"type": "retry", "subject_turn_id": "t1"})
    session_feedback = event("feedback.explicit", "s", "t2", {"scope": "session", "rating": "thumbs_down"})
    turn_feedback = event("feedback.explicit", "s", "t2", {"scope": "turn", "rating": "thumbs_down"})
    first, second, session = read(
        tmp_path,
        completed("t1"),
        completed("t2"),
        up,
        retry,
        session_feedback,
        turn_feedback,
        subjects=["turn", "session"],
    )
    assert [item_.type for item_ in first.events] == ["turn.completed", "feedback.explicit", "feedback.implicit"]
    assert [item_.payload.get("rating") for item_ in second.events] == [None, "thumbs_down"]
    assert len(session.events) == 6
    assert session.events[2] is first.events[1]


def test_context_says_how_many_messages_came_before_each_feedback(tmp_path):
    def retry(about, given_in=None):
        return event("feedback.implicit", "s", given_in, {"type": "retry", "subject_turn_id": about})

    first, second, third, fourth = read(
        tmp_path,
        completed("t1"),
        retry("t1"),
        completed("t2"),
        retry("t1"),
        retry("t2", "t3"),  # the message of t3 is there, its end is not
        completed("t3"),
        completed("t4"),
        retry("t1", "t1"),
    )
    assert first.context["feedback_after_messages"] == [0, 1, 3]
    assert second.context["feedback_after_messages"] == [1]
    assert third.context == fourth.context == {}


def test_tool_cycles_come_before_their_turn(tmp_path):
    events = [
        event("tool.called", "s", "t", {"tool_use_id": "u", "tool_name": "f", "input_hash": "h"}),
        event("tool.failed", "s", "t", {"tool_use_id": "u", "error": "no"}),
        completed("t"),
        event("session.ended", payload={"disposition": "abandoned"}),
    ]
    subjects_ = read(tmp_path, *events, subjects=["turn", "tool_cycle", "session"])
    assert [(item_.kind, item_.id, item_.parent_id) for item_ in subjects_] == [
        ("tool_cycle", "u", "t"),
        ("turn", "t", "s"),
        ("session", "s", None),
    ]
    assert subjects_[0].output == "no"


def test_numbers_name_sessions_and_turns(tmp_path):
    (turn,) = read(tmp_path, completed(7, 5))
    assert (turn.id, turn.session_id) == ("7", "5")


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ({"payload": {}, "session_id": "s"}, "type"),
        (event(""), "type"),
        (event("x", payload=[1]), "payload"),
        ({"type": "x", "session_id": "s"}, "payload"),
        (event("x", None), "session_id"),
        (event("x", {}), "session_id"),
        (event("x", turn=[1]), "turn_id"),
        (event("x", time="yesterday"), "time"),
        (event("x", time=1715785200), "time"),
        (event("turn.completed"), "turn_id"),
        (event("turn.completed", "s", "t", {"tool_call_count": "3"}), "payload.tool_call_count"),
        (event("turn.completed", "s", "t", {"tool_call_count": True}), "payload.tool_call_count"),
        (event("turn.completed", "s", "t", {"signals_extra": {"final_response_text": 3}}), "payload.signals_extra"),
        (event("tool.completed", "s", "t", {"success": "no"}), "payload.success"),
        (event("feedback.explicit", "s", "t", {"rating": "thumbs-up"}), "payload.rating"),
        (event("feedback.implicit", "s", "t", {"type": "retried"}), "payload.type"),
        (event("session.ended", payload={"disposition": "done"}), "payload.disposition"),
    ],
)
def test_malformed_event_is_a_bad_line(tmp_path, bad, path):
    source_ = source(tmp_path, completed("a"), bad, completed("b"))
    with pytest.raises(DataError) as caught:
        source_.check()
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [(2, path)]
    with pytest.raises(DataError, match=r"trace\.jsonl:2"):
        list(source_.subjects())


def test_success_may_be_unknown(tmp_path):
    assert len(read(tmp_path, event("tool.completed", "s", "t", {"success": None}), completed("t"))) == 1


def test_turn_ids_are_unique_over_the_file(tmp_path):
    with pytest.raises(DataError, match=r":2: duplicate turn id 't', first on line 1"):
        source(tmp_path, completed("t", "a"), completed("t", "b")).check()


def test_tool_calls_need_unique_ids_where_they_are_judged(tmp_path):
    calls = [event("tool.called", "s", "t", {"tool_use_id": "u"}), event("tool.called", "s", "t", {"tool_use_id": "u"})]
    assert len(read(tmp_path, *calls, completed("t"))) == 1
    with pytest.raises(DataError, match=r":2: duplicate tool use id 'u'"):
        source(tmp_path, *calls, completed("t"), subjects=["tool_cycle"]).check()
    with pytest.raises(DataError, match=r"payload.tool_use_id must be an id"):
        source(tmp_path, event("tool.called", "s", "t"), completed("t"), subjects=["tool_cycle"]).check()


def test_trace_without_completed_turns_has_no_subjects(tmp_path):
    with pytest.raises(DataError, match="no subjects"):
        source(tmp_path, event("x")).check()


def test_events_are_counted_and_those_that_change_nothing_are_named(tmp_path):
    call, end = {"tool_use_id": "u", "tool_name": "f"}, {"tool_use_id": "u", "success": True}
    about = {"scope": "turn", "subject_turn_id": "gone", "rating": "thumbs_up"}
    lines = [
        event("tool.called", "s", "t", call),
        event("tool.completed", "s", "t", end),
        event("tool.failed", "s", "t", {"tool_use_id": "z", "error": "e"}),
        completed("t"),
        event("tool.caled", "s", "open"),
        event("feedback.explicit", "s", None, about),
    ]
    with source(tmp_path, *lines).reading() as trace:
        assert [subject.id for subject in trace.subjects()] == ["t"]
        counts = trace.read_counts()
    assert (counts.records, counts.dropped, counts.failed) == (6, {}, 0)
    assert counts.details["unknown_types"] == {"tool.caled": 1}
    assert counts.details["contents"] == {
        "sessions": 1, "turns": 1, "open_turns": 1, "calls": 1, "results": 2, "unmatched_results": 1, "unmatched_calls": 0,
        "feedback_without_turn": 1,
    }  # fmt: skip
    assert counts.notes == (
        "unknown event types: 1 tool.caled", "1 turn without turn.completed", "1 tool result without a call",
        "1 feedback event about no turn of the trace",
    )  # fmt: skip
