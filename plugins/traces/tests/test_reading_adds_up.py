"""Every record of a file of conversations is read, marked, dropped or failed, and counted as such."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dicast import DataError, Due
from dicast.testing import run_pipeline
from dicast.toolkit.sessions import Session
from dicast_traces import Messages
from dicast_traces.messages import Layout

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="<"), min_size=1, max_size=6)
part = st.one_of(
    st.tuples(st.just("text"), text), st.tuples(st.just("image"), st.just("AAAA")), st.tuples(st.just("unknown"), st.sampled_from("xyz")),
    st.tuples(st.just("call"), st.sampled_from("fg")), st.tuples(st.just("result"), text),
)  # fmt: skip
message = st.tuples(st.sampled_from(["user", "assistant", "assistant", "system", "critic"]), st.lists(part, max_size=4))
conversation = st.lists(message, max_size=7)


def split(messages):
    """Return the messages with each result as a message of its own, and calls with the assistant's alone."""
    for role, parts in messages:
        texts_ = [part_ for part_ in parts if part_[0] not in ("call", "result")]
        calls = [part_ for part_ in parts if part_[0] == "call"]
        yield role, texts_ + (calls if role == "assistant" else [])
        yield from (("tool", [part_]) for part_ in parts if part_[0] == "result")


def openai(messages):
    blocks = {
        "text": lambda value: {"type": "text", "text": value}, "unknown": lambda value: {"type": f"zz-{value}"},
        "image": lambda value: {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{value}"}},
    }  # fmt: skip
    for role, parts in split(messages):
        if role == "tool":
            yield {"role": "tool", "content": parts[0][1]}
            continue
        calls = [
            {"id": None, "type": "function", "function": {"name": name, "arguments": "{}"}}
            for kind, name in parts
            if kind == "call"
        ]
        content = [blocks[kind](value) for kind, value in parts if kind != "call"]
        yield {"role": role, "content": content, **({"tool_calls": calls} if calls else {})}


def anthropic(messages):
    blocks = {
        "text": lambda value: {"type": "text", "text": value}, "unknown": lambda value: {"type": f"zz-{value}"},
        "image": lambda value: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": value}},
        "call": lambda value: {"type": "tool_use", "name": value, "input": {}},
        "result": lambda value: {"type": "tool_result", "content": value},
    }  # fmt: skip
    for role, parts in messages:
        yield {"role": role, "content": [blocks[kind](value) for kind, value in parts]}


def responses(messages):
    blocks = {
        "text": lambda value: {"type": "input_text", "text": value}, "unknown": lambda value: {"type": f"zz-{value}"},
        "image": lambda value: {"type": "input_image", "image_url": f"data:image/png;base64,{value}"},
    }  # fmt: skip
    for role, parts in split(messages):
        if role == "tool":
            yield {"type": "function_call_output", "output": parts[0][1]}
            continue
        yield {
            "type": "message",
            "role": role,
            "content": [blocks[kind](value) for kind, value in parts if kind != "call"],
        }
        yield from (
            {"type": "function_call", "name": name, "arguments": "{}"} for kind, name in parts if kind == "call"
        )


def gemini(messages):
    blocks = {
        "text": lambda value: {"text": value}, "unknown": lambda value: {f"zz-{value}": {}},
        "image": lambda value: {"inlineData": {"mimeType": "image/png", "data": value}},
        "call": lambda value: {"functionCall": {"name": value, "args": {}}},
        "result": lambda value: {"functionResponse": {"name": "f", "response": {"output": value}}},
    }  # fmt: skip
    for role, parts in messages:
        yield {"role": role, "parts": [blocks[kind](value) for kind, value in parts]}


def langchain(messages):
    for message_ in openai(messages):
        role = {"user": "human", "assistant": "ai"}.get(message_["role"], message_["role"])
        calls = [{"id": None, "name": call["function"]["name"], "args": {}} for call in message_.get("tool_calls", ())]
        if role == "critic":
            yield {"type": "chat", "data": {"role": "critic", "content": message_["content"]}}
        else:
            yield {"type": role, "data": {"content": message_["content"], "tool_calls": calls}}


def sharegpt(messages):
    """Yield texts, calls and results alone: the format has no other parts."""
    for role, parts in messages:
        for kind, value in parts:
            match kind:
                case "text":
                    yield {"from": {"user": "human", "assistant": "gpt"}.get(role, role), "value": value}
                case "call":
                    yield {"from": "function_call", "value": orjson.dumps({"name": value, "arguments": {}}).decode()}
                case "result":
                    yield {"from": "observation", "value": value}


KEYS = {
    openai: "messages",
    anthropic: "messages",
    responses: "input",
    gemini: "contents",
    langchain: "messages",
    sharegpt: "conversations",
}


def expected(dialect, messages):
    """Return the counts of the file, computed from the messages that were put into it."""
    kinds: Counter[str] = Counter()
    rendered = list(dialect(messages))
    for role, parts in messages:
        for kind, _ in parts:
            is_dropped = kind == "call" and role != "assistant" and dialect in (openai, responses, langchain)
            kinds[kind] += 0 if is_dropped or (dialect is sharegpt and kind in ("image", "unknown")) else 1
        kinds["role"] += dialect is not sharegpt and role == "critic"
    if dialect is sharegpt:
        kinds["role"] = sum(message_["from"] == "critic" for message_ in rendered)
    return rendered, kinds


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.tuples(st.sampled_from(list(KEYS)), st.one_of(conversation, st.none())), min_size=1, max_size=4),
    st.sampled_from(["lines", "array", "indented"]),
)
def test_read_marked_dropped_and_failed_add_up_to_the_file(tmp_path_factory, chosen, form):
    rows, total, items, failed = [], Counter(), 0, 0
    for dialect, messages in chosen:
        if messages is None:
            rows.append({KEYS[dialect]: [], "error": "boom"})
            failed += 1
            continue
        rendered, kinds = expected(dialect, messages)
        rows.append({KEYS[dialect]: rendered})
        items += len(rendered)
        total += kinds
    path = tmp_path_factory.mktemp("chats") / "chats.json"
    if form == "lines":
        path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    else:
        path.write_bytes(orjson.dumps(rows, option=orjson.OPT_INDENT_2 if form == "indented" else None))
    unknown = total["unknown"] + total["role"]
    if unknown:
        with pytest.raises(DataError) as caught:
            Messages(path).check()
        assert len([problem for problem in caught.value.problems if "unknown" in str(problem)]) == min(unknown, 100)
    for kinds in (("session",), ("tool_cycle", "turn")):
        with Messages(path, subjects=kinds, unknown="mark").reading() as live:
            subjects_ = None
            with suppress(DataError):  # there may be no subject of these kinds at all
                subjects_ = list(live.subjects())
            if subjects_ is None:
                continue
            counts = live.read_counts()
        contents = counts.details["contents"]
        assert (counts.records, counts.failed) == (len(rows), failed)
        outputs_ = {subject.session_id for subject in subjects_ if not isinstance(subject, Due)}
        assert counts.records == len(outputs_) + sum(counts.dropped.values()) + counts.failed
        assert sum(counts.marked.values()) == unknown
        assert contents["messages"] == items
        assert contents["parts"] == total["text"] + total["image"]
        assert (contents["calls"], contents["results"]) == (total["call"], total["result"])
        if kinds == ("session",):
            log = [event for subject in subjects_ if not isinstance(subject, Due) for event in subject.trail]
            ends = Counter(event.type for event in log)
            assert ends["tool.called"] == total["call"]
            assert ends["tool.completed"] + ends["tool.failed"] == total["result"]
            assert contents["unmatched_calls"] == total["call"] - (total["result"] - contents["unmatched_results"])


