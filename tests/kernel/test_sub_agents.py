"""The places of sub-agents in the sessions that started them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dicast import TraceEvent
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.parts import TextPart, ToolCall, ToolResult
from dicast.toolkit.sub_agents import AgentPlace, SubAgents


def started(session, parent, call=None, time=None):
    named = {} if call is None else {"parent_tool_use_id": call}
    return TraceEvent("session.started", {"parent_id": parent, **named}, time, session)


def of_turn(turn, minute, type_="turn.completed", **payload):
    return TraceEvent(type_, payload, f"2026-01-01T00:{minute:02d}:00Z", "s", turn)


TURNS = [
    of_turn("s/1", 0, "tool.called", tool_use_id="s/1/c1"),
    of_turn("s/1", 1),
    of_turn("s/2", 10, "message.sent"),
    of_turn("s/2", 11),
]


def test_a_sub_agent_is_at_the_call_that_it_names():
    agents = SubAgents.of(
        [started("a", "s", "c1"), started("b", "s", "s/1/c1"), started("c", "s", "c9", "2026-01-01T00:05Z")]
    )
    assert agents.places("s", TURNS) == [
        AgentPlace("a", "s/1/c1"),
        AgentPlace("b", "s/1/c1"),
        AgentPlace("c", None, "s/1"),
    ]


def test_a_sub_agent_is_at_the_call_whose_end_names_it():
    end = of_turn("s/1", 1, "tool.failed", tool_use_id="s/1/c1", started_session="a")
    assert SubAgents.of([started("a", "s")]).places("s", [*TURNS, end]) == [AgentPlace("a", "s/1/c1")]


def test_another_sub_agent_is_in_the_turn_of_its_start():
    times = {
        "a": "2026-01-01T00:10:30Z",
        "b": "2026-01-01T01:05:00+01:00",
        "c": "2025-01-01",
        "d": "yesterday",
        "e": None,
    }
    agents = SubAgents.of(started(name, "s", time=time) for name, time in times.items())
    turns = {place.session_id: place.turn for place in agents.places("s", TURNS)}
    assert turns == {"a": "s/2", "b": "s/1", "c": "s/1", "d": "s/1", "e": "s/1"}
    assert SubAgents.of([started("a", "s")]).places("s", []) == [AgentPlace("a")]


def test_a_subject_has_the_sub_agents_that_it_started():
    agents = SubAgents.of([started("a", "s", "c1"), started("b", "s", time="2026-01-01T00:10:30Z")])
    names = {
        (kind, id): [place.session_id for place in agents.places_in(kind, id, "s", TURNS)]
        for kind, id in (
            ("session", "s"),
            ("turn", "s/1"),
            ("turn", "s/2"),
            ("tool_cycle", "s/1/c1"),
            ("tool_cycle", "x"),
        )
    }
    assert list(names.values()) == [["a", "b"], ["a"], ["b"], ["a"], []]


def test_the_last_start_of_a_session_counts():
    assert SubAgents.of([started("a", "s"), started("a", "t")]).parents == {"a": "t"}


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcde"))))
def test_no_session_is_inside_of_itself(pairs):
    agents = SubAgents.of(started(child, parent) for child, parent in pairs)
    for session in "abcde":
        inside = list(agents.inside(session))
        assert session not in inside
        assert len(inside) == len(set(inside))


def test_a_conversation_of_a_sub_agent_begins_with_its_parent():
    builder = Conversation("a", parent_id="s", parent_call="c1")
    builder.add("user", [TextPart("Look")])
    builder.add("assistant", [ToolCall("x", "Task", {})], time="2026-01-01T00:00:00Z")
    builder.add("tool", [ToolResult("x", "ok", session_id="b")])
    session = builder.session({})
    first, *others = session.log
    assert (first.type, first.turn_id, first.time) == ("session.started", None, "2026-01-01T00:00:00Z")
    assert first.payload == {"parent_id": "s", "parent_tool_use_id": "c1"}
    assert [event.payload["started_session"] for event in others if event.type == "tool.completed"] == ["b"]
    assert Assembly("a", session.log).session().parent_id == session.parent_id == "s"
    assert all(session.log[turn.begins].turn_id == turn.id for turn in session.turns)


def test_a_conversation_without_a_parent_has_no_event_of_its_start():
    builder = Conversation("s")
    builder.add("user", [TextPart("Hi")])
    builder.add("assistant", [TextPart("Ho")])
    assert [event.type for event in builder.session({}).log] == ["turn.completed", "session.ended"]
