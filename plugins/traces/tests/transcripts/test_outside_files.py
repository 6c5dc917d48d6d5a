"""Sessions that the tools recorded. Each reader counts as separate code does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dicast_transcripts import Adk, Atif, ClaudeCode, Codex, Copilot, GeminiCli, OpenHands, SweAgent

pytestmark = pytest.mark.outside_data
DATA = Path(os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).parents[4] / "shared" / "data")) / "traces"
KEYS = ("sessions", "messages", "calls", "results", "failed_results")
Count = tuple[set[object], int, int, int, int]


def values(path: Path) -> list[Any]:
    """Return the values of a file: its one document, or a value a line."""
    try:
        return [json.loads(path.read_text())]
    except json.JSONDecodeError:
        return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def claude_code(path: Path) -> Count:
    records = [
        value for value in values(path) if isinstance(value, dict) and value.get("type") in ("user", "assistant")
    ]
    messages = [record.get("message") for record in records]
    contents = [message.get("content") for message in messages if isinstance(message, dict)]
    blocks = [
        block for content in contents if isinstance(content, list) for block in content if isinstance(block, dict)
    ]
    calls = {block["id"] for block in blocks if block["type"] == "tool_use"}
    results = [block for block in blocks if block["type"] == "tool_result"]
    failed = sum(bool(result.get("is_error")) for result in results)
    return {record["sessionId"] for record in records}, len(messages), len(calls), len(results), failed


def agentv(records: list[Any]) -> Count:
    calls = [call for record in records for call in record.get("tool_calls", ())]
    sessions = {record["source"]["session_id"] for record in records}
    return sessions, len(records), len(calls), sum("output" in call for call in calls), 0


def codex(path: Path) -> Count:
    records = values(path)
    if "message_index" in records[0]:
        return agentv(records)
    items = [record["payload"] for record in records if record["type"] == "response_item"]
    calls = sum(str(item.get("type")).endswith("_call") for item in items)
    results = sum(str(item.get("type")).endswith("_output") for item in items)
    return {path.name}, len(items), calls, results, 0


def copilot(path: Path) -> Count:
    return agentv(values(path))


def gemini_cli(path: Path) -> Count:
    records = values(path)
    if "method" in records[0]:
        return {path.name}, len(records), 0, 0, 0
    messages = records[0]["messages"]
    calls = [call for message in messages for call in message.get("toolCalls", ())]
    results = [call for call in calls if call.get("result")]
    return {records[0]["sessionId"]}, len(messages), len(calls), len(results), 0


def atif(path: Path) -> Count:
    (document,) = values(path)
    steps = document["steps"]
    calls = sum(len(step.get("tool_calls", ())) for step in steps)
    results = sum(len(step["observation"]["results"]) for step in steps if "observation" in step)
    return {document["session_id"]}, len(steps), calls, results, 0


def swe_agent(path: Path) -> Count:
    (document,) = values(path)
    history, steps = document["history"], document.get("trajectory", [])
    if not steps:
        actions = [message for message in history if message.get("action")]
        answers = [message for message in history if message["role"] == "tool"]
        return {path.name}, len(history), len(actions), len(answers), 0
    prompts = next(number for number, message in enumerate(history) if message["role"] == "assistant")
    observed = sum("observation" in step for step in steps)
    return {path.name}, prompts + len(steps) + observed, sum(bool(step["action"]) for step in steps), observed, 0


def openhands(path: Path) -> Count:
    (document,) = values(path)
    messages = document if isinstance(document, list) else document["messages"]
    if isinstance(document, dict):
        messages = messages + [choice["message"] for choice in document["response"]["choices"]]
    calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    return {path.name}, len(messages), calls, sum(message["role"] == "tool" for message in messages), 0


def adk(path: Path) -> Count:
    (document,) = values(path)
    turns = [turn for case in document["eval_cases"] for turn in case["conversation"]]
    uses = [use for turn in turns for use in turn["intermediate_data"]["tool_uses"]]
    finals = sum(any(part.get("text") for part in turn["final_response"]["parts"]) for turn in turns)
    called = sum(bool(turn["intermediate_data"]["tool_uses"]) for turn in turns)
    return {case["eval_id"] for case in document["eval_cases"]}, len(turns) + called + finals, len(uses), 0, 0


READERS: dict[str, tuple[type[Any], Callable[[Path], Count]]] = {
    "claude-code": (ClaudeCode, claude_code),
    "codex": (Codex, codex),
    "copilot": (Copilot, copilot),
    "gemini-cli": (GeminiCli, gemini_cli),
    "atif": (Atif, atif),
    "swe-agent": (SweAgent, swe_agent),
    "openhands": (OpenHands, openhands),
    "adk": (Adk, adk),
}
NAMED = {
    "edge_cases.jsonl": {
        "line a list", "line a number", "line a string", "malformed user message", "message with the keys 'role', 'contenst'", "message str", "record silly",
    }
}  # fmt: skip
"""The shapes that no version of a tool documents, by file."""


def files() -> Iterator[Any]:
    for folder in READERS:
        for path in sorted((DATA / folder).iterdir()) if (DATA / folder).is_dir() else ():
            yield pytest.param(folder, path, id=f"{folder}/{path.name}")


def read(source: Any) -> Any:
    with source.reading() as live:
        live.check()
        for _ in live.subjects():
            pass
        return live.read_counts()


@pytest.mark.skipif(not DATA.is_dir(), reason="DICAST_OUTSIDE_DATA names the folder of outside data")
@pytest.mark.parametrize(("folder", "path"), list(files()))
def test_counts_equal_a_count_by_other_code(folder: str, path: Path) -> None:
    source, count = READERS[folder]

    counts = read(source(path, subjects=("tool_cycle", "turn", "session"), trailing="keep"))

    sessions, *expected = count(path)
    contents = counts.details["contents"]
    assert [contents[key] for key in KEYS] == [len(sessions), *expected]
    assert set(counts.marked) == NAMED.get(path.name, set())
    assert (counts.failed, contents["trailing_messages"]) == (0, 0)


@pytest.mark.skipif(not DATA.is_dir(), reason="DICAST_OUTSIDE_DATA names the folder of outside data")
@pytest.mark.parametrize("folder", list(READERS))
def test_a_folder_has_the_sum_of_its_files(folder: str) -> None:
    source, count = READERS[folder]

    contents = read(source(DATA / folder, subjects=("session",))).details["contents"]

    counted = [count(path) for path in sorted((DATA / folder).iterdir())]
    assert contents["calls"] == sum(calls for _, _, calls, _, _ in counted)
    assert contents["results"] == sum(results for _, _, _, results, _ in counted)
    assert contents["failed_results"] == sum(failed for *_, failed in counted)
