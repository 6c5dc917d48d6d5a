"""Sessions of the tools other than Claude Code and Codex."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from dicast import DataError
from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.sub_agents import AgentPlace
from dicast_transcripts import Adk, Atif, Copilot, GeminiCli, OpenCode, OpenHands, SweAgent

GEMINI = {"sessionId": "g", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z"}


def gemini_call(**fields):
    return {"id": "c1", "name": "read_file", "args": {"path": "a"}, "status": "success", **fields}


def response(value):
    return [{"functionResponse": {"id": "c1", "name": "read_file", "response": value}}]


@pytest.mark.parametrize(
    ("call", "results", "failed"),
    [
        (gemini_call(result=response({"output": "text"})), 1, 0),
        (gemini_call(status="error", result=response({"error": "no such file"})), 1, 1),
        (gemini_call(status="cancelled"), 1, 1),
        (gemini_call(result=None), 0, 0),
        (gemini_call(resultDisplay="shown"), 1, 0),
    ],
)
def test_calls_of_gemini_have_their_recorded_results(read, call, results, failed):
    messages = [
        {"id": "1", "type": "user", "content": [{"text": "Read"}]},
        {"id": "2", "type": "gemini", "content": "", "toolCalls": [call], "tokens": {"input": 3}, "model": "gemini-x"},
        {"id": "3", "type": "info", "content": "Update available"},
    ]
    reading = read(GeminiCli, document={**GEMINI, "messages": messages})
    assert (reading.contents["calls"], reading.contents["results"], reading.contents["failed_results"]) == (
        1,
        results,
        failed,
    )
    assert reading.model_calls == [{"model": "gemini-x", "usage": {"input": 3}}]
    assert "context" in reading.roles()


def test_lines_of_gemini_replace_messages_and_rewind(read):
    records = [
        GEMINI,
        {"id": "1", "type": "user", "content": "A"},
        {"id": "2", "type": "gemini", "content": "draft"},
        {"id": "2", "type": "gemini", "content": "a", "toolCalls": [gemini_call(result=response({"output": "x"}))]},
        {"$set": {"lastUpdated": "2026-01-01T01:00:00Z"}},
        {"id": "3", "type": "user", "content": "B"},
        {"id": "4", "type": "gemini", "content": "b"},
        {"$rewindTo": "3"},
        {"id": "5", "type": "user", "content": "C"},
        {"id": "6", "type": "gemini", "content": "c"},
    ]
    reading = read(GeminiCli, records)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("A", "a"), ("C", "c")]
    kinds = reading.counts.details["kinds"]
    assert (kinds["replaced message"], kinds["$rewindTo"]) == (1, 1)
    assert reading.counts.details["abandoned"]["messages"] == 2


def test_recorded_replies_of_gemini_are_turns_without_a_prompt(read):
    def chunk(*parts, **fields):
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **fields}]}

    call = {"functionCall": {"name": "read_file", "args": {}}, "thoughtSignature": "x"}
    records = [
        {"method": "generateContentStream", "response": [chunk({"text": "hm", "thought": True}), chunk({"text": "I "}), chunk({"text": "read."}), chunk(call), chunk({"text": ""}, finishReason="STOP")]},
        {"method": "countTokens", "response": {"totalTokens": 100}},
        {"method": "generateContent", "response": {**chunk({"text": "Done"}), "modelVersion": "gemini-x"}},
    ]  # fmt: skip
    reading = read(GeminiCli, records)
    assert [turn.output for turn in reading.turns] == ["I read.", "Done"]
    assert (reading.contents["calls"], reading.counts.marked) == (1, {})
    assert reading.counts.details["kinds"] == {"reply": 2, "reply without an answer": 1}


def test_events_of_copilot_are_a_session_with_its_sub_agent(read):
    def event(type_, agent=None, **data):
        return {"type": type_, "id": type_, "timestamp": "2026-01-01T00:00:00Z", "data": data} | (
            {"agentId": agent} if agent else {}
        )

    request = {"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}}
    records = [
        event("session.start", sessionId="s", copilotVersion="1.2", context={"cwd": "/x"}),
        event("user.message", content="Go", attachments=[{"displayName": "a.txt"}]),
        event("assistant.message", content="", reasoningText="hm", toolRequests=[request]),
        event("tool.execution_start", toolCallId="c1", toolName="bash", arguments={"command": "ls"}),
        event("tool.execution_complete", toolCallId="c1", success=False, error={"message": "denied"}),
        event("subagent.started", agentDisplayName="Child"),
        event("user.message", agent="a", content="Look", parentToolCallId="c1"),
        event("assistant.message", agent="a", content="Seen"),
        event("tool.execution_start", toolCallId="c2", toolName="view", arguments={}),
        event("tool.execution_complete", toolCallId="c2", success=True, result={"content": "ok"}),
        event("assistant.message", content="Done"),
        {"type": "hologram.shown", "id": "x", "data": {}},
    ]
    reading = read(Copilot, records)
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("s", None), ("s/agent-a", "s")]
    assert reading.places == [AgentPlace("s/agent-a", "c1")]
    assert (reading.contents["calls"], reading.contents["results"], reading.contents["failed_results"]) == (2, 2, 1)
    assert [turn.output for turn in reading.turns] == ["Done", "Seen"]
    assert reading.counts.marked == {"event hologram.shown": 1}


def test_the_output_of_a_run_of_copilot_counts_repeated_messages_once(read):
    message = {"type": "assistant.message", "data": {"messageId": "m1", "content": "Done", "toolRequests": []}}
    records = [
        {"type": "user.message", "data": {"content": "Go"}},
        {"type": "assistant.message_delta", "data": {"deltaContent": "Do"}, "ephemeral": True},
        {**message, "ephemeral": True},
        message,
        {"type": "result", "data": {}},
    ]
    reading = read(Copilot, records)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "Done")]
    assert (reading.contents["messages"], reading.counts.marked) == (2, {})


def test_a_chat_of_vs_code_is_a_session(read):
    tool = {"kind": "toolInvocationSerialized", "toolCallId": "c1", "toolId": "read", "isComplete": True, "pastTenseMessage": {"value": "Read a"}}  # fmt: skip
    parts = [
        {"kind": "thinking", "value": "hm"},
        {"value": "It "},
        {"value": "is a."},
        tool,
        {"kind": "undoStop"},
        {"value": "Done"},
    ]
    document = {
        "sessionId": "v",
        "responderUsername": "GitHub Copilot",
        "requests": [{"message": {"text": "Go"}, "response": parts}],
    }
    reading = read(Copilot, document=document)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "Done")]
    assert (reading.contents["calls"], reading.contents["results"], reading.counts.marked) == (1, 1, {})


def test_the_log_of_a_chat_of_vs_code_is_its_session(read, tmp_path):
    start = {"version": 3, "sessionId": "v", "creationDate": 1, "responderUsername": "", "requests": []}
    first = {"requestId": "r1", "message": {"text": "Go"}, "response": [], "modelId": "m"}
    records = [
        {"kind": 0, "v": start},
        {"kind": 1, "k": ["customTitle"], "v": "Title"},
        {"kind": 2, "k": ["requests"], "v": [first]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Wai"}]},
        {"kind": 2, "k": ["requests", 0, "response"], "v": [{"value": "Done"}, {"kind": "undoStop"}], "i": 0},
        {"kind": 1, "k": ["requests", 0, "result"], "v": {}},
        {"kind": 1, "k": ["requests", 1], "v": {"message": {"text": "More"}, "response": [{"value": "Yes"}]}},
        {"kind": 2, "k": ["requests"], "v": [{"message": {"text": "Wrong"}}]},
        {"kind": 3, "k": ["requests", 2]},
        {"kind": 3, "k": ["customTitle"]},
    ]
    reading = read(Copilot, records)
    assert [(turn.id, turn.input, turn.output) for turn in reading.turns] == [("v/1", "Go", "Done"), ("v/2", "More", "Yes")]  # fmt: skip
    assert (reading.counts.marked, "customTitle" in reading.sessions[0].context) == ({}, False)
    path = tmp_path / "session.jsonl"
    assert Copilot.detect(read_beginning(path, "utf-8")).title == "a Copilot chat of VS Code"
    path.write_text(path.read_text() + '{"kind": 1, "k": ["requ')
    assert read(Copilot, None, path=path, name="x").counts.marked == {"cut line": 1}


@pytest.mark.parametrize("change", [
    {"kind": 1, "k": ["requests", 7], "v": {}}, {"kind": 2, "k": ["sessionId"], "v": [1]}, {"kind": 2, "k": ["requests"], "v": 3},
    {"kind": 1, "k": [], "v": {}}, {"kind": 1, "k": ["nothing", "below"], "v": 1}, {"kind": 3, "k": [0]}, {"kind": 1, "k": None, "v": 1},
])  # fmt: skip
def test_a_change_of_a_chat_at_a_place_that_does_not_exist_is_marked(read, change):
    request = {"message": {"text": "Go"}, "response": [{"value": "Done"}]}
    reading = read(Copilot, [{"kind": 0, "v": {"sessionId": "v", "requests": [request]}}, change])
    assert ([turn.output for turn in reading.turns], sum(reading.counts.marked.values())) == (["Done"], 1)


TOOL = {"type": "tool", "callID": "c1", "tool": "bash", "state": {"status": "completed", "input": {"command": "ls"}, "output": "no", "metadata": {"exit": 2, "sessionId": "ses_2"}}}  # fmt: skip
BROKEN = {
    "type": "tool",
    "callID": "c2",
    "tool": "edit",
    "state": {"status": "error", "input": {}, "error": "no such file"},
}
OPENCODE = [
    ({"id": "m1", "role": "user"}, [{"type": "text", "text": "Go"}]),
    (
        {"id": "m2", "role": "assistant", "modelID": "x", "tokens": {"input": 1}, "cost": 0.5, "time": {"created": 1767225600000}},
        [{"type": "step-start"}, {"type": "reasoning", "text": "hm"}, TOOL, BROKEN, {"type": "text", "text": "Done"}, {"type": "hologram"}],
    ),
]  # fmt: skip


def check_opencode(reading):
    contents = reading.contents
    assert (contents["calls"], contents["results"], contents["failed_results"]) == (2, 2, 2)
    assert reading.turns[0].input == "Go"
    assert reading.turns[0].output.startswith("Done")
    assert reading.counts.marked == {"part hologram": 1}
    assert reading.model_calls == [{"model": "x", "usage": {"input": 1}, "cost_usd": 0.5}]


def test_an_exported_session_of_opencode_is_read(read):
    info = {"id": "ses_1", "title": "t", "version": "1.0", "parentID": "ses_0"}
    messages = [{"info": info, "parts": parts} for info, parts in OPENCODE]
    reading = read(OpenCode, document={"info": info, "messages": messages})
    check_opencode(reading)
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("ses_1", "ses_0")]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_the_database_of_opencode_is_read_and_stays_as_it_is(read, tmp_path, journal):
    path = tmp_path / "opencode.db"
    database = sqlite3.connect(path)
    database.executescript(
        f"PRAGMA journal_mode={journal}; CREATE TABLE session (id TEXT, parent_id TEXT, title TEXT, time_created INTEGER);"
        "CREATE TABLE message (id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
        "CREATE TABLE part (id TEXT, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);"
        "INSERT INTO session VALUES ('ses_1', NULL, 't', 1), ('ses_2', 'ses_1', 'u', 2), ('ses_0', NULL, 'v', 0);"
        "INSERT INTO message VALUES ('x', 'ses_0', 1, 'no JSON')"
    )
    for number, (info, parts) in enumerate(OPENCODE):
        database.execute("INSERT INTO message VALUES (?, 'ses_1', ?, ?)", (info["id"], number, json.dumps(info)))
        rows = [(f"p{number}{place}", info["id"], place, json.dumps(part)) for place, part in enumerate(parts)]
        database.executemany("INSERT INTO part VALUES (?, ?, 'ses_1', ?, ?)", rows)
    database.commit()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    try:
        reading = read(OpenCode, [], path=path)
    finally:
        after = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
        database.close()
    check_opencode(reading)
    assert reading.counts.failed == 1
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("ses_1", None), ("ses_2", "ses_1")]
    assert reading.places == [AgentPlace("ses_2", "c1")]
    assert {name: after[name] for name in before} == before


def test_the_output_of_opencode_run_is_a_session(read):
    records = [
        {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}},
        {"type": "tool_use", "sessionID": "ses_1", "part": TOOL},
        {"type": "text", "sessionID": "ses_1", "part": {"type": "text", "text": "Done"}},
        {
            "type": "step_finish",
            "sessionID": "ses_1",
            "part": {"type": "step-finish", "tokens": {"input": 1}, "cost": 0},
        },
    ]
    reading = read(OpenCode, records)
    assert [(turn.id, turn.output) for turn in reading.turns] == [("ses_1/1", "Done")]
    assert reading.contents["failed_results"] == 1


def test_a_database_of_another_program_is_refused(read, tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE notes (id TEXT)")
    with pytest.raises(DataError, match="does not look like an OpenCode session"):
        read(OpenCode, [], path=path)


def test_a_trajectory_of_atif_has_parts_results_and_sub_agents(read):
    child = {"schema_version": "ATIF-v1.7", "trajectory_id": "c", "agent": {}, "steps": [{"step_id": 1, "source": "user", "message": "Look"}, {"step_id": 2, "source": "agent", "message": "Seen"}]}  # fmt: skip
    image = {"type": "image", "source": {"media_type": "image/png", "path": "a.png"}}
    steps = [
        {"step_id": 1, "source": "system", "message": "Be brief."},
        {"step_id": 2, "source": "user", "message": [{"type": "text", "text": "Go"}, image]},
        {
            "step_id": 3, "source": "agent", "message": "", "reasoning_content": "hm",
            "tool_calls": [{"tool_call_id": "c1", "function_name": "look", "arguments": {}}],
            "observation": {"results": [{"source_call_id": "c1", "content": "x"}, {"subagent_trajectory_ref": [{"trajectory_id": "c"}]}]},
            "metrics": {"prompt_tokens": 3, "cost_usd": 0.1},
        },
        {"step_id": 4, "source": "oracle", "message": "?"},
        {"step_id": 5, "source": "agent", "message": "Done"},
    ]  # fmt: skip
    document = {
        "schema_version": "ATIF-v1.7",
        "session_id": "s",
        "agent": {"model_name": "m"},
        "steps": steps,
        "subagent_trajectories": [child],
    }
    reading = read(Atif, document=document)
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("s", None), ("c", "s")]
    assert [place.session_id for place in reading.places] == ["c"]
    named = {"source_call_id": "c1", "content": None, "subagent_trajectory_ref": [{"trajectory_id": "c"}]}
    steps[2]["observation"]["results"] = [named]
    assert read(Atif, document=document).places == [AgentPlace("c", "c1")]
    assert (reading.contents["messages"], reading.contents["calls"], reading.contents["results"]) == (7, 1, 2)
    assert reading.model_calls[0] == {"model": "m", "usage": {"prompt_tokens": 3}, "cost_usd": 0.1}
    assert reading.turns[0].input == "Go\n[image/png, a.png]"
    assert reading.counts.marked == {"source oracle": 1}


def test_several_trajectories_of_atif_are_several_sessions(read):
    steps = [{"source": "user", "message": "Go"}, {"source": "agent", "message": "Done"}]
    records = [{"schema_version": "ATIF-v1.0", "session_id": id_, "agent": {}, "steps": steps} for id_ in "ab"]
    assert [turn.id for turn in read(Atif, records).turns] == ["a/1", "b/1"]
    assert [turn.id for turn in read(Atif, document=records).turns] == ["a/1", "b/1"]


def test_steps_of_swe_agent_are_calls_named_by_their_command(read):
    history = [
        {"role": "system", "content": "You fix.", "agent": "main"},
        {"role": "user", "content": "Demonstration", "agent": "main", "is_demo": True},
        {"role": "user", "content": "Fix it", "agent": "main"},
        {"role": "assistant", "content": "x", "thought": "Look", "action": "open a.py\n", "agent": "main"},
    ]
    steps = [
        {"action": "open a.py\n", "observation": "code", "thought": "Look", "response": "Look open", "state": "{}"},
        {"action": "", "observation": "", "thought": "Only talk", "response": "", "state": "{}"},
        {"action": "submit\n", "observation": "", "thought": "", "response": "", "state": "{}"},
    ]
    reading = read(SweAgent, document={"trajectory": steps, "history": history, "info": {"exit_status": "submitted"}})
    assert [(cycle.input["tool_name"], cycle.output) for cycle in reading.cycles] == [("open", "code"), ("submit", "")]
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Fix it", "Only talk")]
    assert reading.sessions[0].context["info"] == {"exit_status": "submitted"}


def test_messages_of_mini_swe_agent_have_commands_and_return_codes(read):
    messages = [
        {"role": "system", "content": "You fix."},
        {"role": "user", "content": "Fix it"},
        {"role": "assistant", "content": "Look\n```bash\nls\n```"},
        {"role": "user", "content": "<returncode>1</returncode>\n<output>\nno\n</output>"},
        {"role": "assistant", "content": "Done"},
    ]
    reading = read(SweAgent, document={"info": {}, "messages": messages, "trajectory_format": "mini-swe-agent-1"})
    assert (reading.contents["calls"], reading.contents["results"], reading.contents["failed_results"]) == (1, 1, 1)
    assert len(reading.turns) == 1


OLD_EVENTS = [
    {"id": 0, "source": "agent", "action": "system", "args": {"content": "You are OpenHands"}, "timestamp": "t"},
    {"id": 1, "source": "user", "action": "message", "args": {"content": "Go"}, "timestamp": "t"},
    {"id": 2, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look"}, "timestamp": "t", "tool_call_metadata": {"tool_call_id": "c1", "function_name": "execute_bash", "model_response": {"model": "m", "usage": {"prompt_tokens": 1}}}},
    {"id": 3, "source": "agent", "observation": "run", "content": "no", "cause": 2, "extras": {"metadata": {"exit_code": 1}}, "timestamp": "t"},
    {"id": 4, "source": "environment", "observation": "agent_state_changed", "content": "", "extras": {}, "timestamp": "t"},
    {"id": 5, "source": "agent", "action": "read", "args": {"path": "a"}, "timestamp": "t"},
    {"id": 6, "source": "agent", "observation": "error", "content": "no such file", "cause": 5, "extras": {}, "timestamp": "t"},
    {"id": 7, "source": "agent", "action": "finish", "args": {"final_thought": "Done"}, "timestamp": "t"},
]  # fmt: skip


@pytest.mark.parametrize("form", ["array", "lines", "events", "history", "pairs"])
def test_events_of_the_older_openhands_are_a_session(read, form):
    documents = {
        "array": OLD_EVENTS,
        "events": {"id": "s", "events": OLD_EVENTS},
        "history": {"instance_id": "s", "instruction": "Go", "history": OLD_EVENTS},
        "pairs": {
            "instance_id": "s",
            "history": [[OLD_EVENTS[1], {}], OLD_EVENTS[2:4], OLD_EVENTS[5:7], [OLD_EVENTS[7]]],
        },
    }
    reading = read(OpenHands, OLD_EVENTS) if form == "lines" else read(OpenHands, document=documents[form])
    contents = reading.contents
    assert (contents["calls"], contents["results"], contents["failed_results"]) == (3, 2, 2)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "Done")]
    assert reading.model_calls == [{"model": "m", "usage": {"prompt_tokens": 1}}]


def write_events(folder, events, name="{number}.json"):
    folder.mkdir(parents=True)
    for number, event in enumerate(events):
        (folder / name.format(number=number, id=f"{number:032x}")).write_text(json.dumps(event))


@pytest.mark.parametrize("root", ["", "sessions/abc", "sessions/abc/events"])
def test_a_folder_of_events_of_openhands_is_one_session(read_source, tmp_path, root):
    write_events(tmp_path / "sessions/abc/events", OLD_EVENTS * 3)  # more than ten: the order is not that of the names
    write_events(tmp_path / "sessions/abc/event_cache", [OLD_EVENTS], "0-25.json")
    (tmp_path / "sessions/abc/metadata.json").write_text('{"title": "x"}')
    with (tmp_path / "all.jsonl").open("w") as file:
        file.writelines(json.dumps(event) + "\n" for event in OLD_EVENTS * 3)
    whole = read_source(OpenHands(tmp_path / "all.jsonl"))
    (tmp_path / "all.jsonl").unlink()
    reading = read_source(OpenHands(tmp_path / root, subjects=("turn", "session")))
    assert {session.id.rpartition("/")[2] for session in reading.sessions} == {"abc"}
    assert reading.contents == whole.contents
    assert [turn.output for turn in reading.turns] == [turn.output for turn in whole.turns]


@pytest.mark.parametrize(("folder", "name"), [
    ("{id}/events", "event-{number:05d}-{id}.json"), ("v1_conversations/{id}", "{id}.json"),
])  # fmt: skip
def test_folders_of_events_of_the_newer_openhands_are_sessions_in_the_order_of_time(
    read_source, tmp_path, folder, name
):
    def event(number, role, text):
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        return {"kind": "MessageEvent", "id": f"e{number}", "source": role, "timestamp": f"2026-01-01T00:00:0{number}", "llm_message": message}  # fmt: skip

    events = [event(0, "user", "Hi"), event(1, "assistant", "Hello"), event(1, "assistant", "Hello")]
    for conversation in ("1" * 32, "2" * 32):  # the second is a clone
        place = tmp_path / folder.format(id=conversation)
        write_events(place, events if "events" in folder else events[:2][::-1], name)
        (place / ("event-00009.json" if "events" in folder else f"{9:032x}.json")).touch()
        (place.parent / "base_state.json").write_text("{}")
    reading = read_source(OpenHands(tmp_path, subjects=("turn", "session")))
    assert [turn.output for turn in reading.turns] == ["Hello", "Hello"]
    assert [session.id for session in reading.sessions] == ["1" * 32, "2" * 32]
    assert reading.counts.details["kinds"].get("repeated event", 0) == (2 if "events" in folder else 0)


def test_a_cut_event_in_a_folder_of_events_is_marked_at_the_end_and_reported_before(read_source, tmp_path):
    write_events(tmp_path / "events", OLD_EVENTS)
    (tmp_path / f"events/{len(OLD_EVENTS)}.json").write_text('{"id": 99, "sour')
    assert read_source(OpenHands(tmp_path)).counts.marked == {"cut line": 1}
    (tmp_path / f"events/{len(OLD_EVENTS) + 1}.json").write_text(json.dumps(OLD_EVENTS[1]))
    with pytest.raises(DataError, match=f"events:{len(OLD_EVENTS) + 1}:17: the line is not JSON"):
        read_source(OpenHands(tmp_path))


def test_numbered_files_of_another_format_are_no_folder_of_events(read_source, tmp_path):
    write_events(tmp_path / "events", [{"some": "thing"}, OLD_EVENTS])
    assert len(read_source(OpenHands(tmp_path, subjects=("session",))).sessions) == 1


def test_events_of_the_openhands_sdk_are_a_session(read):
    def event(kind, source="agent", **fields):
        return {"kind": kind, "id": kind, "source": source, "timestamp": "t", **fields}

    blocks = [{"type": "text", "text": "no"}]
    records = [
        event("SystemPromptEvent", system_prompt={"type": "text", "text": "You are OpenHands"}),
        event("MessageEvent", "user", llm_message={"role": "user", "content": [{"type": "text", "text": "Go"}]}),
        event("ActionEvent", thought=[{"type": "text", "text": "Look"}], reasoning_content="hm", tool_name="terminal", tool_call_id="c1", action={"kind": "TerminalAction", "command": "ls"}, tool_call={"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'}),
        event("ObservationEvent", "environment", tool_name="terminal", tool_call_id="c1", observation={"kind": "TerminalObservation", "content": blocks, "is_error": False, "exit_code": 1}),
        event("ActionEvent", thought=[], tool_name="think", tool_call_id="c2", action={"kind": "ThinkAction", "thought": "x"}),
        event("AgentErrorEvent", tool_name="think", tool_call_id="c2", error="no such tool"),
        event("ConversationStateUpdateEvent", "environment", key="k", value="v"),
        event("HologramEvent"),
        event("MessageEvent", llm_message={"role": "assistant", "content": [{"type": "text", "text": "Done"}]}),
    ]  # fmt: skip
    reading = read(OpenHands, records)
    contents = reading.contents
    assert (contents["calls"], contents["results"], contents["failed_results"]) == (2, 2, 2)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "Done")]
    assert reading.counts.marked == {"event HologramEvent": 1}


@pytest.mark.parametrize("is_camel", [False, True])
def test_invocations_of_adk_are_turns(read, is_camel):
    def key(name):
        first, *rest = name.split("_")
        return first + "".join(word.title() for word in rest) if is_camel else name

    def content(role, words):
        return {"role": role, "parts": [{"text": words, "thought": None}]}

    data = {
        key("tool_uses"): [{"id": "c1", "name": "roll", "args": {"sides": 6}}],
        key("tool_responses"): [{"id": "c1", "name": "roll", "response": {"result": 4}}],
        key("intermediate_responses"): [["agent", [{"text": "Rolling"}]]],
    }
    turn = {
        key("user_content"): content("user", "Roll"),
        key("final_response"): content("model", "4"),
        key("intermediate_data"): data,
    }
    case = {key("eval_id"): "e", "conversation": [turn]}
    reading = read(Adk, document={key("eval_set_id"): "s", key("eval_cases"): [case]})
    assert [(turn.id, turn.input, turn.output) for turn in reading.turns] == [("e/1", "Roll", "4")]
    assert (reading.contents["calls"], reading.contents["results"], reading.counts.marked) == (1, 1, {})


def test_old_test_files_of_adk_are_read(read):
    query = {
        "query": "Roll",
        "expected_tool_use": [{"tool_name": "roll", "tool_input": {}, "mock_tool_output": "4"}],
        "reference": "4",
    }
    reading = read(Adk, document=[query, query])
    assert [turn.output for turn in reading.turns] == ["4", "4"]
    assert (reading.contents["calls"], reading.contents["results"]) == (2, 2)
    reading = read(Adk, document=[{"name": "e", "data": [query]}])
    assert [turn.id for turn in reading.turns] == ["e/1"]
