"""Random records and random changes of whole files: nothing is lost, and nothing but a refusal with its place comes of them."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError
from dicast_transcripts import Adk, Atif, ClaudeCode, Codex, Copilot, GeminiCli, OpenCode, OpenHands, SweAgent

TEXTS = st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "id", "name", "role", "content", "x"]), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip

CALL = {"toolCallId": "c1", "name": "bash", "arguments": {}}
WHOLE: dict[type[Any], Any] = {
    ClaudeCode: [
        {"type": "user", "uuid": "1", "sessionId": "s", "timestamp": "t", "message": {"role": "user", "content": "Go"}},
        {"type": "assistant", "uuid": "2", "sessionId": "s", "message": {"id": "m", "role": "assistant", "model": "x", "usage": {"output_tokens": 1}, "content": [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}]}},
        {"type": "user", "uuid": "3", "sessionId": "s", "origin": {"kind": "human"}, "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a"}], "is_error": False}]}},
        {"type": "assistant", "uuid": "4", "sessionId": "s", "isSidechain": True, "agentId": "a", "parentUuid": "3", "message": {"role": "assistant", "content": [{"type": "text", "text": "A"}]}},
        {"type": "attachment", "uuid": "5", "sessionId": "s", "attachment": {"type": "queued_command", "prompt": "B", "commandMode": "prompt"}},
        {"type": "system", "subtype": "turn_duration", "sessionId": "s"},
    ],
    Codex: [
        {"type": "session_meta", "timestamp": "t", "payload": {"id": "s", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}, "base_instructions": {"text": "Be brief"}}},
        {"type": "turn_context", "payload": {"model": "x"}},
        {"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "Go", "images": ["data:image/png;base64,aGVq"]}},
        {"type": "response_item", "payload": {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "content": None}},
        {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}},
        {"type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "c1", "exit_code": 1, "aggregated_output": "no"}},
        {"type": "event_msg", "payload": {"type": "mcp_tool_call_end", "call_id": "c2", "result": {"Ok": {"isError": True}}}},
        {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": {"content": "no", "success": False}}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 1}}}},
        {"type": "compacted", "payload": {"message": "so far"}},
        {"type": "item.completed", "item": {"id": "i", "type": "command_execution", "command": "ls", "exit_code": 0, "error": {"message": "no"}}},
    ],
    GeminiCli: [
        {"sessionId": "s", "startTime": "t", "projectHash": "h", "kind": "subagent"},
        {"id": "1", "type": "user", "timestamp": "t", "content": [{"text": "Go"}]},
        {"id": "2", "type": "gemini", "content": "", "model": "x", "tokens": {"input": 1}, "thoughts": [{"subject": "a", "description": "b"}], "toolCalls": [{"id": "c1", "name": "read", "args": {}, "status": "success", "result": [{"functionResponse": {"id": "c1", "response": {"output": "x"}}}]}]},
        {"$set": {"messages": [{"id": "3", "type": "info", "content": "note"}]}},
        {"$rewindTo": "3"},
        {"history": [{"role": "model", "parts": [{"text": "Ho"}]}]},
        {"method": "m", "response": [{"candidates": [{"content": {"parts": [{"text": "x"}]}, "finishReason": "STOP"}], "usageMetadata": {"a": 1}}]},
    ],
    Copilot: [
        {"type": "session.start", "id": "1", "data": {"sessionId": "s", "context": {"cwd": "/"}}},
        {"type": "user.message", "id": "2", "data": {"content": "Go", "attachments": [{"displayName": "a"}]}},
        {"type": "assistant.message", "id": "3", "agentId": "a", "data": {"content": "A", "toolRequests": [CALL], "reasoningText": "hm", "outputTokens": 1}},
        {"type": "tool.execution_start", "id": "4", "data": {"toolCallId": "c2", "toolName": "x", "arguments": {}}},
        {"type": "tool.execution_complete", "id": "5", "data": {"toolCallId": "c1", "success": False, "error": {"message": "no"}, "result": {"content": "x"}}},
        {"message_index": 0, "role": "assistant", "target": "copilot", "test_id": "t", "content": "x", "tool_calls": [{"tool": "a", "id": "b", "input": {}, "output": "c"}], "source": {"session_id": "z", "provider": "copilot"}},
        {"requests": [{"message": {"text": "Go"}, "response": [{"value": "A"}, {"kind": "toolInvocationSerialized", "toolCallId": "c", "toolId": "t", "isComplete": True, "resultDetails": {"isError": True}}], "result": {"errorDetails": {"message": "no"}}}], "responderUsername": "GitHub Copilot"},
    ],
    OpenCode: {"info": {"id": "s", "parentID": "p"}, "messages": [
        {"info": {"role": "user", "time": {"created": 1}}, "parts": [{"type": "text", "text": "Go"}, {"type": "file", "mime": "image/png", "url": "data:image/png;base64,aGVq"}]},
        {"info": {"role": "assistant", "modelID": "x", "tokens": {"input": 1}, "cost": 0.1, "error": {"name": "E", "data": {"message": "no"}}}, "parts": [{"type": "reasoning", "text": "hm"}, {"type": "tool", "callID": "c", "tool": "t", "state": {"status": "completed", "input": {}, "output": "x", "metadata": {"exit": 1}, "attachments": [{"mime": "a", "url": "b"}]}}]},
    ]},
    Atif: {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"model_name": "x"}, "steps": [
        {"source": "user", "message": [{"type": "image", "source": {"media_type": "image/png", "path": "a"}}]},
        {"source": "agent", "message": "A", "reasoning_content": "hm", "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}], "observation": {"results": [{"source_call_id": "c", "content": [{"type": "text", "text": "x"}], "subagent_trajectory_ref": [{"trajectory_id": "t"}]}]}, "metrics": {"prompt_tokens": 1, "cost_usd": 0.1}},
    ], "subagent_trajectories": [{"trajectory_id": "t", "agent": {}, "steps": [{"source": "agent", "message": "A"}]}]},
    SweAgent: {"trajectory": [{"action": "ls", "observation": "x", "thought": "A"}], "info": {"a": 1}, "history": [
        {"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "Go"}], "message_type": "observation"},
        {"role": "assistant", "content": "A", "action": "ls", "thought": "A", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "bash", "arguments": "{}"}}]},
        {"role": "tool", "content": "x", "tool_call_ids": ["c"]},
    ]},
    OpenHands: [
        {"id": 1, "timestamp": "t", "source": "user", "action": "message", "args": {"content": "Go"}},
        {"id": 2, "timestamp": "t", "source": "agent", "action": "run", "args": {"command": "ls", "thought": "hm"}, "tool_call_metadata": {"tool_call_id": "c", "function_name": "f", "model_response": {"model": "x", "usage": {"a": 1}}}},
        {"id": 3, "timestamp": "t", "source": "agent", "observation": "run", "content": "x", "cause": 2, "extras": {"metadata": {"exit_code": 1}}},
        {"kind": "ActionEvent", "id": "4", "source": "agent", "thought": [{"type": "text", "text": "A"}], "tool_name": "t", "tool_call_id": "d", "action": {"kind": "K", "command": "ls"}, "tool_call": {"id": "d", "name": "t", "arguments": "{}"}, "thinking_blocks": [{"thinking": "hm"}]},
        {"kind": "ObservationEvent", "id": "5", "source": "environment", "tool_call_id": "d", "tool_name": "t", "observation": {"content": [{"type": "text", "text": "x"}], "is_error": True, "metadata": {"exit_code": 2}}},
        {"kind": "MessageEvent", "id": "6", "source": "agent", "llm_message": {"role": "assistant", "content": [{"type": "text", "text": "A"}], "tool_calls": None}},
        {"messages": [{"role": "user", "content": "Go"}], "response": {"model": "x", "choices": [{"message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}], "usage": {"a": 1}}, "cost": 0.1},
        {"instance_id": "i", "history": [[{"id": 1, "source": "user", "action": "message", "args": {"content": "Go"}}, {}]], "metrics": {"a": 1}},
    ],
    Adk: {"eval_set_id": "e", "eval_cases": [{"eval_id": "c", "conversation": [{"user_content": {"parts": [{"text": "Go"}]}, "final_response": {"parts": [{"text": "A"}]}, "intermediate_data": {"tool_uses": [{"id": "u", "name": "t", "args": {}}], "tool_responses": [{"id": "u", "name": "t", "response": {"error": "no"}}], "intermediate_responses": [["agent", [{"text": "x"}]]], "invocation_events": [{"author": "a", "content": {"parts": [{"text": "y"}]}}]}}]}]},
}  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside *value*."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, child in inner for found in [(*path, key), *places(child, (*path, key))]]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return value


@pytest.mark.parametrize("source", WHOLE, ids=lambda source: source.__name__)
@given(data=st.data())
def test_any_change_of_a_file_is_read_or_refused_with_its_place(tmp_path_factory, source, data):
    whole = WHOLE[source]
    path = data.draw(st.sampled_from(places(whole)))
    records = changed(whole, path, data.draw(VALUES))
    file = tmp_path_factory.getbasetemp() / f"{source.__name__}.jsonl"
    lines = records if isinstance(records, list) else [records]
    file.write_text("".join(json.dumps(record) + "\n" for record in lines))
    for unknown in ("mark", "error"):
        read_or_refused(source(file, unknown=unknown, trailing="keep", subjects=["tool_cycle", "turn", "session"]))


def read_or_refused(source: Any) -> None:
    """Read the file of *source*; a fault is a refusal with the file."""
    try:
        with source.reading() as live:
            live.check()
            ids = Counter((item.kind, item.id) for item in live.subjects())
            counts = live.read_counts()
    except DataError as error:
        refusal: DataError | None = error
    else:
        refusal = None
    if refusal is not None:
        assert all(problem.file for problem in refusal.problems)
    else:
        assert max(ids.values()) == 1
        assert counts.details["contents"]["results"] >= counts.details["contents"]["failed_results"]
        assert source.unknown == "mark" or not counts.marked


BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": "a"},
        {"type": "thinking", "thinking": "b"},
        {"type": "tool_use", "id": "c1", "name": "t", "input": {}},
        {"type": "tool_use", "id": "c2", "name": "t", "input": {}},
        {"type": "tool_result", "tool_use_id": "c1", "content": "x"},
        {"type": "tool_result", "tool_use_id": "c3", "content": "x", "is_error": True},
        {"type": "hologram"},
    ]
)
TYPES = st.sampled_from(["user", "assistant", "summary", "system", "progress", "hologram"])


@given(st.lists(st.tuples(TYPES, st.lists(BLOCKS, max_size=3)), min_size=1, max_size=12))
def test_every_line_of_claude_code_is_counted_once_and_every_call_and_result_too(tmp_path_factory, drawn):
    file = tmp_path_factory.getbasetemp() / "claude.jsonl"
    records = [
        {"type": type_, "uuid": str(number), "sessionId": "s", "leafUuid": "x", "message": {"id": f"m{number}", "content": blocks}}
        for number, (type_, blocks) in enumerate([("summary", []), *drawn])
    ]  # fmt: skip
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    with ClaudeCode(file, subjects=["session"], trailing="keep").reading() as live:
        if not any(type_ in ("user", "assistant") for type_, _ in drawn):
            with pytest.raises(DataError, match="no subjects"):
                live.check()
            return
        list(live.subjects())
        counts = live.read_counts()
    kinds = Counter(counts.details["kinds"])
    repeated = kinds.pop("repeated call", 0)
    unknown_records = counts.marked.get("record type hologram", 0)
    assert sum(kinds.values()) + unknown_records == len(records)
    blocks = [block for type_, inner in drawn if type_ in ("user", "assistant") for block in inner]
    types = Counter(block["type"] for block in blocks)
    contents = counts.details["contents"]
    assert contents["calls"] + repeated == types["tool_use"]
    assert contents["results"] == types["tool_result"]
    assert counts.marked.get("part hologram", 0) == types["hologram"]
    assert contents["parts"] == types["text"] + types["thinking"]
