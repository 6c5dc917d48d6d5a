"""Sessions of Claude Code."""

from __future__ import annotations

import json
from itertools import count

import pytest

from dicast import DataError
from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.sub_agents import AgentPlace
from dicast_transcripts import ClaudeCode

NUMBERS = count(1)


def record(type_, content, **fields):
    message = {"role": type_, "content": content}
    message |= {key: fields.pop(key) for key in ("id", "model", "usage", "stop_reason") if key in fields}
    return {"type": type_, "uuid": f"u{next(NUMBERS)}", "sessionId": "s", "message": message, **fields}


def user(content, **fields):
    return record("user", content, **fields)


def assistant(*blocks, **fields):
    return record("assistant", list(blocks), **fields)


def text(words):
    return {"type": "text", "text": words}


def call(id_, name="Bash"):
    return {"type": "tool_use", "id": id_, "name": name, "input": {"command": "ls"}}


def result(id_, content="fine", **fields):
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **fields}


def test_lines_of_one_streamed_answer_are_one_message_with_its_last_usage(read):
    reading = read(
        ClaudeCode,
        [
            user("List"),
            assistant({"type": "thinking", "thinking": "hm"}, id="m1", model="claude-x", usage={"output_tokens": 1}),
            assistant(text("Listing."), id="m1", model="claude-x", usage={"output_tokens": 2}),
            assistant(call("c1"), id="m1", model="claude-x", usage={"output_tokens": 9}),
            user([result("c1", "a b")]),
            assistant(text("Two files."), id="m2", model="claude-x", usage={"output_tokens": 3}),
        ],
    )
    assert (reading.contents["messages"], reading.contents["calls"]) == (4, 1)
    assert reading.model_calls == [
        {"model": "claude-x", "usage": {"output_tokens": 9}},
        {"model": "claude-x", "usage": {"output_tokens": 3}},
    ]
    assert [turn.output for turn in reading.turns] == ["Two files."]


def test_calls_in_parallel_whose_results_come_between_the_lines_of_an_answer_are_matched(read):
    reading = read(
        ClaudeCode,
        [
            user("Go"),
            assistant(call("c1"), id="m1"),
            user([result("c1")]),
            assistant(call("c2"), id="m1"),
            user([result("c2", "bad", is_error=True)]),
            assistant(text("Done"), id="m2"),
        ],
    )
    contents = reading.contents
    assert (contents["calls"], contents["results"], contents["failed_results"]) == (2, 2, 1)
    assert (contents["unmatched_calls"], contents["unmatched_results"]) == (0, 0)


def test_cumulative_lines_and_repeated_records_count_once(read):
    first = assistant(text("One"), id="m1")
    whole = assistant(text("One"), call("c1"), id="m1")
    reading = read(ClaudeCode, [user("Go"), first, whole, whole, user([result("c1")])])
    assert reading.contents["calls"] == 1
    assert reading.counts.details["kinds"]["repeated record"] == 1
    assert reading.turns[0].output == "One"


def test_local_commands_and_their_output_start_no_turn_while_prompt_commands_do(read):
    reading = read(
        ClaudeCode,
        [
            user("<local-command-caveat>Caveat</local-command-caveat>", isMeta=True),
            user("<command-name>/clear</command-name>"),
            user("<local-command-stdout></local-command-stdout>"),
            user("<command-message>review</command-message>\n<command-name>/review</command-name>"),
            user([text("Review the code.")], isMeta=True),
            assistant(text("Looks good.")),
        ],
    )
    assert [turn.output for turn in reading.turns] == ["Looks good."]
    assert reading.turns[0].input.endswith("<command-name>/review</command-name>")
    assert reading.contents["messages"] == 6


