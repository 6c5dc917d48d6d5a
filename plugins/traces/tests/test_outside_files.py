"""Conversations that other people recorded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dicast_traces import Messages

pytestmark = pytest.mark.outside_data
DATA = Path(os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).parents[4] / "shared" / "data"))


def read_file(path, **options):
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder of data next to it")
    with Messages(path, subjects=("tool_cycle", "turn", "session"), **options).reading() as live:
        return list(live.subjects()), live.read_counts()


def case(name, **options):
    return read_file(DATA.parent / "cases" / "traces" / name, id="{{ id }}", **options)


def test_roles_of_every_name_are_read():
    subjects, counts = case("mix.jsonl")
    turns = [subject for subject in subjects if subject.kind == "turn"]
    assert [turn.session_id for turn in turns] == ["good", "human-ai", "gemini", "caps", "user-model"]
    assert {turn.output for turn in turns} == {"Lima"}
    assert (counts.records, counts.dropped, counts.marked) == (5, {}, {})


def test_blocks_of_anthropic_are_one_turn_with_a_tool_cycle():
    cycle, turn, session = case("anthropic.jsonl")[0]
    assert (cycle.input, cycle.output) == ({"tool_name": "weather", "input": {"city": "Rome"}}, "22C")
    assert (turn.input, turn.output, session.kind) == ("weather in Rome?", "It is 22C in Rome.", "session")


def test_refusal_is_the_answer_and_a_clean_end():
    turn, session = case("refusal.jsonl")[0]
    assert turn.output == "I can't help with that."
    assert turn.events[-1].payload["stop_reason"] == "end_turn"
    assert [event.payload.get("refusal") for event in session.trail if event.payload.get("role") == "assistant"] == [
        True
    ]


def test_image_is_a_marker_and_a_part():
    turn, session = case("image.jsonl")[0]
    assert turn.input == "what is this?\n[image/png, 38 kB]"
    sent = next(event.payload for event in session.trail if event.type == "message.sent")
    assert sent["parts"][1]["url"].startswith("data:image/png;base64,")


def test_airline_conversations_make_as_many_turns_calls_and_results_as_they_have():
    subjects, counts = read_file(DATA / "tau_bench_airline.jsonl.gz", id="{{ task_id }}-{{ trial }}")
    kinds = [subject.kind for subject in subjects]
    assert (kinds.count("turn"), kinds.count("session"), kinds.count("tool_cycle")) == (681, 100, 572)
    contents = counts.details["contents"]
    assert (counts.records, contents["calls"], contents["results"], contents["unmatched_results"]) == (100, 572, 572, 0)
    assert counts.details["formats"] == {"openai": 100}


def test_a_list_of_messages_is_one_conversation():
    subjects, counts = read_file(DATA / "traces" / "openhands" / "fncall-llm-message.json")
    assert (counts.records, counts.marked) == (1, {})
    assert {subject.kind for subject in subjects} >= {"turn", "session"}
