"""Sessions of Codex."""

from __future__ import annotations

import json

import pytest

from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.sub_agents import AgentPlace
from dicast_transcripts import Codex, Copilot


def line(type_, payload):
    return {"timestamp": "2026-01-01T00:00:00Z", "type": type_, "payload": payload}


def item(type_, **fields):
    return line("response_item", {"type": type_, **fields})


def event(type_, **fields):
    return line("event_msg", {"type": type_, **fields})


def message(role, words):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": words}])


META = line("session_meta", {"id": "s", "cwd": "/x", "cli_version": "0.9", "instructions": "Be brief."})


def test_response_items_win_over_events_with_the_same_text(read):
    records = [
        META,
        message("user", "<environment_context>x</environment_context>"),
        message("user", "Go"),
        event("user_message", message="Go"),
        event("agent_reasoning", text="Think"),
        item("reasoning", summary=[{"type": "summary_text", "text": "Think"}], encrypted_content="…"),
        event("agent_message", message="Done"),
        message("assistant", "Done"),
        event("agent_message", message="Only an event has this"),
    ]
    reading = read(Codex, records)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "Only an event has this")]
    assert reading.contents["messages"] == 6
    assert reading.counts.details["kinds"]["agent_message"] == 2


@pytest.mark.parametrize(
    ("output", "failed"),
    [
        ("plain", 0),
        (json.dumps({"output": "no", "metadata": {"exit_code": 1, "duration_seconds": 0.1}}), 1),
        (json.dumps({"output": "yes", "metadata": {"exit_code": 0}}), 0),
        ("Exit code: 2\nWall time: 0 seconds\nOutput:\nno", 1),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\n", 1),
        ("Process exited with code 0\nOutput:\nExit code: 7", 0),
        ("log of yesterday\nExit code: 1\n", 0),
        ({"content": "no", "success": False}, 1),
        ([{"type": "input_text", "text": "seen"}], 0),
    ],
)
def test_exit_codes_and_failures_are_those_of_the_command(read, output, failed):
    records = [
        META,
        message("user", "Go"),
        item("function_call", name="shell", arguments='{"command": ["ls"]}', call_id="c1"),
        item("function_call_output", call_id="c1", output=output),
    ]
    contents = read(Codex, records).contents
    assert (contents["calls"], contents["results"], contents["failed_results"]) == (1, 1, failed)


def test_the_end_of_a_command_gives_its_exit_code(read):
    records = [
        META,
        message("user", "Go"),
        item("function_call", name="shell", arguments="{}", call_id="c1"),
        event("exec_command_end", call_id="c1", exit_code=3, aggregated_output="no"),
        item("function_call_output", call_id="c1", output="no"),
        item("function_call", name="shell", arguments="{}", call_id="c2"),
        event("exec_command_end", call_id="c2", exit_code=0, aggregated_output="yes"),
    ]
    contents = read(Codex, records).contents
    assert (contents["results"], contents["failed_results"], contents["unmatched_calls"]) == (2, 1, 0)


def test_a_sub_agent_whose_messages_are_events_alone_is_read(read):
    records = [
        META,
        event("user_message", message="Spawn"),
        item("function_call", name="spawn_agent", arguments="{}", call_id="c1"),
        event("user_message", message="Inspect"),
        event("agent_message", message="Seen"),
    ]
    reading = read(Codex, records)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Spawn", ""), ("Inspect", "Seen")]


def test_every_kind_of_call_is_a_call(read):
    records = [
        META,
        message("user", "Go"),
        item("local_shell_call", call_id="l1", status="completed", action={"type": "exec", "command": ["ls"]}),
        item("custom_tool_call", call_id="p1", name="apply_patch", input="*** Begin Patch"),
        item("custom_tool_call_output", call_id="p1", output="Success"),
        item("web_search_call", status="completed", action={"type": "search", "query": "x"}),
        item("ghost_snapshot", ghost_commit={}),
        item("compaction", encrypted_content="x"),
        item("hologram"),
    ]
    reading = read(Codex, records)
    assert [cycle.input["tool_name"] for cycle in reading.cycles] == ["local_shell", "apply_patch", "web_search"]
    assert reading.counts.marked == {"item hologram": 1}