WORDS = [
    "messages", "contents", "conversations", "input", "output", "items", "role", "content", "parts", "type", "text", "from", "value", "kwargs", "data", "lc", "id",
    "tool_calls", "function", "name", "arguments", "function_call", "functionCall", "functionResponse", "inlineData", "tool_call_id", "tool_use_id", "source",
    "image_url", "input_audio", "file", "refusal", "audio", "system", "instructions", "candidates", "error", "usage", "model", "stop_reason", "call_id", "summary",
    "systemInstruction", "additional_kwargs", "response_metadata", "thinking", "is_error", "outcome", "action", "promptFeedback", "reasoning_content", "object",
]  # fmt: skip
VALUES = [
    "user", "assistant", "model", "human", "tool", "system", "text", "image", "tool_use", "tool_result", "function_call", "function_call_output", "reasoning",
    "constructor", "ai", "message", "thinking", "mcp_call", "web_search_call", "refusal", "response", "image_generation_call", "document", "chat", "custom",
]  # fmt: skip
leaf = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(VALUES),
    st.just("data:image/png;base64,AA"),
    st.just("<think>a</think>b"),
)
shape = st.recursive(
    leaf,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)),
    max_leaves=25,
)


@pytest.mark.slow
@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(WORDS[:6] + WORDS[28:31]), st.lists(st.dictionaries(st.sampled_from(WORDS), shape, max_size=6), max_size=4), min_size=1, max_size=2),
    st.sampled_from(["error", "mark"]),
)  # fmt: skip
def test_any_shape_is_read_or_refused_with_its_place(record, unknown):
    check_reading(record, unknown)