@pytest.mark.parametrize(
    "extra",
    [
        user("[Request interrupted by user]"),
        user("This session is being continued …", isCompactSummary=True, isVisibleInTranscriptOnly=True),
        user("Stop hook feedback: no", isMeta=True),
        user("<task-notification>done</task-notification>"),
        user("From another session", origin={"kind": "peer"}),
    ],
)
def test_texts_that_the_tool_wrote_are_context(read, extra):
    reading = read(ClaudeCode, [user("Go"), assistant(text("A")), extra, assistant(text("B"))])
    assert [turn.output for turn in reading.turns] == ["B"]
    assert "context" in reading.roles()


def test_a_sidechain_is_a_session_with_its_parent(read):
    reading = read(
        ClaudeCode,
        [
            user("Explore"),
            assistant(call("t1", "Task")),
            user("Look around", isSidechain=True, uuid="r1", parentUuid=None),
            user("Look elsewhere", isSidechain=True, uuid="r2", parentUuid=None),
            assistant(text("Seen"), isSidechain=True, uuid="a1", parentUuid="r1"),
            assistant(text("Seen there"), isSidechain=True, uuid="a2", parentUuid="r2"),
            user([result("t1")]),
            assistant(text("Done")),
        ],
    )
    assert [(session.id, session.parent_id) for session in reading.sessions] == [
        ("s", None),
        ("s/agent-r1", "s"),
        ("s/agent-r2", "s"),
    ]
    assert [turn.output for turn in reading.turns] == ["Done", "Seen", "Seen there"]


def test_a_sidechain_is_placed_by_time(read):
    times = [{"timestamp": f"2026-01-01T00:0{minute}:00Z"} for minute in range(6)]
    side = {"isSidechain": True, "parentUuid": None}
    records = [
        user("Explore", **times[0]),
        assistant(call("t1", "Task"), **times[1]),
        user("Look around", uuid="r1", **times[2], **side),
        user([result("t1")], **times[2]),
        user("Go on", **times[3]),
        user("Look again", uuid="r2", **times[4], **side),
        assistant(call("t2", "Task"), **times[5]),
    ]
    places = read(ClaudeCode, records).places
    assert places == [AgentPlace("s/agent-r1", None, "s/1"), AgentPlace("s/agent-r2", None, "s/2")]


def test_the_result_of_a_call_names_its_sub_agent(read, tmp_path):
    main = [
        user("Explore"),
        assistant(call("t1", "Task"), call("t2", "Task")),
        user([result("t1")], toolUseResult={"agentId": "b"}),
        user([result("t2", is_error=True)], toolUseResult={"agentId": "a"}),
        user([result("t3")], toolUseResult="Error: x"),
    ]
    read(ClaudeCode, main, name="s.jsonl")
    for name in "ab":
        agent = [user("Look", isSidechain=True, agentId=name), assistant(text("Seen"), isSidechain=True, agentId=name)]
        reading = read(ClaudeCode, agent, name=f"s/subagents/agent-{name}.jsonl", path=tmp_path)
    assert reading.places == [AgentPlace("s/agent-a", "t2"), AgentPlace("s/agent-b", "t1")]


def test_a_file_of_a_sub_agent_has_its_session_as_parent(read, tmp_path):
    read(ClaudeCode, [user("Go"), assistant(text("Done"))], name="s.jsonl")
    agent = [user("Look", isSidechain=True, agentId="a1"), assistant(text("Seen"), isSidechain=True, agentId="a1")]
    reading = read(ClaudeCode, agent, name="s/subagents/agent-a1.jsonl", path=tmp_path)
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("s", None), ("s/agent-a1", "s")]


def test_stream_json_is_read_with_its_sub_agents(read):
    records = [
        {"type": "system", "subtype": "init", "session_id": "s", "model": "claude-x"},
        {"type": "assistant", "session_id": "s", "message": {"id": "m1", "content": [call("t1", "Task")]}, "parent_tool_use_id": None},
        {"type": "assistant", "session_id": "s", "message": {"id": "m2", "content": [text("Seen")]}, "parent_tool_use_id": "t1"},
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": [result("t1")]}, "parent_tool_use_id": None},
        {"type": "assistant", "session_id": "s", "message": {"id": "m3", "content": [text("Done")]}, "parent_tool_use_id": None},
        {"type": "result", "subtype": "success", "session_id": "s", "result": "Done", "total_cost_usd": 0.1},
    ]  # fmt: skip
    reading = read(ClaudeCode, records)
    assert [(turn.id, turn.output) for turn in reading.turns] == [("s/1", "Done"), ("s/agent-t1/1", "Seen")]
    assert reading.places == [AgentPlace("s/agent-t1", "t1")]
    assert reading.counts.details["kinds"] == {"system": 1, "assistant": 3, "user": 1, "result": 1}