def test_a_plan_is_a_text_of_the_assistant(read):
    plan = event("item_completed", item={"type": "Plan", "id": "p", "text": "1. Look"})
    reading = read(Codex, [META, message("user", "Go"), plan])
    assert [turn.output for turn in reading.turns] == ["1. Look"]


def test_models_and_usage_are_recorded(read):
    usage = {"input_tokens": 5, "output_tokens": 2}
    records = [
        META,
        line("turn_context", {"model": "gpt-x", "cwd": "/x"}),
        message("user", "Go"),
        message("assistant", "Done"),
        event("token_count", info={"last_token_usage": usage, "total_token_usage": usage}),
        event("token_count", info=None),
    ]
    reading = read(Codex, records)
    assert reading.model_calls == [{"model": "gpt-x", "usage": usage}]
    assert reading.counts.details["models"] == {"gpt-x": 1}
    assert reading.roles()[0] == "system"


def test_a_sub_agent_has_its_parent_and_a_continued_session_its_own_id(read):
    meta = {"id": "child", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "s", "depth": 1}}}}
    reading = read(Codex, [line("session_meta", meta), META, message("user", "Go"), message("assistant", "Done")])
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("child", "s")]


def test_first_versions_have_items_without_a_payload(read):
    records = [
        {"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go"}]},
        {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"x","metadata":{"exit_code":0}}'},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done"}]},
    ]
    reading = read(Codex, records)
    assert [(turn.id, turn.output) for turn in reading.turns] == [("old/1", "Done")]
    assert reading.counts.marked == {}


def test_output_of_exec_is_a_session(read):
    records = [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.started"},
        {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls", "status": "in_progress"}},
        {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls", "aggregated_output": "no", "exit_code": 1, "status": "failed"}},
        {"type": "item.completed", "item": {"id": "i2", "type": "agent_message", "text": "Done"}},
        {"type": "turn.completed", "usage": {"input_tokens": 1}},
    ]  # fmt: skip
    reading = read(Codex, records)
    assert [(turn.id, turn.output) for turn in reading.turns] == [("t/1", "Done")]
    assert (reading.contents["calls"], reading.contents["failed_results"]) == (1, 1)


def test_compacted_history_and_injected_instructions_start_no_turn(read):
    records = [
        META,
        message("user", "# AGENTS.md instructions for /x"),
        message("user", "Go"),
        message("assistant", "A"),
        line("compacted", {"message": "Summary", "replacement_history": []}),
        event("context_compacted"),
        message("assistant", "B"),
    ]
    reading = read(Codex, records)
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "B")]
    assert reading.roles().count("context") == 2


def turn(number, *, is_event_first=False):
    """The records of a turn with a call, whose result an event repeats."""
    said = [message("user", f"q{number}"), event("user_message", message=f"q{number}")]
    return [
        *(said[::-1] if is_event_first else said),
        item("function_call", name="shell", arguments="{}", call_id=f"c{number}"),
        event("exec_command_end", call_id=f"c{number}", exit_code=0, aggregated_output="out"),
        item("function_call_output", call_id=f"c{number}", output="out"),
        event("agent_message", message=f"a{number}"),
        message("assistant", f"a{number}"),
        event("token_count", info={"last_token_usage": {"input_tokens": number}}),
    ]


def rolled_back(turns):
    return event("thread_rolled_back", num_turns=turns)


def abandoned(reading):
    counts = reading.counts.details.get("abandoned", {})
    return [counts.get(name, 0) for name in ("turns", "messages", "calls", "results")]


@pytest.mark.parametrize("is_event_first", [False, True])
def test_turns_that_were_rolled_back_are_left_out_and_counted(read, is_event_first):
    turns = [turn(number, is_event_first=is_event_first) for number in range(5)]
    records = [META, *turns[0], *turns[1], *turns[2], rolled_back(2), *turns[3], rolled_back(1), *turns[4]]
    reading = read(Codex, records)
    assert [(turn_.input, turn_.output) for turn_ in reading.turns] == [("q0", "a0"), ("q4", "a4")]
    assert (reading.contents["calls"], reading.contents["results"], reading.contents["unmatched_results"]) == (2, 2, 0)
    assert abandoned(reading) == [3, 12, 3, 3]
    assert reading.counts.details["kinds"]["thread_rolled_back"] == 2
    assert [call["usage"] for call in reading.model_calls] == [{"input_tokens": 0}, {"input_tokens": 4}]
    note = "3 turns, 12 messages, 3 tool calls, 3 tool results not judged: the user took them back"
    assert note in reading.counts.notes


