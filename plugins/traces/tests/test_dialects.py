"""Conversations in the formats of model providers."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from random import Random
from time import process_time

import orjson
import pytest

from dicast import DataError, Due
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import ToolCall, ToolResult, split_reasoning
from dicast.toolkit.sessions import Session
from dicast_traces import Messages
from dicast_traces.messages import Layout


def read(folder: Path, *records, **options):
    """Return the subjects of *records* and the counts of reading them."""
    path = folder / "chats.jsonl"
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return read_file(path, **options)


def read_file(path, **options):
    source = Messages(path, subjects=("tool_cycle", "turn", "session"), **options)
    with source.reading() as live:
        live.check()
        subjects_ = list(live.subjects())
        return subjects_, live.read_counts()


def log(folder, record, **options):
    """Return the events of one conversation as (type, payload)."""
    subjects_, _ = read(folder, record, **options)
    return [(event.type, event.payload) for event in subjects_[-1].trail]


def of_kind(subjects_, kind):
    return [subject for subject in subjects_ if subject.kind == kind]


def texts(folder, record, **options):
    subjects_, counts = read(folder, record, **options)
    return [(turn.input, turn.output) for turn in of_kind(subjects_, "turn")], counts


OPENAI = {
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "weather in Rome?"}]},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "22C"},
        {"role": "assistant", "content": "It is 22C."},
    ]
}  # fmt: skip
ANTHROPIC = {
    "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "weather in Rome?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Rome"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "22C"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 22C."}]},
    ],
}  # fmt: skip
RESPONSES = {
    "instructions": "be kind",
    "input": [{"role": "user", "content": [{"type": "input_text", "text": "weather in Rome?"}]}],
    "output": [
        {"type": "function_call", "id": "fc", "call_id": "c1", "name": "weather", "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "c1", "output": "22C"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is 22C.", "annotations": []}]},
    ],
}  # fmt: skip
GEMINI = {
    "systemInstruction": {"parts": [{"text": "be kind"}]},
    "contents": [
        {"role": "user", "parts": [{"text": "weather in Rome?"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": {"city": "Rome"}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"result": "22C"}}}]},
        {"role": "model", "parts": [{"text": "It is 22C."}]},
    ],
}
SHAREGPT = {
    "conversations": [
        {"from": "system", "value": "be kind"},
        {"from": "human", "value": "weather in Rome?"},
        {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Rome"}}'},
        {"from": "observation", "value": "22C"},
        {"from": "gpt", "value": "It is 22C."},
    ]
}
LANGCHAIN = {
    "messages": [
        {"type": "system", "content": "be kind"},
        {"type": "human", "content": "weather in Rome?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "weather", "args": {"city": "Rome"}, "id": "c1", "type": "tool_call"}]},
        {"type": "tool", "content": "22C", "tool_call_id": "c1", "status": "success"},
        {"type": "ai", "content": "It is 22C."},
    ]
}  # fmt: skip
DICTS = {"messages": [{"type": each["type"], "data": each} for each in LANGCHAIN["messages"]]}
NAMES = {"human": "HumanMessage", "ai": "AIMessage", "system": "SystemMessage", "tool": "ToolMessage"}
DUMPED = {
    "messages": [
        {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", NAMES[each["type"]]], "kwargs": {**each}}
        for each in LANGCHAIN["messages"]
    ]
}  # fmt: skip
DIALECTS = {
    "openai": OPENAI, "anthropic": ANTHROPIC, "responses": RESPONSES, "gemini": GEMINI, "sharegpt": SHAREGPT, "langchain": LANGCHAIN,
}  # fmt: skip
FORMS = {
    **{name: (name, record) for name, record in DIALECTS.items()},
    "dicts": ("langchain", DICTS),
    "dumped": ("langchain", DUMPED),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("explicit", [False, True])
def test_every_dialect_gives_the_same_conversation(tmp_path, name, explicit):
    format, record = FORMS[name]
    subjects_, counts = read(tmp_path, record, **({"format": format} if explicit else {}))
    assert [(subject.kind, subject.output) for subject in subjects_[1:]] == [("turn", "It is 22C."), ("session", None)]
    cycle, turn, session = subjects_
    assert (cycle.input, turn.input) == ({"tool_name": "weather", "input": {"city": "Rome"}}, "weather in Rome?")
    assert cycle.output in ("22C", {"result": "22C"})
    events = [(event.type, event.payload.get("role")) for event in session.trail]
    assert events == [
        ("message.sent", "system"), ("message.sent", "user"), ("tool.called", None), ("tool.completed", None), ("turn.completed", None),
        ("session.ended", None),
    ]  # fmt: skip
    assert next(iter(session.trail)).payload == {"role": "system", "text": "be kind"}
    completed = turn.events[-1].payload
    assert (completed["stop_reason"], completed["tool_call_count"]) == ("end_turn", 1)
    assert counts.details["formats"] == {format: 1}
    contents = counts.details["contents"]
    assert (contents["calls"], contents["results"], contents["unmatched_results"], contents["unmatched_calls"]) == (
        1,
        1,
        0,
        0,
    )
    assert (counts.records, counts.marked, counts.dropped, counts.failed) == (1, {}, {}, 0)


@pytest.mark.parametrize(
    ("user", "assistant"), [("human", "ai"), ("User", "Assistant"), ("user", "model"), ("HUMAN", "bot"), ("user", "gemini"), ("user", "agent")]
)  # fmt: skip
def test_names_of_roles_are_mapped(tmp_path, user, assistant):
    record = {
        "messages": [
            {"role": "developer", "content": "p"},
            {"role": user, "content": "a"},
            {"role": assistant, "content": "b"},
        ]
    }
    assert texts(tmp_path, record)[0] == [("a", "b")]
    assert [payload["role"] for type_, payload in log(tmp_path, record) if type_ == "message.sent"] == ["system"]


@pytest.mark.parametrize("role", ["tool", "function", "ipython", "observation"])
def test_results_come_under_every_name_of_the_role(tmp_path, role):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": role, "content": "r"},
    ]
    cycle = read(tmp_path, {"messages": messages})[0][0]
    assert (cycle.kind, cycle.output) == ("tool_cycle", "r")


UNKNOWN = {
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hear"}, {"type": "audio", "audio": "x"}]},
        {"role": "critic", "content": "bad"},
        {"type": "teleport_call", "id": "1"},
        {"role": "assistant", "content": [{"type": "text", "text": "ok"}, {"type": "hologram"}]},
    ]
}


def test_unknown_shapes_are_named_all_at_once_with_line_path_and_value(tmp_path):
    with pytest.raises(DataError) as caught:
        read(tmp_path, OPENAI, UNKNOWN, UNKNOWN)
    subjects_ = [(problem.line, problem.path, problem.value) for problem in caught.value.problems]
    expected_ = [
        ("messages[0].content[1]", "audio"), ("messages[1].role", "critic"), ("messages[2]", "teleport_call"),
        ("messages[3].content[1]", "hologram"),
    ]  # fmt: skip
    assert subjects_ == [(line, path, value) for line in (2, 3) for path, value in expected_]
    assert "chats.jsonl:2" in str(caught.value)
    assert "unknown: mark" in str(caught.value)


def test_unknown_role_that_is_misspelled_has_a_hint(tmp_path):
    with pytest.raises(DataError, match="did you mean 'assistant'"):
        read(tmp_path, {"messages": [{"role": "user", "content": "a"}, {"role": "asistant", "content": "b"}]})


def test_marked_shapes_are_visible_and_counted(tmp_path):
    subjects_, counts = read(tmp_path, UNKNOWN, unknown="mark")
    (turn,) = of_kind(subjects_, "turn")
    assert turn.input == 'hear\n[unknown part "audio"]'
    assert turn.output == 'ok\n[unknown part "hologram"]'
    texts_ = [event.payload["text"] for event in turn.trail if event.type == "message.sent"]
    assert '[unknown role "critic"]\nbad' in texts_
    assert '[unknown item "teleport_call"]' in texts_
    assert counts.marked == {"part audio": 1, "role critic": 1, "item teleport_call": 1, "part hologram": 1}
    assert counts.details["contents"]["parts"] == 3


def test_named_format_refuses_the_parts_of_others(tmp_path):
    with pytest.raises(DataError, match="unknown part 'tool_use'"):
        read(tmp_path, ANTHROPIC, format="openai")
    part = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
    with pytest.raises(DataError, match="unknown part 'image_url'"):
        read(tmp_path, {"messages": [{"role": "user", "content": [part]}]}, format="anthropic")


def test_formats_may_be_mixed_in_a_file(tmp_path):
    _, counts = read(tmp_path, *DIALECTS.values())
    assert counts.details["formats"] == dict.fromkeys(DIALECTS, 1)
    assert counts.notes == ("formats: 1 anthropic, 1 gemini, 1 langchain, 1 openai, 1 responses, 1 sharegpt",)


# Shapes of files


@pytest.mark.parametrize("indent", [None, orjson.OPT_INDENT_2])
@pytest.mark.parametrize("form", ["array", "record", "messages", "lists", "concatenated"])
def test_a_file_is_lines_an_array_or_a_document(tmp_path, indent, form):
    rows = {
        "array": [OPENAI, ANTHROPIC], "record": OPENAI, "messages": OPENAI["messages"], "lists": [OPENAI["messages"]] * 2,
    }  # fmt: skip
    path = tmp_path / "chats.json"
    if form == "concatenated":
        path.write_bytes(orjson.dumps(OPENAI, option=indent) + b"\n" + orjson.dumps(ANTHROPIC, option=indent) + b"\n")
    else:
        path.write_bytes(orjson.dumps(rows[form], option=indent))
    subjects_, counts = read_file(path)
    expected = 1 if form in ("record", "messages") else 2
    assert (len(of_kind(subjects_, "turn")), counts.records) == (expected, expected)
    assert [subject.id for subject in of_kind(subjects_, "session")] == [str(number + 1) for number in range(expected)]


def test_lines_may_be_lists_of_messages(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(b"\n".join(orjson.dumps(OPENAI["messages"]) for _ in range(3)))
    assert len(of_kind(read_file(path)[0], "turn")) == 3


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[\n{},\n5]", 2, "'messages'"),
        ("[\n{},\n5]", 3, "no object"),
        ('[\n{"messages": []},\n{"messages": 5}\n', 3, "messages"),
        ('[\n{"messages": []}\n', 3, "no end"),
        ('[{"messages": []}] x', 1, "follows the end"),
        ('{\n"messages": [\n', 1, "not JSON"),
        ('{"messages": [}', 1, "not JSON"),
    ],
)
def test_broken_documents_are_refused_with_the_line(tmp_path, text, line, message):
    path = tmp_path / "chats.json"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read_file(path)
    assert any(problem.line is not None and message in str(problem) for problem in caught.value.problems), str(
        caught.value
    )
    assert line in [problem.line for problem in caught.value.problems] or message == "not JSON"


def test_numbers_and_ids_of_an_array_count_its_items(tmp_path):
    path = tmp_path / "chats.json"
    path.write_bytes(orjson.dumps([{**OPENAI, "n": 1}, {**OPENAI, "n": 1}], option=orjson.OPT_INDENT_2))
    with pytest.raises(DataError, match="item 2: duplicate session id '1', first in item 1"):
        read_file(path, id="{{ n }}")


# Failed records, dropped records


def test_failed_record_is_a_failed_subject(tmp_path):
    failed = {
        "object": "response",
        "status": "failed",
        "error": {"code": "server_error", "message": "boom"},
        "output": [],
    }
    subjects_, counts = read(tmp_path, OPENAI, {"id": "x", "messages": [], "error": "timeout"}, failed)
    dues = [due for due in subjects_ if isinstance(due, Due)]
    assert [(due.subject.kind, due.subject.id, due.failure.kind) for due in dues] == [
        ("session", "2", "source_error"), ("session", "3", "source_error"),
    ]  # fmt: skip
    assert ["timeout" in dues[0].failure.message, "server_error: boom" in dues[1].failure.message] == [True, True]
    assert (counts.records, counts.failed, counts.dropped) == (3, 2, {})


def test_error_next_to_messages_is_context(tmp_path):
    subjects_, counts = read(tmp_path, {**OPENAI, "error": "late"})
    assert (subjects_[1].context, counts.failed) == ({"error": "late"}, 0)


def test_records_without_a_subject_are_dropped_by_their_reason(tmp_path):
    trailing = {"messages": [{"role": "user", "content": "a"}]}
    none = {"messages": [{"role": "assistant", "content": "hello"}]}
    path = tmp_path / "chats.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, [OPENAI, trailing, none])))
    with Messages(path).reading() as live:
        assert len(list(live.subjects())) == 1
        counts = live.read_counts()
    assert (counts.records, counts.dropped) == (3, {"trailing": 1, "no_turn": 1})
    assert counts.details["contents"]["trailing_messages"] == 1
    assert counts.notes == ("formats: 3 openai", "1 last user message without a reply left out (trailing: drop)")


# OpenAI


def assistant(**fields):
    return {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": None, **fields}]}


@pytest.mark.parametrize(
    "fields", [{"refusal": "no"}, {"refusal": "no", "content": ""}, {"content": [{"type": "refusal", "refusal": "no"}]}]
)
def test_refusal_is_marked_text_with_a_clean_end(tmp_path, fields):
    events = log(tmp_path, assistant(**fields))
    sent = [payload for type_, payload in events if type_ == "message.sent"]
    assert sent[-1] == {
        "role": "assistant",
        "text": "no",
        "parts": [{"type": "refusal", "text": "no"}],
        "refusal": True,
    }
    completed = events[-2][1]
    assert (completed["stop_reason"], completed["refusal"], completed["signals_extra"]["final_response_text"]) == (
        "end_turn",
        True,
        "no",
    )


def test_transcript_of_spoken_answer_is_its_text(tmp_path):
    record = assistant(audio={"id": "audio_1", "transcript": "It is sunny."})
    assert texts(tmp_path, record)[0] == [("a", "It is sunny.")]
    part = next(payload["parts"][0] for type_, payload in log(tmp_path, record) if payload.get("role") == "assistant")
    assert part == {"type": "audio", "file_id": "audio_1", "transcript": "It is sunny."}


@pytest.mark.parametrize(
    ("call", "name", "input_", "error"),
    [
        ({"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}, "f", {"a": 1}, None),
        ({"id": "c", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}, "f", {"a": 1}, None),
        ({"id": "c", "function": "f", "arguments": {"a": 1}}, "f", {"a": 1}, None),
        ({"id": "c", "type": "function", "function": "f", "arguments": '{"a": 1}'}, "f", {"a": 1}, None),
        ({"id": "c", "type": "custom", "custom": {"name": "f", "input": "{broken"}}, "f", "{broken", None),
        (
            {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{broken"}},
            "f",
            "{broken",
            "not JSON",
        ),
        ({"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}, "f", "", None),
        ({"name": "f", "args": {"a": 1}, "id": "c"}, "f", {"a": 1}, None),
    ],
)
def test_tool_calls_of_every_form(tmp_path, call, name, input_, error):
    called = next(payload for type_, payload in log(tmp_path, assistant(tool_calls=[call])) if type_ == "tool.called")
    assert (called["tool_name"], called["input"]) == (name, input_)
    assert (called.get("arguments_error") or "").startswith(error or "")
    assert ("arguments_error" in called) == (error is not None)


def test_parallel_calls_match_by_id_and_unmatched_ones_are_kept_and_counted(tmp_path):
    calls = [{"id": id_, "type": "function", "function": {"name": "f", "arguments": "{}"}} for id_ in "abc"]
    results = [{"role": "tool", "tool_call_id": id_, "content": id_.upper()} for id_ in ("b", "a", "z")]
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls}, *results]
    subjects_, counts = read(tmp_path, {"messages": messages})
    assert [(cycle.id, cycle.output) for cycle in of_kind(subjects_, "tool_cycle")] == [
        ("a", "A"),
        ("b", "B"),
        ("c", None),
    ]
    contents = counts.details["contents"]
    assert (contents["unmatched_results"], contents["unmatched_calls"]) == (1, 1)
    ends = [event.payload for event in subjects_[-1].trail if event.type == "tool.completed"]
    assert [(end["tool_use_id"], end["output"]) for end in ends] == [("b", "B"), ("a", "A"), ("z", "Z")]
    assert counts.notes == ("formats: 1 openai", "1 tool result without a call")


def test_result_with_an_id_matches_a_call_without_one_by_order(tmp_path):
    calls = [{"type": "function", "function": {"name": name, "arguments": "{}"}} for name in "fg"]
    results = [{"role": "tool", "tool_call_id": id_, "content": id_} for id_ in ("r1", "r2")]
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": calls}, *results]
    subjects_, _ = read(tmp_path, {"messages": messages})
    assert [(cycle.input["tool_name"], cycle.output) for cycle in of_kind(subjects_, "tool_cycle")] == [
        ("f", "r1"),
        ("g", "r2"),
    ]


@pytest.mark.parametrize(
    ("fields", "type_"),
    [
        ({}, "tool.completed"), ({"is_error": True}, "tool.failed"), ({"status": "error"}, "tool.failed"), ({"status": "failed"}, "tool.failed"),
        ({"status": "success"}, "tool.completed"), ({"error": {"message": "x"}}, "tool.failed"), ({"exit_code": 0}, "tool.completed"),
    ],
)  # fmt: skip
def test_failures_of_tools(tmp_path, fields, type_):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "r", **fields}]  # fmt: skip
    events = dict(log(tmp_path, {"messages": messages}))
    assert events[type_].get("error", events[type_].get("output")) == "r"


def test_exit_code_is_a_result_without_success(tmp_path):
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "r", "exit_code": 2}]  # fmt: skip
    subjects_, counts = read(tmp_path, {"messages": messages})
    end = next(event.payload for event in subjects_[-1].trail if event.type == "tool.completed")
    assert (end["success"], end["exit_code"], counts.details["contents"]["failed_results"]) == (False, 2, 1)


@pytest.mark.parametrize(
    ("part", "marker", "recorded"),
    [
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 64_000}}, "[image/png, 48 kB]", {"bytes": 48_000}),
        ({"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}, "[image, https://x.example/a.png]", {"url": "https://x.example/a.png"}),
        ({"type": "image_url", "image_url": "https://x.example/a.png"}, "[image, https://x.example/a.png]", {}),
        ({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}, "[audio/wav, 3 B]", {"data": "AAAA"}),
        ({"type": "file", "file": {"file_id": "file-1"}}, "[file, file-1]", {"file_id": "file-1"}),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}}, "[application/pdf, a.pdf, 3 B]", {}),
        ({"type": "input_image", "image_url": "data:image/gif;base64,AAAA"}, "[image/gif, 3 B]", {}),
        ({"type": "input_file", "file_id": "file-2"}, "[file, file-2]", {}),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "A" * 2_000_000}}, "[image/jpeg, 1.5 MB]", {}),
        ({"type": "image", "source": {"type": "url", "url": "https://x.example/b.png"}}, "[image, https://x.example/b.png]", {}),
        ({"type": "document", "title": "T", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}}, "[application/pdf, T, 3 B]", {}),
    ],
)  # fmt: skip
def test_media_are_kept_and_shown_by_a_marker(tmp_path, part, marker, recorded):
    record = {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "see"}, part]},
            {"role": "assistant", "content": "ok"},
        ]
    }
    subjects_, counts = read(tmp_path, record)
    assert (subjects_[0].input, counts.marked) == (f"see\n{marker}", {})
    sent = next(event.payload for event in subjects_[-1].trail if event.type == "message.sent")
    assert sent["text"] == f"see\n{marker}"
    assert {key: sent["parts"][1][key] for key in recorded} == recorded


def test_document_of_plain_text_is_text(tmp_path):
    part = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "the manual"}}
    record = {"messages": [{"role": "user", "content": [part]}, {"role": "assistant", "content": "ok"}]}
    assert texts(tmp_path, record)[0] == [("the manual", "ok")]


def test_part_without_its_field_is_named(tmp_path):
    with pytest.raises(DataError, match=r"unknown part 'text': it needs 'text', a string.*messages\[0\].content\[0\]"):
        read(tmp_path, {"messages": [{"role": "user", "content": [{"type": "text"}]}]})


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("<think>hm</think>yes", "yes"), ("<think>\nhm\n</think>\n\nyes", "yes"), ("so <think>a</think>x<think>b</think>y", "so\nx\ny"),
        ("<think>cut", "<think>cut"), ("<think>only</think>", ""),
    ],
)  # fmt: skip
def test_thoughts_in_a_text_are_no_part_of_the_answer(tmp_path, text, output):
    assert texts(tmp_path, assistant(content=text))[0] == [("a", output)]


def test_thoughts_are_kept_as_parts(tmp_path):
    for record in (assistant(content="<think>hm</think>yes"), assistant(content="yes", reasoning_content="hm")):
        sent = next(payload for type_, payload in log(tmp_path, record) if payload.get("role") == "assistant")
        assert sent["text"] == "yes"
        assert sent["parts"][0] == {"type": "reasoning", "text": "hm"}


def test_thoughts_of_a_user_stay_text(tmp_path):
    record = {
        "messages": [
            {"role": "user", "content": "what is <think>x</think>?"},
            {"role": "assistant", "content": "a tag"},
        ]
    }
    assert texts(tmp_path, record)[0] == [("what is <think>x</think>?", "a tag")]


def test_model_usage_and_cost_are_a_model_call(tmp_path):
    record = assistant(content="b", model="m", usage={"total_tokens": 5}, cost_usd=0.1, finish_reason="length")
    events = log(tmp_path, record)
    call = dict(events)["llm.call_completed"]
    assert call == {"model": "m", "usage": {"total_tokens": 5}, "cost_usd": 0.1, "stop_reason": "max_tokens"}
    assert dict(events)["turn.completed"]["stop_reason"] == "max_tokens"


def test_system_prompt_that_repeats_is_told_once(tmp_path):
    system = {"role": "system", "content": "p"}
    turn = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    events = log(tmp_path, {"messages": [system, *turn, system, *turn, {**system, "content": "q"}, *turn]})
    assert [payload["text"] for type_, payload in events if payload.get("role") == "system"] == ["p", "q"]


# Anthropic


def test_result_blocks_never_start_a_turn_and_text_next_to_them_does(tmp_path):
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "r", "is_error": True}
    record = {"messages": [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "wait"}, use]},
        {"role": "user", "content": [result, {"type": "text", "text": "and b?"}]},
        {"role": "assistant", "content": "done"},
    ]}  # fmt: skip
    subjects_, counts = read(tmp_path, record)
    assert [(turn.input, turn.output) for turn in of_kind(subjects_, "turn")] == [("a", "wait"), ("and b?", "done")]
    types = [event.type for event in subjects_[-1].trail]
    assert types == [
        "message.sent",
        "message.sent",
        "tool.called",
        "tool.failed",
        "turn.completed",
        "turn.completed",
        "session.ended",
    ]
    assert counts.details["contents"]["failed_results"] == 1


def test_calls_and_results_before_the_first_user_message_are_kept(tmp_path):
    use = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    record = {"messages": [
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]},
        {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
    ]}  # fmt: skip
    subjects_, counts = read(tmp_path, record)
    assert len(of_kind(subjects_, "turn")) == 1
    assert [event.type for event in subjects_[-1].trail][:2] == ["tool.called", "tool.completed"]
    assert counts.details["contents"]["results"] == 1


def test_tools_of_the_provider_have_calls_and_results_in_one_message(tmp_path):
    blocks = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s",
            "content": [{"type": "web_search_result", "title": "T", "url": "u"}],
        },
        {"type": "text", "text": "found"},
    ]
    subjects_, _ = read(
        tmp_path, {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": blocks}]}
    )
    cycle, turn, _ = subjects_
    assert (cycle.input["tool_name"], cycle.output, turn.output) == ("web_search", "T\nu", "found")
    assert turn.events[-1].payload["stop_reason"] == "end_turn"


def test_image_in_a_result_is_a_part_of_it(tmp_path):
    content = [
        {"type": "text", "text": "shot"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]
    record = {"messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}, {"role": "assistant", "content": "b"},
    ]}  # fmt: skip
    end = dict(log(tmp_path, record))["tool.completed"]
    assert (end["output"], end["parts"][1]["data"]) == ("shot\n[image/png, 3 B]", "AAAA")


# Responses


def test_items_of_responses(tmp_path):
    items = [
        {"type": "message", "role": "user", "content": "a"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        {"type": "custom_tool_call", "call_id": "c1", "name": "sql", "input": "select 1"},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": [{"type": "input_text", "text": "1"}]},
        {"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "q"}},
        {"type": "code_interpreter_call", "id": "i", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
        {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "error": "down", "output": None},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]
    subjects_, counts = read(tmp_path, {"input": items})
    cycles = {
        cycle.input["tool_name"]: (cycle.input["input"], cycle.output) for cycle in of_kind(subjects_, "tool_cycle")
    }
    assert cycles == {
        "sql": ("select 1", "1"), "web_search": ({"action": {"query": "q"}}, None),
        "code_interpreter": ({"code": "1+1"}, [{"type": "logs", "logs": "2"}]), "f": ({}, "down"),
    }  # fmt: skip
    assert counts.details["contents"]["failed_results"] == 1
    assert subjects_[-1].session_id == "1"
    assert of_kind(subjects_, "turn")[0].output == "no"


def test_whole_response_object_is_a_turn_whose_prompt_may_be_unknown(tmp_path):
    response = {
        "id": "resp_1", "object": "response", "status": "completed", "model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}, "error": None,
        "output": [{"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}],
    }  # fmt: skip
    subjects_, counts = read(tmp_path, response, {**response, "id": "2", "input": "hello"})
    assert [(turn.input, turn.output) for turn in of_kind(subjects_, "turn")] == [(None, "hi"), ("hello", "hi")]
    assert subjects_[0].events[0].payload == {"model": "m", "usage": {"input_tokens": 1, "output_tokens": 2}}
    assert counts.details["formats"] == {"responses": 2}


# Gemini


def test_parts_of_gemini(tmp_path):
    record = {
        "contents": [
            {"parts": [{"text": "see"}, {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}, {"text": None, "file_data": {"mime_type": "application/pdf", "file_uri": "gs://b/a.pdf"}}]},
            {"role": "model", "parts": [{"text": "hm", "thought": True}, {"function_call": {"id": "1", "name": "f", "args": {"a": 1}}}]},
            {"role": "function", "parts": [{"function_response": {"id": "1", "name": "f", "response": {"error": "no"}}}]},
            {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}, {"text": "ok"}]},
        ],
        "usageMetadata": {"totalTokenCount": 3},
    }  # fmt: skip
    subjects_, counts = read(tmp_path, record)
    (turn,) = of_kind(subjects_, "turn")
    assert (turn.input, turn.output) == ("see\n[image/png, 3 B]\n[application/pdf, gs://b/a.pdf]", "ok")
    assert [(cycle.input["tool_name"], cycle.output) for cycle in of_kind(subjects_, "tool_cycle")] == [
        ("f", '{"error":"no"}'),
        ("code_execution", "1"),
    ]
    assert counts.details["contents"]["failed_results"] == 1


def test_candidate_of_gemini_is_the_answer(tmp_path):
    answer = {"content": {"parts": [{"text": "hi"}]}, "finishReason": "MAX_TOKENS"}
    record = {
        "contents": [{"parts": [{"text": "a"}]}],
        "candidates": [answer],
        "modelVersion": "g",
        "usageMetadata": {"totalTokenCount": 3},
    }
    assert texts(tmp_path, record)[0] == [("a", "hi")]
    assert dict(log(tmp_path, record))["turn.completed"]["stop_reason"] == "max_tokens"
    with pytest.raises(DataError, match=r"unknown item 'candidate'.*candidates\[1\]"):
        read(tmp_path, {**record, "candidates": [answer, answer]})


def test_unknown_part_of_gemini_is_named_by_its_field(tmp_path):
    with pytest.raises(DataError, match=r"unknown part 'hologram'.*contents\[0\].parts\[0\]"):
        read(tmp_path, {"contents": [{"parts": [{"hologram": {}}]}]})


# ShareGPT, LangChain


def test_call_of_sharegpt_that_is_no_json_is_kept(tmp_path):
    messages = [
        {"from": "human", "value": "a"},
        {"from": "function_call", "value": "oops"},
        {"from": "gpt", "value": "b"},
    ]
    called = dict(log(tmp_path, {"conversations": messages}))["tool.called"]
    assert (called["input"], "not JSON" in called["arguments_error"]) == ("oops", True)


def test_call_that_langchain_has_twice_counts_once_and_invalid_ones_keep_their_error(tmp_path):
    ai = {
        "type": "ai",
        "content": [{"type": "text", "text": "look"}, {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}],
        "tool_calls": [{"id": "c", "name": "f", "args": {"a": 1}}],
        "invalid_tool_calls": [{"id": "d", "name": "g", "args": "{bro", "error": "bad JSON"}],
        "response_metadata": {"model_name": "m", "finish_reason": "tool_calls"},
        "usage_metadata": {"input_tokens": 1, "output_tokens": 1},
    }
    subjects_, counts = read(
        tmp_path, {"messages": [{"type": "human", "content": ["a", {"type": "text", "text": "b"}]}, ai]}
    )
    called = [event.payload for event in subjects_[-1].trail if event.type == "tool.called"]
    assert [(event_["tool_name"], event_.get("arguments_error")) for event_ in called] == [
        ("f", None),
        ("g", "bad JSON"),
    ]
    assert (counts.details["contents"]["calls"], of_kind(subjects_, "turn")[0].input) == (2, "a\nb")
    call = next(event.payload for event in subjects_[-1].trail if event.type == "llm.call_completed")
    assert (call["model"], call["stop_reason"]) == ("m", "tool_calls")


@pytest.mark.parametrize("form", ["lines", "array", "messages"])
def test_lone_surrogate_fails_its_record_alone(tmp_path, form):
    path = tmp_path / "chats.json"
    good, bad = orjson.dumps(OPENAI), orjson.dumps(OPENAI).replace(b"22C.", rb"\ud83d")
    path.write_bytes(
        {
            "lines": b"\n".join([good, bad]),
            "array": b"[" + good + b",\n" + bad + b"]",
            "messages": bad[len(b'{"messages":') : -1],
        }[form]
    )
    subjects_, counts = read_file(path)
    (due,) = [due for due in subjects_ if isinstance(due, Due)]
    assert "lone surrogate" in due.failure.message
    assert (counts.records, counts.failed) == ((1, 1) if form == "messages" else (2, 1))


def test_error_in_place_of_a_reply_fails_the_record(tmp_path):
    subjects_, counts = read(tmp_path, OPENAI, {"messages": [{"role": "user", "content": "a"}], "error": "timeout"})
    assert [due.failure.message for due in subjects_ if isinstance(due, Due)] == [
        "the record has no reply and an error: timeout"
    ]
    assert (counts.records, counts.failed) == (2, 1)


def test_items_of_a_response_come_before_its_text(tmp_path):
    record = {"input": [{"role": "user", "content": "a"}], "output": "b"}
    assert texts(tmp_path, record)[0] == [("a", "b")]


def test_exit_codes_of_providers_tools(tmp_path):
    shell = [
        {"role": "user", "content": "a"},
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["false"]}},
        {
            "type": "shell_call_output",
            "call_id": "c",
            "output": [{"stdout": "", "stderr": "x", "outcome": {"type": "exit", "exit_code": 1}}],
        },
    ]
    code = {
        "type": "code_execution_tool_result",
        "tool_use_id": "s",
        "content": {"type": "code_execution_result", "stdout": "", "return_code": 1},
    }
    blocks = [{"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {"code": "1"}}, code]
    for record in (
        {"input": shell},
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": blocks}]},
    ):
        end = dict(log(tmp_path, record))["tool.completed"]
        assert (end["success"], end["exit_code"]) == (False, 1)


def test_typed_part_next_to_a_text_is_not_taken_for_the_text(tmp_path):
    parts = [{"type": "text", "text": "hi"}, {"type": "reasoning", "text": "hm"}]
    with pytest.raises(DataError, match="unknown part 'reasoning'"):
        read(tmp_path, {"messages": [{"role": "user", "parts": parts}]})


def test_response_of_gemini_without_content_is_a_failed_record(tmp_path):
    contents = [{"parts": [{"text": "a"}]}]
    blocked = {"contents": contents, "candidates": [{"finishReason": "SAFETY"}]}
    subjects_, counts = read(tmp_path, OPENAI, blocked)
    assert ["SAFETY" in due.failure.message for due in subjects_ if isinstance(due, Due)] == [True]
    assert counts.failed == 1


def test_refusals_by_stop_reason_and_in_langchain(tmp_path):
    chain = {"type": "ai", "content": "", "additional_kwargs": {"refusal": "no"}}
    for record in (
        assistant(content=[{"type": "text", "text": "no"}], stop_reason="refusal"),
        {"messages": [{"type": "human", "content": "a"}, chain]},
    ):
        completed = dict(log(tmp_path, record))["turn.completed"]
        assert (completed["refusal"], completed["signals_extra"]["final_response_text"]) == (True, "no")


def places(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


ODD = [
    None,
    True,
    0,
    1.5,
    "",
    "x",
    "tool",
    [],
    {},
    [None],
    ["x"],
    [{}],
    {"x": 1},
    {"type": "text"},
    {"type": "tool_use"},
    {"role": "tool"},
]


@pytest.mark.parametrize("name", [*FORMS, "unknown"])
def test_records_with_values_of_other_types_are_read_or_refused_with_their_places(name):
    draw = Random(name)
    for _ in range(300):
        record = deepcopy(UNKNOWN if name == "unknown" else FORMS[name][1])
        for _ in range(draw.randint(1, 3)):
            *path, key = draw.choice([path for path in places(record) if path] or [("id",)])
            inner = record
            for step in path:
                inner = inner[step]
            if draw.random() < 0.25 and key in (inner if isinstance(inner, dict) else range(len(inner))):
                del inner[key]
            else:
                inner[key] = deepcopy(draw.choice(ODD))
        check_reading(record, draw.choice(["error", "mark"]))


def check_reading(record, unknown):
    """Read *record*, and expect a session that can be recorded, or problems with their places."""
    session, problems = None, ()
    try:
        session = Layout(unknown=unknown).reader(lambda turn, call: call).session("s", deepcopy(record))
    except DataError as error:
        problems = error.problems
    assert all(problem.path for problem in problems), record
    if isinstance(session, Session):
        assert orjson.dumps([event.payload for event in session.log])


def test_record_without_messages_is_refused_with_its_keys_and_the_nearest(tmp_path):
    with pytest.raises(DataError, match=r"needs 'messages'.*the record has id, mesages, did you mean 'messages'"):
        read(tmp_path, {"id": 1, "mesages": []})


def test_file_without_subjects_says_why(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_bytes(
        b"\n".join(orjson.dumps({"messages": messages}) for messages in ([{"role": "user", "content": "a"}], []))
    )
    with pytest.raises(
        DataError, match=r"no subjects in 2 conversations: 1 without a user message; 1 without a reply .*trailing: keep"
    ):
        Messages(path).check()


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("messages", "message_"),
    [
        ([{"role": "user", "text": "q"}], "unknown message 'text': it has no 'content'"),
        ([{"role": "user", "value": "q"}, {"role": "assistant", "value": "a"}], "unknown message 'value'"),
        ([{"role": "tool", "tool_call_id": "c1", "output": "22C"}], "unknown message 'output'"),
        ([{"from": "human", "content": "q"}], "a text 'from' and a text 'value'"),
        ([{"role": "model", "parts": [{"text": "a", "functionCall": {"name": "f"}}]}], "'text, functionCall'"),
    ],
)
def test_a_message_whose_text_would_be_lost_is_refused(tmp_path, messages, message_):
    with pytest.raises(DataError, match=message_):
        read(tmp_path, {"messages": messages})


def test_a_message_whose_text_would_be_lost_is_marked(tmp_path):
    subjects_, counts = texts(
        tmp_path, {"messages": [{"role": "user", "text": "q"}, {"role": "ai", "text": "a"}]}, unknown="mark"
    )
    assert subjects_ == [('[unknown message "text"]', '[unknown message "text"]')]
    assert counts.marked == {"message text": 2}


def test_candidates_that_are_no_list_are_refused(tmp_path):
    record = {
        "contents": [{"role": "user", "parts": [{"text": "q"}]}],
        "candidates": {"content": {"parts": [{"text": "a"}]}},
    }
    with pytest.raises(DataError, match="'candidates' is a list"):
        read(tmp_path, record)


@pytest.mark.parametrize("role", ["user", "system", "tool", "assistant"])
def test_tool_calls_of_every_role_count(tmp_path, role):
    messages = [
        {"role": "user", "content": "q"},
        {"role": role, "content": "x", "tool_calls": [CALL]},
        {"role": "assistant", "content": "a"},
    ]
    _, counts = read(tmp_path, {"messages": messages})
    assert counts.details["contents"]["calls"] == 1


@pytest.mark.parametrize(
    ("calls", "results"),
    [
        ([CALL] * 20_000, []),
        (
            [{**CALL, "id": str(number)} for number in range(20_000)],
            [str(number) for number in reversed(range(20_000))],
        ),
        ([{**CALL, "id": str(number)} for number in range(20_000)], [f"z{number}" for number in range(20_000)]),
    ],
    ids=["one id", "results in reverse", "results without calls"],
)
def test_the_time_to_match_results_grows_with_the_calls_alone(calls, results):
    start, conversation = process_time(), Conversation("s")
    conversation.add("assistant", [ToolCall(call["id"], "weather") for call in calls])
    conversation.add("tool", [ToolResult(id_, "22C") for id_ in results])
    conversation.session({})
    assert process_time() - start < 3


def test_the_time_to_split_reasoning_grows_with_the_text_alone():
    start = process_time()
    parts = split_reasoning("a <think> b </think>\n" * 200_000 + "c")
    assert len(parts) == 200_001
    assert parts[-1].text.endswith("a\nc")
    assert process_time() - start < 3