def test_a_prompt_that_was_queued_while_the_agent_worked_starts_a_turn(read):
    queued = {"type": "attachment", "sessionId": "s", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "Also this", "commandMode": "prompt"}}  # fmt: skip
    reading = read(ClaudeCode, [user("Go"), assistant(text("A")), queued, assistant(text("B"))])
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "A"), ("Also this", "B")]


@pytest.mark.parametrize("has_attachment", [True, False])
def test_a_message_that_left_the_queue_mid_turn_counts_once(read, has_attachment):
    removed = {"type": "queue-operation", "operation": "remove", "sessionId": "s", "content": "Also this"}
    queued = {
        "type": "attachment",
        "sessionId": "s",
        "uuid": "q",
        "attachment": {"type": "queued_command", "prompt": "Also this"},
    }
    extra = [{**removed, "operation": "enqueue"}, removed] + ([queued] if has_attachment else [])
    reading = read(ClaudeCode, [user("Go"), assistant(text("A")), *extra, assistant(text("B"))])
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "A"), ("Also this", "B")]


def test_a_queued_message_of_another_session_is_context(read):
    queued = {"type": "attachment", "sessionId": "s", "uuid": "q", "attachment": {"type": "queued_command", "prompt": "Note", "origin": {"kind": "peer"}}}  # fmt: skip
    reading = read(ClaudeCode, [user("Go"), queued, assistant(text("A"))])
    assert [(turn.input, turn.output) for turn in reading.turns] == [("Go", "A")]


def test_results_of_a_search_for_tools_have_their_names(read):
    found = result("c1", [{"type": "tool_reference", "tool_name": "Read"}])
    reading = read(ClaudeCode, [user("Go"), assistant(call("c1", "ToolSearch")), user([found])])
    assert (reading.cycles[0].output, reading.counts.marked) == ("Read", {})


def test_bookkeeping_is_counted_and_unknown_records_are_marked(read):
    extra = [
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s", "content": "x"},
        {"type": "system", "subtype": "compact_boundary", "sessionId": "s", "uuid": "b"},
        {"type": "future-thing", "sessionId": "s"},
        {"type": "assistant", "sessionId": "s", "uuid": "z", "message": {"content": [{"type": "hologram"}]}},
    ]
    reading = read(ClaudeCode, [user("Go"), assistant(text("A")), *extra])
    kinds = reading.counts.details["kinds"]
    assert (kinds["file-history-snapshot"], kinds["queue-operation"], kinds["system"]) == (1, 1, 1)
    assert reading.counts.marked == {"record type future-thing": 1, "part hologram": 1}
    with pytest.raises(DataError, match=r"session.jsonl:6: unknown record type 'future-thing'"):
        read(ClaudeCode, [user("Go"), assistant(text("A")), *extra], unknown="error")


def test_images_and_errors_of_the_program_are_read(read):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVq"}}
    failed = assistant(text("API Error: 500"), model="<synthetic>", isApiErrorMessage=True)
    reading = read(ClaudeCode, [user([text("See"), image]), failed])
    assert reading.turns[0].input == "See\n[image/png, 3 B]"
    assert (reading.turns[0].output, reading.model_calls) == ("API Error: 500", [])


def test_two_sessions_in_a_file_are_apart(read):
    reading = read(
        ClaudeCode, [user("A"), user("B", sessionId="t"), assistant(text("a")), assistant(text("b"), sessionId="t")]
    )
    assert [(turn.id, turn.output) for turn in reading.turns] == [("s/1", "a"), ("t/1", "b")]