def test_a_prompt_that_is_sent_again_after_its_rollback_is_one_turn(read):
    reading = read(Codex, [META, *turn(1), rolled_back(1), event("user_message", message="q1"), message("user", "q1"), event("agent_message", message="a1")])  # fmt: skip
    assert [(turn_.input, turn_.output) for turn_ in reading.turns] == [("q1", "a1")]


def test_a_rollback_of_more_turns_than_there_are_keeps_the_instructions(read):
    late = [message("user", "q"), event("exec_command_end", call_id="c9", exit_code=1, aggregated_output="no")]
    reading = read(Codex, [META, *late, rolled_back(9), rolled_back(1), *turn(2)])
    assert ([turn_.input for turn_ in reading.turns], reading.roles()[0]) == (["q2"], "system")
    assert (abandoned(reading), reading.contents["results"]) == ([1, 2, 0, 1], 1)


@pytest.mark.parametrize(("turns", "marked"), [(0, 0), (None, 1), (-1, 1), ("2", 1)])
def test_a_rollback_without_a_number_of_turns_is_marked(read, turns, marked):
    reading = read(Codex, [META, *turn(1), rolled_back(turns)])
    assert ([turn_.input for turn_ in reading.turns], abandoned(reading)) == (["q1"], [0, 0, 0, 0])
    assert sum(reading.counts.marked.values()) == marked


def test_a_session_without_counts_of_tokens_has_no_models_and_no_usage(read):
    records = [META, line("turn_context", {"model": "gpt-x"}), message("user", "Go"), message("assistant", "Done")]
    reading = read(Codex, records)
    assert (reading.model_calls, reading.counts.details["models"]) == ([], {})


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_records_is_read_like_their_lines(read, tmp_path, indent):
    records = [META, *turn(1)]
    lines = read(Codex, records)
    path = tmp_path / "array.json"
    path.write_text(json.dumps(records, indent=indent))
    detection = Codex.detect(read_beginning(path, "utf-8"))
    assert (detection.title, detection.version) == ("a Codex session", "0.9")
    assert read(Codex, document=records).contents == lines.contents


def test_an_array_of_items_without_a_payload_is_no_session_of_codex(tmp_path):
    path = tmp_path / "items.json"
    path.write_text(json.dumps([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]))
    assert Codex.detect(read_beginning(path, "utf-8")) is None


def test_an_array_of_events_of_copilot_is_read_like_their_lines(read, tmp_path):
    records = [
        {"type": "session.start", "data": {"sessionId": "s"}},
        {"type": "user.message", "data": {"content": "Hi"}},
        {"type": "assistant.message", "data": {"content": "Hello", "messageId": "m"}},
    ]
    lines = read(Copilot, records)
    array = read(Copilot, document=records)
    assert (array.contents, array.counts.marked) == (lines.contents, {})
    assert [(turn_.id, turn_.output) for turn_ in array.turns] == [("s/1", "Hello")]
    path = tmp_path / "array.json"
    path.write_text(json.dumps(records))
    assert Copilot.detect(read_beginning(path, "utf-8")).title == "a Copilot session"


@pytest.mark.parametrize("names", ["output", "event"])
def test_a_sub_agent_is_placed_at_the_call_that_started_it(read, tmp_path, names):
    output = '{"agent_id": "child", "nickname": "A"}' if names == "output" else "started"
    records = [
        META,
        message("user", "Go"),
        item("function_call", call_id="c0", name="shell", arguments="{}"),
        item("function_call_output", call_id="c0", output='{"agent_id": "other"}'),
        item("function_call", call_id="c1", name="spawn_agent", arguments="{}"),
        item("function_call_output", call_id="c1", output=output),
        event("collab_agent_spawn_end", call_id="c1", **({"new_thread_id": "child"} if names == "event" else {})),
        message("assistant", "Done"),
    ]
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "s", "depth": 1}}}
    child = [
        line("session_meta", {"id": "child", "source": spawn}),
        message("user", "Look"),
        message("assistant", "Seen"),
    ]
    read(Codex, records, name="a.jsonl")
    reading = read(Codex, child, name="b.jsonl", path=tmp_path)
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("s", None), ("child", "s")]
    assert reading.places == [AgentPlace("child", "c1")]
