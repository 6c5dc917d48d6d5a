"""The sources of transcripts keep the contract."""

from __future__ import annotations

import json

from dicast.testing import ReaderConformance

ALL = ["turn", "tool_cycle", "session"]


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def claude(type_: str, content: object, uuid: str) -> object:
    return {"type": type_, "uuid": uuid, "sessionId": "s", "message": {"role": type_, "content": content}}


class TestClaudeCode(ReaderConformance):
    source = "transcripts/claude_code"
    files = {
        "a.jsonl": lines(
            claude("user", "List", "1"),
            claude("assistant", [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}}], "2"),
            claude("user", [{"type": "tool_result", "tool_use_id": "c1", "content": "a b"}], "3"),
            claude("assistant", [{"type": "text", "text": "Two files."}], "4"),
        )
    }
    options = {"path": "a.jsonl", "subjects": ALL, "tool_error": "^Error"}
    unknown = files["a.jsonl"] + lines({"type": "hologram", "sessionId": "s"})


class TestCodex(ReaderConformance):
    source = "transcripts/codex"
    files = {
        "a.jsonl": lines(
            {"type": "session_meta", "payload": {"id": "s"}},
            {"type": "response_item", "payload": {"type": "message", "role": "user", "content": "List"}},
            {"type": "response_item", "payload": {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"}},
            {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c1", "output": "a b"}},
            {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "Two files."}},
        )
    }  # fmt: skip
    options = {"path": "a.jsonl", "subjects": ALL}
    unknown = files["a.jsonl"] + lines({"type": "response_item", "payload": {"type": "hologram"}})


class TestGeminiCli(ReaderConformance):
    source = "transcripts/gemini_cli"
    files = {
        "a.json": json.dumps(
            {"sessionId": "s", "messages": [{"type": "user", "content": "Hi"}, {"type": "gemini", "content": "Ho"}]}
        )
    }
    options = {"path": "a.json"}
    unknown = files["a.json"].replace('"type": "gemini"', '"type": "gemini", "id": "1"}, {"type": "hologram"')


class TestCopilot(ReaderConformance):
    source = "transcripts/copilot"
    files = {
        "a.jsonl": lines(
            {"type": "session.start", "id": "1", "data": {"sessionId": "s"}},
            {"type": "user.message", "id": "2", "data": {"content": "Hi"}},
            {"type": "assistant.message", "id": "3", "data": {"content": "Ho"}},
        )
    }
    options = {"path": "a.jsonl"}
    unknown = files["a.jsonl"] + lines({"type": "hologram", "id": "4", "data": {}})


class TestOpenCode(ReaderConformance):
    source = "transcripts/opencode"
    files = {
        "a.json": json.dumps(
            {
                "info": {"id": "s"},
                "messages": [
                    {"info": {"role": "user"}, "parts": [{"type": "text", "text": "Hi"}]},
                    {"info": {"role": "assistant"}, "parts": [{"type": "text", "text": "Ho"}]},
                ],
            }
        )
    }
    options = {"path": "a.json"}
    unknown = files["a.json"].replace('"text": "Ho"}', '"text": "Ho"}, {"type": "hologram"}')


class TestAtif(ReaderConformance):
    source = "transcripts/atif"
    steps = [{"source": "user", "message": "Hi"}, {"source": "agent", "message": "Ho"}]
    files = {"a.json": json.dumps({"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {}, "steps": steps})}
    options = {"path": "a.json"}
    unknown = files["a.json"].replace('"source": "agent"', '"source": "agent", "tool_calls": [{}]')


class TestSweAgent(ReaderConformance):
    source = "transcripts/swe_agent"
    history = [{"role": "user", "content": "Fix it", "agent": "main"}]
    trajectory = [{"action": "ls", "observation": "a", "thought": "Look", "response": "", "state": ""}]
    files = {"a.traj": json.dumps({"history": history, "trajectory": trajectory})}
    options = {"path": "a.traj", "subjects": ALL}
    unknown = files["a.traj"].replace('"role": "user"', '"role": "hologram"')


class TestOpenHands(ReaderConformance):
    source = "transcripts/openhands"
    files = {
        "a.json": json.dumps(
            [
                {"id": 1, "source": "user", "action": "message", "args": {"content": "Hi"}},
                {"id": 2, "source": "agent", "action": "message", "args": {"content": "Ho"}},
            ]
        )
    }
    options = {"path": "a.json"}
    unknown = files["a.json"].replace("]", ', {"kind": "HologramEvent", "id": 3, "source": "agent"}]')


class TestAdk(ReaderConformance):
    source = "transcripts/adk"
    turn = {"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Ho"}]}}
    files = {"a.json": json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": "e", "conversation": [turn]}]})}
    options = {"path": "a.json"}
    unknown = files["a.json"].replace('{"text": "Ho"}', '{"text": "Ho"}, {"hologram": 1}')
