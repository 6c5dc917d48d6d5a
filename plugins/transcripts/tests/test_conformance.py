"""The sources of transcripts keep the contract."""

from __future__ import annotations

import json

from dicast.testing import SourceConformance

ALL = ["turn", "tool_cycle", "session"]


def lines(*records: object) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def claude(type_: str, content: object, uuid: str) -> object:
    return {"type": type_, "uuid": uuid, "sessionId": "s", "message": {"role": type_, "content": content}}


class TestClaudeCode(SourceConformance):
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


class TestCodex(SourceConformance):
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


class TestGeminiCli(SourceConformance):
    source = "transcripts/gemini_cli"
    files = {
        "a.json": json.dumps(
            {"sessionId": "s", "messages": [{"type": "user", "content": "Hi"}, {"type": "gemini", "content": "Ho"}]}
        )
    }
    options = {"path": "a.json"}


class TestCopilot(SourceConformance):
    source = "transcripts/copilot"
    files = {
        "a.jsonl": lines(
            {"type": "session.start", "id": "1", "data": {"sessionId": "s"}},
            {"type": "user.message", "id": "2", "data": {"content": "Hi"}},
            {"type": "assistant.message", "id": "3", "data": {"content": "Ho"}},
        )
    }
    options = {"path": "a.jsonl"}


class TestOpenCode(SourceConformance):
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


class TestAtif(SourceConformance):
    source = "transcripts/atif"
    steps = [{"source": "user", "message": "Hi"}, {"source": "agent", "message": "Ho"}]
    files = {"a.json": json.dumps({"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {}, "steps": steps})}
    options = {"path": "a.json"}


class TestSweAgent(SourceConformance):
    source = "transcripts/swe_agent"
    history = [{"role": "user", "content": "Fix it", "agent": "main"}]
    trajectory = [{"action": "ls", "observation": "a", "thought": "Look", "response": "", "state": ""}]
    files = {"a.traj": json.dumps({"history": history, "trajectory": trajectory})}
    options = {"path": "a.traj", "subjects": ALL}


class TestOpenHands(SourceConformance):
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


class TestAdk(SourceConformance):
    source = "transcripts/adk"
    turn = {"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Ho"}]}}
    files = {"a.json": json.dumps({"eval_set_id": "s", "eval_cases": [{"eval_id": "e", "conversation": [turn]}]})}
    options = {"path": "a.json"}