def test_an_array_of_messages_is_read_like_their_lines(tmp_path):
    stream = [{"type": "system", "subtype": "init", "session_id": "s", "uuid": "u0"}]
    stream += [user("List"), assistant(call("c1"), id="m1"), user([result("c1")]), assistant(text("Done."), id="m2")]
    for indent in (None, 2):
        path = tmp_path / f"{indent}.json"
        path.write_text(json.dumps(stream, indent=indent))
        assert ClaudeCode.detect(read_beginning(path, "utf-8")) is not None
        with ClaudeCode(path).reading() as live:
            live.check()
            contents = live.read_counts().details["contents"]
        assert [contents[key] for key in ("sessions", "messages", "calls", "results")] == [1, 4, 1, 1]


class Tree:
    """Records that name their parents; each follows the one before it, or the record *after*."""

    def __init__(self):
        self.records, self.last = [], None

    def add(self, record_, after=...):
        parent = self.last if after is ... else after
        self.records.append({**record_, "parentUuid": parent})
        self.last = record_["uuid"]
        return self.last

    def turn(self, words, number, after=...):
        """Add a turn with a call; return the id of its answer."""
        self.add(user(words), after)
        self.add(assistant(call(f"c{number}"), id=f"m{number}a"))
        self.add(user([result(f"c{number}")]))
        return self.add(assistant(text(f"{words}!"), id=f"m{number}b"))


def abandoned(reading):
    counts = reading.counts.details.get("abandoned", {})
    return [counts.get(name, 0) for name in ("turns", "messages", "calls", "results")]


def prompts(reading):
    return [(turn.input, turn.output) for turn in reading.turns]


def test_turns_before_which_the_user_went_back_are_left_out_and_counted(read):
    tree = Tree()
    first = tree.turn("one", 1)
    tree.turn("two", 2, first)
    tree.turn("three", 3)
    second = tree.turn("two again", 4, first)
    tree.turn("four", 5)
    tree.turn("five", 6, second)
    reading = read(ClaudeCode, tree.records)
    assert prompts(reading) == [("one", "one!"), ("two again", "two again!"), ("five", "five!")]
    assert (abandoned(reading), reading.contents["calls"], reading.contents["unmatched_results"]) == ([3, 12, 3, 3], 3, 0)  # fmt: skip
    assert (
        "3 turns, 12 messages, 3 tool calls, 3 tool results not judged: the user took them back" in reading.counts.notes
    )


def test_a_second_prompt_without_a_parent_leaves_nothing_out(read):
    tree = Tree()
    tree.turn("one", 1, None)
    tree.turn("other", 2, None)
    reading = read(ClaudeCode, tree.records)
    assert (prompts(reading), abandoned(reading)) == ([("one", "one!"), ("other", "other!")], [0, 0, 0, 0])


def test_a_prompt_without_a_reply_that_was_taken_back_is_left_out(read):
    tree = Tree()
    first = tree.turn("one", 1)
    tree.add(user("typo"), first)
    tree.turn("two", 2, first)
    reading = read(ClaudeCode, tree.records)
    assert (prompts(reading), abandoned(reading)) == ([("one", "one!"), ("two", "two!")], [1, 1, 0, 0])


def test_records_that_name_no_parents_are_in_the_order_of_the_file(read):
    records = [user("one", parentUuid=None), assistant(text("1"), parentUuid=None), user("two", parentUuid=None), assistant(text("2"), parentUuid=None)]  # fmt: skip
    reading = read(ClaudeCode, records)
    assert (prompts(reading), abandoned(reading)) == ([("one", "1"), ("two", "2")], [0, 0, 0, 0])


