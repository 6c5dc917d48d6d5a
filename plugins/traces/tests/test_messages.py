from __future__ import annotations

import asyncio
import hashlib
import io
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, DataError, RunContext, Source
from dicast_traces import Messages


def call(id, name="search", arguments='{"b": 1, "a": 2}'):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text=None, *calls):
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def tool(id, text, **fields):
    return {"role": "tool", "tool_call_id": id, "content": text, **fields}


SYSTEM = {"role": "system", "content": "be kind"}
WHOLE_CONVERSATION = [
    SYSTEM,
    user("hi"),
    assistant(None, call("c1")),
    tool("c1", "found"),
    assistant("done"),
    user("bye"),
]


def source(folder: Path, *conversations, **options) -> Messages:
    path = folder / "chats.jsonl"
    rows = [row if isinstance(row, dict) else {"messages": row} for row in conversations]
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return Messages(path, **options)


def turns(folder, *messages, **options):
    source_ = source(folder, list(messages), **options)
    source_.check()
    return list(source_.subjects())


def completed(subject):
    return subject.events[-1].payload


def test_turn_is_a_user_message_and_all_up_to_the_next(tmp_path):
    source_ = source(tmp_path, {"task": 5, "messages": WHOLE_CONVERSATION})
    assert isinstance(source_, Source)
    assert source_.kinds == ("turn",)
    (turn,) = source_.subjects()
    assert (turn.kind, turn.id, turn.session_id, turn.parent_id) == ("turn", "1/1", "1", "1")
    assert (turn.input, turn.output, turn.context) == ("hi", "done", {"task": 5})
    assert [event.type for event in turn.events] == ["tool.called", "tool.completed", "turn.completed"]
    assert {(event.session_id, event.turn_id, event.time) for event in turn.events} == {("1", "1/1", None)}


def test_payloads_are_those_of_a_trace(tmp_path):
    called, end_event, done = (event.payload for event in turns(tmp_path, *WHOLE_CONVERSATION)[0].events)
    assert called == {
        "tool_use_id": "c1",
        "tool_name": "search",
        "input": {"a": 2, "b": 1},
        "input_hash": hashlib.sha256(b'{"a":2,"b":1}').hexdigest(),
    }
    assert end_event == {
        "tool_use_id": "c1",
        "tool_name": "search",
        "success": True,
        "output_size": 5,
        "output": "found",
    }
    assert done == {
        "stop_reason": "end_turn",
        "tool_call_count": 1,
        "signals_extra": {"user_prompt_text": "hi", "final_response_text": "done"},
    }


def test_last_user_message_without_a_reply_is_dropped_or_kept(tmp_path):
    assert [turn.id for turn in turns(tmp_path, *WHOLE_CONVERSATION)] == ["1/1"]
    kept_turns = turns(tmp_path, *WHOLE_CONVERSATION, trailing="keep")
    assert [turn.id for turn in kept_turns] == ["1/1", "1/2"]
    assert completed(kept_turns[1]) == {
        "stop_reason": "tool_use",
        "tool_call_count": 0,
        "signals_extra": {"user_prompt_text": "bye"},
    }


def test_turn_without_assistant_text_ends_in_tool_use_and_has_no_final_text(tmp_path):
    (turn,) = turns(tmp_path, user("hi"), assistant(None, call("c")), tool("c", "x"))
    assert completed(turn)["stop_reason"] == "tool_use"
    assert "final_response_text" not in completed(turn)["signals_extra"]
    assert turn.output == ""


def test_text_beside_tool_calls_ends_in_tool_use(tmp_path):
    (turn,) = turns(tmp_path, user("hi"), assistant("wait", call("c")))
    assert (completed(turn)["stop_reason"], turn.output) == ("tool_use", "wait")


def test_text_before_the_last_tool_call_is_the_final_text_but_no_clean_end(tmp_path):
    (turn,) = turns(tmp_path, user("hi"), assistant("wait"), assistant("", call("c")), tool("c", "x"))
    assert (completed(turn)["stop_reason"], turn.output) == ("tool_use", "wait")


