"""Conversations made of spans: their order, their parts, and the spans that are only counted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError
from dicast_otel import Spans


def _message(role, *parts):
    return {
        "role": role,
        "parts": [{"type": "text", "content": part} if isinstance(part, str) else part for part in parts],
    }


def _call(id="c1", name="look", **arguments):
    return {"type": "tool_call", "id": id, "name": name, "arguments": arguments}


def _result(response, id="c1"):
    return {"type": "tool_call_response", "id": id, "response": response}


def _chat(*messages, **attributes):
    """Return the attributes of a call of a model: its last message is the answer."""
    *inputs, output = messages
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps([output]),
        **attributes,
    }


ASK, ANSWER = _message("user", "Hi"), _message("assistant", "Ho")


def test_a_conversation_that_grows_over_spans_has_each_message_once(span, read_spans):
    messages = [ASK, ANSWER, _message("user", "More"), _message("assistant", "Here")]
    reading = read_spans(span("1", _chat(*messages[:2])), span("2", _chat(*messages), at=5))
    assert reading.only == ["user: Hi", "assistant: Ho", "user: More", "assistant: Here"]


def test_traces_with_the_same_conversation_id_are_one_session(span, read_spans):
    key = {"gen_ai.conversation.id": "talk"}
    first = span("1", _chat(ASK, ANSWER, **key), trace="a")
    second = span(
        "2", _chat(ASK, ANSWER, _message("user", "More"), _message("assistant", "Here"), **key), trace="b", at=9
    )
    reading = read_spans(second, first)
    assert reading.sessions == {"talk": ["user: Hi", "assistant: Ho", "user: More", "assistant: Here"]}


def test_the_same_words_in_a_later_trace_are_another_turn(span, read_spans):
    key = {"session.id": "talk"}
    reading = read_spans(
        span("1", _chat(ASK, ANSWER, **key), trace="a"),
        span("2", _chat(ASK, _message("assistant", "Again"), **key), trace="b", at=9),
    )
    assert reading.only == ["user: Hi", "assistant: Ho", "user: Hi", "assistant: Again"]


def test_a_history_without_its_beginning_is_matched(span, read_spans):
    messages = [
        ASK,
        ANSWER,
        _message("user", "More"),
        _message("assistant", "Here"),
        _message("user", "End"),
        _message("assistant", "Bye"),
    ]
    reading = read_spans(span("1", _chat(*messages[:4])), span("2", _chat(*messages[2:]), at=5))
    assert reading.only == ["user: Hi", "assistant: Ho", "user: More", "assistant: Here", "user: End", "assistant: Bye"]


def test_the_conversation_id_of_an_outer_span_counts_for_inner_ones(span, read_spans):
    root = span("1", {"session.id": "talk"}, last=9)
    reading = read_spans(root, span("2", _chat(ASK, ANSWER), parent="1", at=1))
    assert list(reading.sessions) == ["talk"]


def test_layers_that_record_the_same_call_are_one_call(span, read_spans):
    outer = span("1", {**_chat(ASK, ANSWER), "gen_ai.usage.input_tokens": 5}, last=9)
    inner = span("2", {"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Hi",
                       "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Ho"}, parent="1", at=1)  # fmt: skip
    reading = read_spans(outer, inner)
    assert reading.only == ["user: Hi", "assistant: Ho"]
    assert [call["usage"] for call in reading.payloads("llm.call_completed")] == [{"input_tokens": 5}]


def test_an_agent_inside_another_is_a_session_with_its_parent(span, read_spans):
    agent = {"gen_ai.operation.name": "invoke_agent"}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "ask_expert",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.result": "42",
    }
    asks, reply = _message("assistant", _call(name="ask_expert")), _message("tool", _result("42"))
    reading = read_spans(
        span("1", {**agent, "gen_ai.agent.name": "main"}, last=60),
        span("2", _chat(ASK, asks), parent="1", at=1),
        span("3", tool, parent="1", at=3, last=20),
        span("4", {**agent, "gen_ai.agent.name": "expert"}, parent="3", at=4, last=10),
        span("5", _chat(_message("user", "Meaning?"), _message("assistant", "42")), parent="4", at=5),
        span("6", _chat(ASK, asks, reply, ANSWER), parent="1", at=30),
    )
    main, expert = reading.sessions
    assert reading.sessions[main] == ["user: Hi", "call ask_expert {}", "result 42", "assistant: Ho"]
    assert reading.sessions[expert] == ["user: Meaning?", "assistant: 42"]
    assert reading.parents == {main: None, expert: main}
    start = reading.events[expert][0]
    assert (start.type, start.payload) == ("session.started", {"parent_id": main, "parent_tool_use_id": "c1"})


def test_results_of_other_judges_are_counted(span, read_spans):
    result = {"name": "gen_ai.evaluation.result", "attributes": {"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.value": 1}, "time": [1_700_000_000, 0]}  # fmt: skip
    reading = read_spans(span("1", _chat(ASK, ANSWER), events=[result, result]))
    assert reading.only == ["user: Hi", "assistant: Ho"]
    assert any("2 evaluation results in events of spans left out" in note for note in reading.counts.notes)


def test_an_agent_around_another_without_calls_of_its_own_is_no_session(span, read_spans):
    agent = {"gen_ai.operation.name": "invoke_agent"}
    reading = read_spans(
        span("1", agent, last=9), span("2", agent, parent="1", last=8), span("3", _chat(ASK, ANSWER), parent="2", at=1)
    )
    assert reading.only == ["user: Hi", "assistant: Ho"]


def test_a_linked_trace_is_a_session_of_the_trace_it_is_linked_to(span, read_spans):
    link = {"context": {"traceId": "a" * 32, "spanId": "1" * 16}}
    reading = read_spans(
        span("1", _chat(ASK, ANSWER), trace="a"), span("2", _chat(ASK, ANSWER), trace="b", at=3, links=[link])
    )
    assert reading.parents == {"a" * 32: None, "b" * 32: "a" * 32}


def test_parallel_tools_keep_their_calls_and_results(span, read_spans):
    asks = _message("assistant", _call("c1", city="Rome"), _call("c2", city="Oslo"))
    tools = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    reading = read_spans(
        span("1", _chat(ASK, asks), last=5),
        span("2", {**tools, "gen_ai.tool.call.id": "c2", "gen_ai.tool.call.result": "cold"}, at=4),
        span("3", {**tools, "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": "warm"}, at=4, last=3),
        span(
            "4",
            _chat(ASK, asks, _message("tool", _result("warm", "c1")), _message("tool", _result("cold", "c2")), ANSWER),
            at=9,
        ),
    )
    assert reading.only == [
        "user: Hi",
        'call look {"city": "Rome"}',
        'call look {"city": "Oslo"}',
        "result cold",
        "result warm",
        "assistant: Ho",
    ]
    assert (
        reading.counts.details["contents"]["unmatched_calls"]
        == reading.counts.details["contents"]["unmatched_results"]
        == 0
    )


def test_a_result_has_the_content_that_the_model_was_given(span, read_spans):
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.result": '{"kwargs": {"content": "seen"}}',
    }
    asks = _message("assistant", _call())
    reading = read_spans(
        span("1", _chat(ASK, asks)),
        span("2", tool, at=2),
        span("3", _chat(ASK, asks, _message("tool", _result("seen")), ANSWER), at=4),
    )
    assert reading.only == ["user: Hi", "call look {}", "result seen", "assistant: Ho"]


def test_a_failed_tool_span_is_a_failed_result(span, read_spans):
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.call.id": "c1"}
    event = {
        "name": "exception",
        "attributes": {"exception.type": "ValueError", "exception.message": "no city"},
        "time": [1, 0],
    }
    reading = read_spans(
        span("1", _chat(ASK, _message("assistant", _call()))),
        span("2", tool, at=2, status={"code": 2}, events=[event]),
        span(
            "3", _chat(ASK, _message("assistant", _call()), _message("tool", _result("Error: no city")), ANSWER), at=4
        ),
    )
    assert reading.only == ["user: Hi", "call look {}", "failed ValueError: no city", "assistant: Ho"]
    assert reading.counts.details["contents"]["failed_results"] == 1


def test_a_turn_whose_last_call_of_a_model_failed_ends_by_it(span, read_spans):
    more = _message("user", "More")
    request = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASK, ANSWER, more])}
    failed = span("2", request, at=5, status={"code": "ERROR", "message": "429 slow down"})
    reading = read_spans(span("1", _chat(ASK, ANSWER)), failed)
    assert ends(reading) == [("end_turn", None, []), ("error", "model_failure", ["429 slow down"])]
    again = span("3", _chat(ASK, ANSWER, more, _message("assistant", "Here")), at=9)
    reading = read_spans(span("1", _chat(ASK, ANSWER)), failed, again)
    assert ends(reading) == [("end_turn", None, []), ("end_turn", None, ["429 slow down"])]


def ends(reading):
    """Return for each turn its stop reason, why it ended, and the errors of its failed calls."""
    (events,) = reading.events.values()
    turns, errors = [], []
    for event in events:
        if event.type == "llm.call_failed":
            errors.append(event.payload["error"])
        elif event.type == "turn.completed":
            turns.append((event.payload["stop_reason"], event.payload.get("ended_by"), errors))
            errors = []
    return turns


@pytest.mark.parametrize(
    ("messages", "lines"), [({"gen_ai.input.messages": json.dumps([ASK])}, ["user: Hi"]), ({}, [])]
)
def test_a_failed_call_alone_is_a_turn_that_ends_by_it(span, read_spans, messages, lines):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **messages}
    reading = read_spans(span("1", attributes, status={"code": "ERROR", "message": "429 slow down"}))
    assert (reading.only, ends(reading)) == (lines, [("error", "model_failure", ["429 slow down"])])
    assert (reading.counts.failed, reading.counts.details["contents"]["failed_model_calls"]) == (0, 1)
    assert [event.payload["disposition"] for event in reading.events["a" * 32] if event.type == "session.ended"] == [
        "failed"
    ]


TOOL = {"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": "{}", "output.value": "seen"}
BARE = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
FAILED = {"status": {"code": "ERROR", "message": "500"}}


def test_a_failed_call_without_contents_after_a_tool_ends_the_turn(span, read_spans):
    first, tool = span("1", BARE), span("2", TOOL, at=2)
    reading = read_spans(first, tool, span("3", BARE, at=4, **FAILED))
    assert ends(reading) == [("error", "model_failure", ["500"])]
    assert reading.counts.details["contents"]["failed_model_calls"] == 1
    typed = span("3", {**BARE, "error.type": "InternalServerError"}, at=4)
    assert ends(read_spans(first, tool, typed)) == [("error", "model_failure", ["InternalServerError"])]
    again = read_spans(first, tool, span("3", BARE, at=4, **FAILED), span("4", BARE, at=6))
    assert ends(again) == [("tool_use", None, ["500"])]


def test_a_failed_call_without_contents_inside_of_another_call_counts_once(span, read_spans):
    outer, tool = span("3", BARE, at=4, last=3, **FAILED), span("2", TOOL, at=2)
    inner = span("4", BARE, parent="3", at=5, **FAILED)
    assert ends(read_spans(tool, outer, inner)) == [("error", "model_failure", ["500"])]
    retried = [span("3", BARE, at=4, last=3), inner, span("5", BARE, parent="3", at=6)]
    assert ends(read_spans(tool, *retried)) == [("tool_use", None, [])]


def test_a_failed_call_without_contents_ends_a_conversation_with_contents(span, read_spans):
    call = span("1", _chat(ASK, _message("assistant", _call("c"))))
    reading = read_spans(call, span("2", TOOL, at=2), span("3", BARE, at=4, **FAILED))
    assert ends(reading) == [("error", "model_failure", ["500"])]


@pytest.mark.parametrize("fields", [FAILED, {}])
def test_a_call_that_fails_after_a_part_of_its_answer_is_a_failed_call(span, read_spans, fields):
    attributes = _chat(ASK, ANSWER) | ({} if fields else {"gen_ai.response.finish_reasons": ["error"]})
    assert [end[:2] for end in ends(read_spans(span("1", attributes, **fields)))] == [("error", "model_failure")]


def test_an_agent_that_failed_after_a_tool_did_not_end_its_turn(span, read_spans):
    agent = {"gen_ai.operation.name": "invoke_agent"}
    call = span("1", _chat(ASK, _message("assistant", _call("c"))), parent="9", at=1)
    tool = span("2", TOOL, parent="9", at=3)
    assert ends(read_spans(span("9", agent, last=9, **FAILED), call, tool)) == [("error", "interruption", [])]
    assert ends(read_spans(span("9", agent, last=9), call, tool)) == [("tool_use", None, [])]
    answered = span("3", _chat(ASK, ANSWER), parent="9", at=1)
    assert ends(read_spans(span("9", agent, last=9, **FAILED), answered)) == [("end_turn", None, [])]


def test_the_same_prompt_in_a_later_trace_than_its_failed_call_is_a_new_turn(span, read_spans):
    talk = {"gen_ai.conversation.id": "talk"}
    failed = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASK]), **talk}
    reading = read_spans(span("1", failed, **FAILED), span("2", _chat(ASK, ANSWER) | talk, trace="b", at=5))
    assert ends(reading) == [("error", "model_failure", ["500"]), ("end_turn", None, [])]


def test_a_retry_after_a_failed_call_is_an_answer(span, read_spans):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": json.dumps([ASK])}
    reading = read_spans(span("1", attributes, status={"code": "ERROR"}), span("2", _chat(ASK, ANSWER), at=3))
    assert reading.only == ["user: Hi", "assistant: Ho"]
    assert not reading.failures


def test_spans_of_models_without_messages_are_a_failed_session(span, read_spans):
    bare = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 4}
    reading = read_spans(span("1", bare), span("2", _chat(ASK, ANSWER), trace="b"))
    assert "its 1 span of models records no messages" in reading.failures["a" * 32]
    assert "CAPTURE_MESSAGE_CONTENT" in reading.failures["a" * 32]


def test_the_input_and_output_of_an_agent_count_where_no_model_records_any(span, read_spans):
    agent = {"openinference.span.kind": "AGENT", "input.value": "Hi", "output.value": "Ho"}
    tool = {"openinference.span.kind": "TOOL", "tool.name": "look", "input.value": "{}", "output.value": "seen"}
    reading = read_spans(span("1", agent, last=9), span("2", tool, parent="1", at=1))
    assert reading.only == ["user: Hi", "call look {}", "result seen", "assistant: Ho"]


def test_spans_of_other_work_are_counted_by_kind(span, read_spans):
    reading = read_spans(
        span("1", {"http.method": "POST"}, last=9),
        span("2", {"openinference.span.kind": "RETRIEVER", "input.value": "q"}, parent="1"),
        span("3", {"openinference.span.kind": "EMBEDDING"}, parent="1"),
        span("4", _chat(ASK, ANSWER), parent="1", at=3),
    )
    (note,) = [note for note in reading.counts.notes if "left out" in note]
    assert "1 span of embeddings, 1 span of other work, 1 span of retrievers" in note


def test_a_file_without_a_conversation_is_refused_with_its_spans(span, read_spans):
    with pytest.raises(DataError, match="0 sessions: 2 spans of other work left out"):
        read_spans(span("1", {"http.method": "GET"}), span("2", {"db.system": "sqlite"}, parent="1"))


def test_a_span_that_came_twice_counts_once(span, read_spans):
    chat = span("1", _chat(ASK, ANSWER))
    reading = read_spans(chat, chat)
    assert reading.only == ["user: Hi", "assistant: Ho"]
    assert any("1 span that came twice" in note for note in reading.counts.notes)


def test_the_context_has_the_span_of_each_turn(span, read_spans):
    messages = [ASK, ANSWER, _message("user", "More"), _message("assistant", "Here")]
    first = span("1", _chat(*messages[:2], **{"gen_ai.response.id": "r1"}))
    reading = read_spans(first, span("2", _chat(*messages), at=5))
    (context,) = reading.contexts.values()
    assert context["otel"]["spans"] == [
        {"trace_id": "a" * 32, "span_id": "1" * 16, "response_id": "r1"},
        {"trace_id": "a" * 32, "span_id": "2" * 16},
    ]


def test_a_wrong_value_refuses_the_file_with_its_place(tmp_path):
    path = tmp_path / "spans.json"
    path.write_text(
        json.dumps(
            [
                {
                    "name": "a",
                    "spanContext": {"traceId": "a" * 32, "spanId": "1" * 16},
                    "attributes": {},
                    "startTime": "noon",
                }
            ]
        )
    )
    with pytest.raises(DataError, match=r"spans.json:1: .*'noon' \(start_time\)"), Spans(path).reading() as live:
        live.check()


_TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="<"), min_size=1, max_size=8).filter(
    str.strip
)


@given(st.lists(st.tuples(_TEXTS, st.integers(0, 2), _TEXTS), min_size=1, max_size=5), st.integers(0, 3))
def test_every_message_call_and_result_of_any_conversation_is_read_once(tmp_path_factory, turns, window):
    """Each call of a model repeats the history, or with a window the last part of it that begins with a user."""
    path = tmp_path_factory.mktemp("spans") / "spans.json"
    history, spans, calls = [], [], 0
    for number, (question, tools, answer) in enumerate(turns):
        mark = f"{number} " if window else ""  # a part of a history is only known by its texts
        history.append(_message("user", f"{mark}{question}"))
        for _ in range(tools):
            calls += 1
            request = _message("assistant", _call(f"c{calls}", n=calls))
            spans.append(_chat(*history, request))
            history += [request, _message("tool", _result(f"r{calls}", f"c{calls}"))]
        reply = _message("assistant", f"{mark}{answer}")
        spans.append(_chat(*(history[-window - 1 :] if window else history), reply))
        history.append(reply)
    documents = [
        {"name": "chat", "attributes": attributes, "spanContext": {"traceId": "a" * 32, "spanId": f"{number + 1:016x}"},
         "startTime": [number, 0], "endTime": [number, 5]}
        for number, attributes in enumerate(spans)
    ]  # fmt: skip
    path.write_text(json.dumps(documents))
    with Spans(path, subjects=["session"]).reading() as live:
        live.check()
        (_,) = live.subjects()
        contents = live.read_counts().details["contents"]
    assert contents["calls"] == contents["results"] == calls
    assert contents["messages"] == len(history)
    assert contents["turns"] == len(turns)
    assert contents["unmatched_results"] == contents["unmatched_calls"] == 0