@pytest.mark.parametrize("parent", [None, "of another file"])
def test_a_compaction_and_a_parent_in_no_record_leave_nothing_out(read, parent):
    tree = Tree()
    last = tree.turn("one", 1, parent)
    tree.add({"type": "system", "subtype": "compact_boundary", "sessionId": "s", "uuid": "b", "logicalParentUuid": last}, None)  # fmt: skip
    tree.add(user("This session is being continued", isCompactSummary=True))
    tree.turn("two", 2)
    tree.turn("three", 3, "missing")
    reading = read(ClaudeCode, tree.records)
    assert [input_ for input_, _ in prompts(reading)] == ["one", "two", "three"]
    assert abandoned(reading) == [0, 0, 0, 0]


def test_a_first_prompt_after_a_compaction_leaves_nothing_out(read):
    tree = Tree()
    tree.turn("one", 1, None)
    tree.add({"type": "system", "subtype": "compact_boundary", "sessionId": "s", "uuid": "b"}, None)
    tree.turn("two", 2, None)
    assert abandoned(read(ClaudeCode, tree.records)) == [0, 0, 0, 0]


@pytest.mark.parametrize("has_progress", [False, True])
def test_parallel_calls_are_no_branches_that_the_user_left(read, has_progress):
    """Each result names the line of its call as its parent, so that only the last result is an ancestor of the next answer."""
    tree = Tree()
    tree.add(user("Go"))
    first = tree.add(assistant(call("c1"), id="m1"))
    if has_progress:
        tree.add({"type": "progress", "sessionId": "s", "uuid": "p1"})
    second = tree.add(assistant(call("c2"), id="m1"))
    tree.add(user([result("c2")]), second)
    tree.add(user([result("c1", "no", is_error=True)]), first)
    tree.add(assistant(text("Done"), id="m2"))
    tree.turn("More", 3)
    reading = read(ClaudeCode, tree.records)
    contents = reading.contents
    assert (contents["calls"], contents["results"], contents["failed_results"], abandoned(reading)) == (3, 3, 1, [0] * 4)  # fmt: skip
    assert prompts(reading) == [("Go", "Done"), ("More", "More!")]


def test_a_queued_message_of_a_branch_that_was_left_is_left_out_with_it(read):
    removed = {"type": "queue-operation", "operation": "remove", "sessionId": "s", "content": "Also this"}
    tree = Tree()
    first = tree.turn("one", 1)
    tree.add(user("two"), first)
    tree.records.append(removed)
    tree.add(assistant(text("2"), id="m2"))
    tree.turn("other", 3, first)
    reading = read(ClaudeCode, tree.records)
    assert (prompts(reading), abandoned(reading)[:2]) == ([("one", "one!"), ("other", "other!")], [2, 3])


def test_sub_agents_of_a_branch_that_was_left_stay_sessions(read):
    tree = Tree()
    first = tree.turn("one", 1)
    tree.add(user("two"), first)
    spawn = tree.add(assistant(call("t1", "Task"), id="m2"))
    look = user("Look", isSidechain=True, uuid="r1")
    tree.add(look, None)
    tree.add(assistant(text("Seen"), isSidechain=True))
    tree.add(user([result("t1")]), spawn)
    tree.turn("other", 3, first)
    reading = read(ClaudeCode, tree.records)
    assert [(session.id, session.parent_id) for session in reading.sessions] == [("s", None), ("s/agent-r1", "s")]
    assert prompts(reading) == [("one", "one!"), ("other", "other!"), ("Look", "Seen")]


def test_parents_in_a_circle_and_marks_in_a_branch_that_was_left_are_read(read):
    tree = Tree()
    first = tree.turn("one", 1)
    tree.add(user("two"), first)
    tree.add(assistant({"type": "hologram"}, id="m2"))
    tree.turn("other", 3, first)
    reading = read(ClaudeCode, tree.records)
    assert (reading.counts.marked, abandoned(reading)[0]) == ({"part hologram": 1}, 1)
    with pytest.raises(DataError, match=r"session.jsonl:6: .*'hologram'"):
        read(ClaudeCode, tree.records, unknown="error")
    circle = [user("one", uuid="x", parentUuid="y"), assistant(text("1"), uuid="y", parentUuid="x")]
    assert prompts(read(ClaudeCode, circle)) == [("one", "1")]