def test_blank_text_is_text_and_empty_text_is_none(tmp_path):
    blank, empty = turns(tmp_path, user("a"), assistant("  "), user("b"), assistant(""))
    assert completed(blank)["signals_extra"]["final_response_text"] == "  "
    assert "final_response_text" not in completed(empty)["signals_extra"]


def test_content_may_be_parts(tmp_path):
    parts = [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}, {"type": "text", "text": "b"}]
    (turn,) = turns(tmp_path, user(parts), assistant([{"type": "text", "text": "ok"}]))
    assert (turn.input, turn.output) == ("a\n[image]\nb", "ok")


@pytest.mark.parametrize(
    ("pattern", "kind"), [("^Error", "tool.failed"), ("^error", "tool.completed"), (None, "tool.completed")]
)
def test_tool_error_says_which_results_are_failures(tmp_path, pattern, kind):
    (turn,) = turns(tmp_path, user("hi"), assistant(None, call("c")), tool("c", "Error: no"), tool_error=pattern)
    assert turn.events[1].type == kind
    assert turn.events[1].payload.get("error") == ("Error: no" if kind == "tool.failed" else None)


def test_tool_error_is_searched_not_matched(tmp_path):
    (turn,) = turns(tmp_path, user("hi"), assistant(None, call("c")), tool("c", "an Error"), tool_error="Error")
    assert turn.events[1].type == "tool.failed"


def test_arguments_that_are_no_json_are_kept_and_hashed_as_they_are(tmp_path):
    (turn,) = turns(tmp_path, user("hi"), assistant(None, call("c", arguments="{broken")))
    payload = turn.events[0].payload
    assert payload["input"] == "{broken"
    assert payload["input_hash"] == hashlib.sha256(b"{broken").hexdigest()


@pytest.mark.parametrize("levels", [201, 300, 2000])
def test_arguments_nested_too_deep_to_be_written_are_kept_as_text(tmp_path, levels):
    deep = "[" * levels + "]" * levels
    (turn,) = turns(tmp_path, user("hi"), assistant(None, call("c", arguments=deep), call("d", arguments=deep[1:-1])))
    first, second = (event.payload for event in turn.events if event.type == "tool.called")
    assert first["input"] == deep
    assert first["input_hash"] == hashlib.sha256(deep.encode()).hexdigest()
    assert isinstance(second["input"], list) == (levels == 201)


def test_results_find_their_calls_by_id_then_by_tool_then_by_order(tmp_path):
    calls = assistant(None, call("a", "x"), call("b", "y"), call("c", "x"), call("d", "z"))
    results = [tool("c", "1"), tool(None, "2", name="y"), tool(None, "3"), tool("unknown", "4")]
    (turn,) = turns(tmp_path, user("hi"), calls, *results)
    ends = {
        event.payload["output"]: event.payload["tool_use_id"] for event in turn.events if event.type == "tool.completed"
    }
    assert ends == {"1": "c", "2": "b", "3": "a", "4": "unknown"}


def test_old_function_calls_are_read(tmp_path):
    call_message = {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}
    (turn,) = turns(tmp_path, user("hi"), call_message, {"role": "function", "name": "f", "content": "r"})
    first, second = turn.events[0].payload, turn.events[1].payload
    assert first["tool_use_id"] == second["tool_use_id"] == "1/1/1"
    assert completed(turn)["tool_call_count"] == 1