def check_reading(record, unknown):
    """Read *record*, and expect a session that can be recorded, or problems with their places."""
    reader = Layout(unknown=unknown).reader(lambda turn, call: call)
    session, problems = None, ()
    try:
        session = reader.session("s", orjson.loads(orjson.dumps(record)))
    except DataError as error:
        problems = error.problems
    assert all(problem.path for problem in problems)
    if isinstance(session, Session):
        assert orjson.dumps([event.payload for event in session.log])
        assert session.log[-1].type == "session.ended"


SESSIONS = st.lists(  # of each session its turns: tool calls by their ends, whether the turn ends, unknown events
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(["completed", "failed", "open"]), max_size=3), st.booleans(), st.integers(0, 2)
        ),
        min_size=1,
        max_size=4,
    ),
    min_size=1,
    max_size=3,
)


def trace_lines(sessions):
    """Yield the events of *sessions*, with results of calls that were never made."""
    for number, turns in enumerate(sessions):
        session = f"s{number}"
        for place, (calls, ends, unknown) in enumerate(turns):
            turn = f"{session}/{place}"
            for call, end in enumerate(calls):
                payload = {"tool_use_id": f"{turn}/{call}", "tool_name": "get"}
                yield {"type": "tool.called", "session_id": session, "turn_id": turn, "payload": payload}
                if end != "open":
                    yield {
                        "type": f"tool.{end}",
                        "session_id": session,
                        "turn_id": turn,
                        "payload": {**payload, "success": True, "error": "x"},
                    }
            for _ in range(unknown):
                yield {"type": "robot.moved", "session_id": session, "turn_id": turn, "payload": {}}
            if ends:
                texts = {"user_prompt_text": "q", "final_response_text": "a"}
                yield {
                    "type": "turn.completed",
                    "session_id": session,
                    "turn_id": turn,
                    "payload": {"stop_reason": "end_turn", "tool_call_count": len(calls), "signals_extra": texts},
                }
        orphan = {"tool_use_id": f"{session}/nobody", "tool_name": "get", "success": True}
        yield {"type": "tool.completed", "session_id": session, "turn_id": f"{session}/0", "payload": orphan}


@given(SESSIONS)
@settings(max_examples=25)
def test_the_counts_of_a_trace_add_up_to_the_file(tmp_path_factory, sessions):
    lines = list(trace_lines(sessions))
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    source = json.dumps({"traces/events": {"path": str(path)}})
    turns = [turn for session in sessions for turn in session]
    end_count = sum(ends for _, ends, _ in turns)
    if not end_count:
        with pytest.raises(DataError, match="there are no subjects"):
            run_pipeline(f"source: {source}\njudges: [heuristic/turn]\n")
        return
    read = run_pipeline(f"source: {source}\njudges: [heuristic/turn]\n").document["read"]
    assert (read["records"], read["subjects"]) == (len(lines), {"turn": end_count})
    assert sum(read.get("unknown_types", {}).values()) == sum(unknown for _, _, unknown in turns)
    types = [line["type"] for line in lines]
    calls = types.count("tool.called")
    results = types.count("tool.completed") + types.count("tool.failed")
    contents = read["contents"]
    assert (contents["calls"], contents["results"]) == (calls, results)
    assert contents["unmatched_results"] == len(sessions)
    assert contents["unmatched_calls"] == calls - (results - len(sessions))
    seen = {line["turn_id"] for line in lines}
    assert contents["turns"] + contents["open_turns"] == len(seen)