def test_subjects_come_finest_first_and_share_their_events(tmp_path):
    source_ = source(tmp_path, {"k": 1, "messages": WHOLE_CONVERSATION}, subjects=["session", "turn", "tool_cycle"])
    assert source_.kinds == ("tool_cycle", "turn", "session")
    cycle, turn, session = source_.subjects()
    assert [cycle.id, turn.id, session.id] == ["c1", "1/1", "1"]
    assert (cycle.parent_id, turn.parent_id, session.parent_id) == ("1/1", "1", None)
    assert {subject.session_id for subject in (cycle, turn, session)} == {"1"}
    assert (cycle.input, cycle.output) == ({"tool_name": "search", "input": {"a": 2, "b": 1}}, "found")
    assert cycle.events[0] is turn.events[0] is session.events[0]
    assert session.events[-1].type == "session.ended"
    assert session.events[-1].payload == {"disposition": "completed"}
    assert "session.ended" not in [event.type for event in turn.events]


def test_tool_cycle_knows_the_calls_that_follow_in_its_turn(tmp_path):
    messages = [user("a"), assistant(None, call("c"), call("d")), tool("c", "1"), user("b"), assistant(None, call("e"))]
    first, second, third = source(tmp_path, messages, subjects=["tool_cycle"]).subjects()
    assert [(event.type, event.payload["tool_use_id"]) for event in first.events] == [
        ("tool.called", "c"),
        ("tool.completed", "c"),
        ("tool.called", "d"),
    ]
    assert (len(second.events), second.output) == (1, None)
    assert (third.id, third.parent_id) == ("e", "1/2")


def test_call_ids_that_repeat_are_told_apart_by_their_turns(tmp_path):
    twice = [user("a"), assistant(None, call("c"), call("c")), user("b"), assistant(None, call("c"), call("d"))]
    source_ = source(tmp_path, twice, [user("a"), assistant(None, call("e"))], subjects=["tool_cycle"])
    source_.check()
    assert [subject.id for subject in source_.subjects()] == ["1/1/c", "1/1/c#2", "1/2/c", "d", "e"]


def test_calls_have_the_same_ids_whatever_is_judged(tmp_path):
    rows = [user("a"), assistant(None, call("c"))], [user("a"), assistant(None, call("c"))]
    named = []
    for kinds in (["tool_cycle"], ["turn"], ["session"]):
        events = [event for subject_ in source(tmp_path, *rows, subjects=kinds).subjects() for event in subject_.events]
        named.append([event.payload["tool_use_id"] for event in events if event.type == "tool.called"])
    assert named == [["1/1/c", "2/1/c"]] * 3


def test_id_is_a_template_over_the_record(tmp_path):
    row = {"task": {"n": 3}, "trial": "x", "messages": WHOLE_CONVERSATION}
    (turn,) = source(tmp_path, row, id="t{{task.n}}-{{ trial }}").subjects()
    assert (turn.session_id, turn.id) == ("t3-x", "t3-x/1")


@pytest.mark.parametrize("template", ["task", "{{ }}", "{{ a b }}", "{{ a }} {% if %}", "{{ a }", ""])
def test_text_that_is_no_template_is_refused(template):
    with pytest.raises(ConfigError, match="is not a template"):
        Messages("x", id=template)


def test_template_over_what_is_not_there_names_the_nearest(tmp_path):
    with pytest.raises(DataError, match=r"chats\.jsonl:1: the record has no 'tsk'.*did you mean 'task'"):
        source(tmp_path, {"task": 1, "messages": WHOLE_CONVERSATION}, id="{{ tsk }}").check()


def test_sessions_of_one_name_are_an_error(tmp_path):
    row = {"task": 1, "messages": WHOLE_CONVERSATION}
    with pytest.raises(DataError, match=r"chats\.jsonl:2: duplicate session id '1', first on line 1"):
        source(tmp_path, row, row, id="{{ task }}").check()


def test_bad_options_are_refused():
    with pytest.raises(ConfigError, match="is not a regular expression"):
        Messages("x", tool_error="(")
    with pytest.raises(ConfigError, match="unknown subject kind 'turns'"):
        Messages("x", subjects=["turns"])
    with pytest.raises(ConfigError, match="no subject kinds"):
        Messages("x", subjects=[])
    with pytest.raises(ValueError, match="trailing"):
        Messages("x", trailing="maybe")


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"messages": {}},
        ["text"],
        [{"content": "x"}],
        [{"role": "user", "content": 5}],
        [{"role": "user", "content": ["x"]}],
        [{"role": "assistant", "tool_calls": {}}],
        [{"role": "assistant", "tool_calls": ["x"]}],
        [{"role": "assistant", "tool_calls": [{"id": "x", "function": {}}]}],
        [{"role": "assistant", "tool_calls": [{"id": 5, "function": {"name": "f"}}]}],
        [{"role": "tool", "tool_call_id": 5}],
    ],
)
def test_what_is_no_conversation_is_a_bad_line(tmp_path, bad):
    with pytest.raises(DataError) as caught:
        source(tmp_path, WHOLE_CONVERSATION, bad, WHOLE_CONVERSATION).check()
    assert [problem.line for problem in caught.value.problems] == [2]


def test_conversations_without_a_turn_make_no_subjects(tmp_path):
    with pytest.raises(DataError, match="no subjects"):
        source(tmp_path, [SYSTEM, user("hi")]).check()


def test_standard_input_is_checked_and_then_read(monkeypatch):
    async def read():
        async with Messages("-").open(RunContext("r", "n", Path())) as live:
            return live.check(), [subject.id for subject in live.subjects()]

    data = orjson.dumps({"messages": WHOLE_CONVERSATION})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert asyncio.run(read()) == (hashlib.sha256(data).hexdigest(), ["1/1"])


message = st.one_of(
    st.builds(user, st.none() | st.text(max_size=3)),
    st.builds(
        lambda text, ids: assistant(text, *map(call, ids)),
        st.none() | st.text(max_size=3),
        st.lists(st.sampled_from("abc"), max_size=3),
    ),
    st.builds(tool, st.sampled_from("abc"), st.text(max_size=3)),
    st.just(SYSTEM),
)


@pytest.mark.slow
@given(st.lists(st.lists(message, max_size=8), min_size=1, max_size=3))
def test_any_conversation_makes_unique_subjects_whose_counts_agree(tmp_path_factory, conversations):
    source_ = source(tmp_path_factory.mktemp("chats"), *conversations, subjects=["tool_cycle", "turn", "session"])
    source_.check()
    subjects_ = list(source_.subjects())
    assert len({(subject.kind, subject.id) for subject in subjects_}) == len(subjects_)
    by_kind = {kind: [s for s in subjects_ if s.kind == kind] for kind in ("tool_cycle", "turn", "session")}
    assert len(by_kind["session"]) == len(conversations)
    assert sum(completed(turn)["tool_call_count"] for turn in by_kind["turn"]) == len(by_kind["tool_cycle"])
    in_turns = [event for session in by_kind["session"] for event in session.events if event.turn_id is not None]
    assert sum(len(turn.events) for turn in by_kind["turn"]) == len(in_turns)
    assert all(session.events[-1].type == "session.ended" for session in by_kind["session"])


def test_on_request_a_tool_cycle_has_the_earlier_calls_of_its_session_in_its_context(tmp_path):
    messages = [user("hi"), assistant(None, call("c1"), call("c2", "look")), tool("c1", "found"), tool("c2", "seen"),
                user("go on"), assistant(None, call("c3")), tool("c3", "found"), assistant("done")]  # fmt: skip
    subjects_ = source(tmp_path, messages, subjects=("tool_cycle", "turn"), history=True)
    histories = {subject.id: subject.context.get("execution_history") for subject in subjects_.subjects()}
    first = {"tool_name": "search", "input": {"b": 1, "a": 2}}
    assert histories["c1"] == []
    assert histories["c2"] == [first]
    assert histories["c3"] == [first, {"tool_name": "look", "input": {"b": 1, "a": 2}}]
    assert histories["1/1"] is None
    plain = source(tmp_path, messages, subjects=("tool_cycle",))
    assert all("execution_history" not in subject.context for subject in plain.subjects())
