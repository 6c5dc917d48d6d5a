"""The times when subjects are due. The time is an argument, and nothing is read or written."""

from __future__ import annotations

import sys
import tracemalloc
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast_traces
from dicast import DataError, Lookahead, TraceEvent
from dicast.toolkit import sessions
from dicast.toolkit.assembly import Assembly
from dicast_traces.live.names import Names
from dicast_traces.live.watched import Decision
from dicast_traces.live.windows import GRACE, IDLE, LINGER, Windows

HOUR = 3600.0
NOON = 1_700_000_000.0


def event(type, /, session="s", turn=None, time=None, **payload):
    return TraceEvent(type, payload, time, session, turn)


def completed(turn, session="s", **texts):
    return event("turn.completed", session, turn, stop_reason="end_turn", signals_extra=texts)


def ended(session="s", **payload):
    return event("session.ended", session, disposition="completed", **payload)


def thumb(turn, session="s", rating="thumbs_down", **fields):
    return event("feedback.explicit", session, None, scope="turn", subject_turn_id=turn, rating=rating, **fields)


class Memory:
    """An archive of the added events, as a ledger would have it."""

    def __init__(self):
        self.added = []
        self.asked = 0

    def events(self, session_id):
        self.asked += 1
        return [(event_, at) for event_, at in self.added if event_.session_id == session_id]


class Desk:
    """Windows with a clock, and with judges that answer at once."""

    def __init__(self, kinds=("turn", "session"), messages=5, hours=24.0):
        self.archive, names = Memory(), Names()
        weakref.finalize(self, names.__exit__)
        self.windows = Windows(kinds, Lookahead(messages, hours), self.archive, names)
        self.now = NOON

    def add(self, *events, after=0.0, own_time=None):
        """Add *events*, and return the subjects that are then due, as (kind, id, trigger)."""
        self.now += after
        added_ = [event_ for event_ in events if self.windows.add(event_, self.now, own_time)]
        due_ = self.wait(0.0)
        self.archive.added += [(event_, self.now) for event_ in added_]
        return due_

    def wait(self, seconds):
        self.now += seconds
        return self.judge(self.windows.due(self.now))

    def judge(self, decisions):
        subjects_ = []
        for decision in decisions:
            for subject in self.windows.take(decision):
                subjects_.append((subject, decision.trigger))
                self.windows.settle(decision.session_id)
        return [(subject.kind, subject.id, trigger) for subject, trigger in subjects_]


def test_no_event_inside_a_turn_makes_anything_due():
    desk = Desk(messages=0, hours=0)
    inside = [
        event("llm.call_completed", turn="t", model="m"),
        event("tool.called", turn="t", tool_use_id="u"),
        event("tool.completed", turn="t", tool_use_id="u", success=True),
        event("route.decided", turn="t", chosen_model="m"),
    ]
    assert desk.add(*inside, after=1) == []
    assert desk.wait(1000 * HOUR) == []
    assert desk.add(completed("t")) == [("turn", "t", "bus")]


def test_turn_without_lookahead_is_due_when_it_ends():
    desk = Desk(messages=0, hours=0)
    assert desk.add(completed("t")) == [("turn", "t", "bus")]


def test_turn_is_due_when_so_many_later_turns_have_begun():
    desk = Desk(messages=5)
    assert [desk.add(completed(f"t{n}")) for n in range(5)] == [[]] * 5
    assert desk.add(event("llm.call_completed", turn="t5")) == [("turn", "t0", "bus")]
    assert desk.add(completed("t5")) == []
    assert desk.add(event("tool.called", turn="t6", tool_use_id="u")) == [("turn", "t1", "bus")]


def called(use, turn="t", tool="f", session="s"):
    return event("tool.called", session, turn, tool_use_id=use, tool_name=tool)


def returned(use, turn="t", session="s", **fields):
    return event("tool.completed", session, turn, tool_use_id=use, success=True, **fields)


def test_tool_cycle_is_due_when_it_ends_and_waits_for_no_turn():
    desk = Desk(("tool_cycle", "turn", "session"))
    assert desk.add(called("u")) == []
    assert desk.add(returned("u")) == [("tool_cycle", "u", "bus")]
    assert desk.add(event("tool.failed", turn="t", tool_use_id="v", error="x")) == []  # has overtaken its call
    assert desk.add(called("v", tool="g")) == [("tool_cycle", "v", "bus")]
    assert desk.add(completed("t"), ended()) == []
    assert desk.wait(GRACE) == [("turn", "t", "bus"), ("session", "s", "bus")]


def test_call_after_which_the_same_tool_was_called_is_judged_again_when_its_turn_ends():
    desk = Desk(("tool_cycle", "turn"))
    due_ = []
    for use, tool in (("a", "f"), ("b", "g"), ("c", "f"), ("d", "h")):
        due_ += desk.add(called(use, tool=tool), returned(use))
    assert due_ == [("tool_cycle", use, "bus") for use in "abcd"]
    assert desk.add(completed("t")) == [("tool_cycle", "a", "bus")]
    assert desk.add(ended()) == []
    assert desk.wait(GRACE) == [("turn", "t", "bus")]


def test_cycles_of_a_trace_that_is_there_already_are_judged_once_with_all_that_follows():
    desk = Desk(("tool_cycle", "turn"), messages=0)
    due_ = desk.add(called("a"), returned("a"), called("b"), returned("b"), completed("t"))
    assert due_ == [("tool_cycle", "a", "bus"), ("tool_cycle", "b", "bus"), ("turn", "t", "bus")]


def test_call_that_never_ends_is_judged_with_its_turn_and_so_is_what_was_learned_since_the_turn_ended():
    desk = Desk(("tool_cycle", "turn"))
    assert desk.add(called("a"), returned("a"), called("b", tool="g"), completed("t")) == [("tool_cycle", "a", "bus")]
    assert desk.add(called("c"), ended()) == []
    assert desk.wait(GRACE) == [
        ("tool_cycle", "a", "bus"),
        ("tool_cycle", "b", "bus"),
        ("tool_cycle", "c", "bus"),
        ("turn", "t", "bus"),
    ]


def test_a_session_that_left_memory_has_no_call_judged_anew():
    desk = Desk(("tool_cycle", "turn"))
    assert desk.add(called("a"), returned("a")) == [("tool_cycle", "a", "bus")]
    desk.wait(2 * IDLE)
    assert desk.windows.sessions == 0
    assert desk.add(called("b"), returned("b")) == [("tool_cycle", "b", "bus")]
    assert desk.add(completed("t")) == [("tool_cycle", "a", "bus")]


def test_decisions_that_a_version_of_before_recorded_are_taken_as_it_took_them():
    """It judged the cycles of a turn with the turn, and again before the next feedback on it."""
    desk = Desk(("tool_cycle", "turn"))
    windows = desk.windows
    for event_ in (called("a"), returned("a"), completed("t")):
        windows.add(event_, NOON, trusted=True)
    decisions = [Decision("turn", "s", "t", "bus"), Decision("tool_cycle", "s", "t", "feedback_arrived")]
    taken_subjects = [[(subject_.kind, subject_.id) for subject_ in windows.take(decision)] for decision in decisions]
    assert taken_subjects == [[("tool_cycle", "a"), ("turn", "t")], [("tool_cycle", "a")]]
    assert windows.due(NOON) == []


def worked(calls):
    """How many steps it takes to judge the calls of one turn live, and to read them from a file."""
    trace = [event_ for n in range(calls) for event_ in (called(f"u{n}"), returned(f"u{n}"))]

    def live():
        desk = Desk(("tool_cycle", "turn"), messages=0)
        live_due = [decision_ for event_ in trace for decision_ in desk.add(event_)] + desk.add(completed("t"))
        assert len({id for kind, id, _ in live_due if kind == "tool_cycle"}) == calls

    def read():
        session_ = Assembly("s", [*trace, completed("t")]).session()
        read_subjects = [*sessions.subjects(session_, ("tool_cycle", "turn"))]
        assert sum(len(subject.events) for subject in read_subjects if subject.kind == "tool_cycle") < 25 * calls

    return [steps(work) for work in (live, read)]


def steps(work):
    """How many lines of the plugin and the toolkit run in *work*, each pass of a loop anew."""
    count, before = 0, sys.gettrace()
    folders = tuple(str(Path(module.__file__).parent) for module in (sessions, dicast_traces))

    def trace(frame, kind, _):
        nonlocal count
        if not frame.f_code.co_filename.startswith(folders):
            return None
        count += kind in ("line", "call")
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_work_grows_with_the_calls_of_a_turn_and_not_with_their_square():
    for few, long_work in zip(worked(50), worked(400), strict=True):
        assert long_work < 12 * few


def test_turns_and_then_their_session_are_due_a_moment_after_its_end():
    desk = Desk(("tool_cycle", "turn", "session"))
    desk.add(event("tool.called", turn="a", tool_use_id="u"), completed("a"), completed("b"))
    assert desk.add(ended()) == []
    assert desk.windows.deadline() == pytest.approx(desk.now + GRACE)
    assert desk.wait(GRACE) == [
        ("tool_cycle", "u", "bus"),
        ("turn", "a", "bus"),
        ("turn", "b", "bus"),
        ("session", "s", "bus"),
    ]
    assert desk.wait(HOUR) == []


def test_what_overtakes_the_end_of_its_session_is_judged_with_it_once():
    desk = Desk()
    desk.add(ended(), completed("a"))
    assert desk.add(completed("b"), after=GRACE / 2) == []
    assert desk.wait(GRACE) == [("turn", "a", "bus"), ("turn", "b", "bus"), ("session", "s", "bus")]


def test_turn_that_ends_after_its_session_was_judged_is_due_at_once_and_the_session_again():
    desk = Desk()
    desk.add(completed("a"), ended())
    assert desk.wait(GRACE) == [("turn", "a", "bus"), ("session", "s", "bus")]
    assert desk.add(completed("b"), after=1) == [("turn", "b", "bus"), ("session", "s", "bus")]


@pytest.mark.parametrize("asleep", [False, True])
def test_tool_call_that_came_late_is_judged_with_the_next_feedback_on_its_turn(asleep):
    desk = Desk(("tool_cycle", "turn", "session"))
    desk.add(event("tool.called", turn="a", tool_use_id="u"), completed("a"), completed("b"), ended())
    desk.wait(GRACE)
    late = event("tool.called", turn="a", tool_use_id="v"), event("tool.failed", turn="a", tool_use_id="v")
    assert desk.add(*late, after=1) == []
    if asleep:
        desk.wait(2 * LINGER)
        assert desk.windows.sessions == 0
    again = [("turn", "a", "feedback_arrived"), ("session", "s", "feedback_arrived")]
    cycles = [("tool_cycle", "u", "feedback_arrived"), ("tool_cycle", "v", "feedback_arrived")]
    assert desk.add(thumb("b"), after=1) == [("turn", "b", "feedback_arrived"), again[1]]
    assert desk.add(thumb("a"), after=1) == [*cycles, *again]
    assert desk.add(thumb("a", time="2026-01-31T12:00:00Z"), after=1) == again


def test_hours_count_from_the_last_event_of_the_session():
    desk = Desk(hours=24)
    desk.add(completed("a"))
    assert desk.add(event("llm.call_completed", turn="b"), after=23 * HOUR) == []
    assert desk.windows.deadline() <= desk.now + 24 * HOUR
    assert desk.wait(23.9 * HOUR) == []
    assert desk.wait(0.2 * HOUR) == [("turn", "a", "bus")]
    assert desk.wait(100 * HOUR) == []


def test_old_events_that_are_read_late_count_by_their_own_times_once_all_are_read():
    desk = Desk(hours=24)
    desk.windows.backfilling = True
    assert desk.add(completed("a"), own_time=NOON - 30 * HOUR) == []
    assert desk.add(completed("b"), own_time=NOON - 1 * HOUR) == []
    assert desk.add(completed("c", "other"), own_time=NOON - 25 * HOUR) == []
    desk.windows.caught_up()
    assert desk.wait(0) == [("turn", "c", "bus")]


def test_time_that_is_ahead_of_the_clock_counts_as_now():
    desk = Desk(hours=24)
    desk.add(completed("a"), own_time=NOON + 1000 * HOUR)
    assert desk.wait(24 * HOUR) == [("turn", "a", "bus")]


def test_feedback_on_a_judged_turn_makes_it_due_again_and_its_session_too():
    desk = Desk(messages=0)
    assert desk.add(completed("a")) == [("turn", "a", "bus")]
    assert desk.add(thumb("a")) == [("turn", "a", "feedback_arrived")]
    desk.add(ended())
    assert desk.wait(GRACE) == [("session", "s", "bus")]
    assert desk.add(thumb("a", rating="thumbs_up")) == [
        ("turn", "a", "feedback_arrived"),
        ("session", "s", "feedback_arrived"),
    ]
    retry = event("feedback.implicit", type="retry", subject_turn_id="a")
    assert desk.add(retry)[0] == ("turn", "a", "feedback_arrived")


def test_feedback_before_the_verdict_is_part_of_it():
    desk = Desk()
    assert desk.add(completed("a"), thumb("a"), ended()) == []
    assert desk.wait(GRACE) == [("turn", "a", "bus"), ("session", "s", "bus")]


def test_feedback_on_the_whole_session_makes_only_it_due_again():
    desk = Desk()
    desk.add(completed("a"), ended())
    desk.wait(GRACE)
    feedback_ = event("feedback.explicit", turn="a", scope="session", rating="thumbs_up")
    assert desk.add(feedback_) == [("session", "s", "feedback_arrived")]


def test_other_late_events_make_nothing_due():
    desk = Desk()
    desk.add(completed("a"), ended())
    desk.wait(GRACE)
    late = event("tool.failed", turn="a", tool_use_id="u", error="late")
    assert desk.add(late, event("llm.call_failed", turn="a", error="x")) == []


def test_tool_cycles_of_a_turn_are_judged_once():
    desk = Desk(("tool_cycle", "turn"), messages=0)
    call = event("tool.called", turn="a", tool_use_id="u")
    assert desk.add(call, completed("a")) == [("tool_cycle", "u", "bus"), ("turn", "a", "bus")]
    assert desk.add(thumb("a")) == [("turn", "a", "feedback_arrived")]


def test_second_end_of_a_session_makes_it_due_again():
    desk = Desk()
    desk.add(completed("a"), ended())
    desk.wait(GRACE)
    assert desk.add(event("session.ended", disposition="abandoned")) == []
    assert desk.wait(GRACE) == [("session", "s", "bus")]


@pytest.mark.parametrize(
    "twice",
    [
        completed("a", final_response_text="x"),
        event("tool.called", turn="a", tool_use_id="u", tool_name="f"),
        event("llm.call_failed", turn="a", time="2026-01-01T00:00:00Z", error="x"),
        ended(),
    ],
)
def test_an_event_that_comes_twice_counts_once(twice):
    desk = Desk()
    assert desk.windows.add(twice, NOON)
    assert not desk.windows.add(twice, NOON + 1)


def test_event_that_names_nothing_and_has_no_time_may_happen_twice():
    desk = Desk()
    failed = event("llm.call_failed", turn="a", error="x")
    assert desk.windows.add(failed, NOON)
    assert desk.windows.add(failed, NOON)


def test_two_different_ends_of_one_turn_are_a_fault():
    desk = Desk(messages=0)
    desk.add(completed("a", final_response_text="x"))
    with pytest.raises(DataError, match="turn 'a' was completed before"):
        desk.windows.add(completed("a", final_response_text="y"), NOON)


def test_one_name_for_two_turns_is_a_fault_even_after_the_first_has_left_memory():
    desk = Desk()
    desk.add(completed("1", "a"))
    with pytest.raises(DataError, match="'1' names a turn in session 'a' already"):
        desk.windows.add(completed("1", "b"), NOON)
    desk.add(ended("a"))
    desk.wait(GRACE)
    desk.wait(LINGER)
    with pytest.raises(DataError, match="'1' names a turn in session 'a' already"):
        desk.windows.add(completed("1", "b"), NOON)


def test_one_name_for_two_calls_is_a_fault_where_calls_are_judged():
    calls = [event("tool.called", turn="a", tool_use_id="u", n=n) for n in range(2)]
    assert Desk(("turn",)).add(*calls) == []
    with pytest.raises(DataError, match="names a tool_cycle"):
        Desk(("tool_cycle",)).add(*calls)


def test_session_leaves_memory_when_it_is_over_and_judged():
    desk = Desk()
    desk.add(completed("a"), ended())
    desk.wait(GRACE)
    assert desk.windows.sessions == 1
    desk.wait(LINGER)
    assert (desk.windows.sessions, desk.windows.going_on) == (0, 0)


def test_session_stays_in_memory_until_its_subjects_are_judged():
    desk = Desk()
    desk.add(completed("a"), ended())
    decisions = desk.windows.due(desk.now + GRACE)
    subjects_ = [subject for decision in decisions for subject in desk.windows.take(decision)]
    desk.wait(HOUR)
    assert desk.windows.sessions == 1
    for _ in subjects_:
        desk.windows.settle("s")
    desk.wait(HOUR)
    assert desk.windows.sessions == 0


def test_session_that_goes_on_leaves_memory_when_it_is_silent_and_nothing_waits():
    desk = Desk(messages=0)
    desk.add(completed("a"))
    desk.wait(IDLE)
    assert (desk.windows.sessions, desk.windows.going_on) == (0, 1)
    assert desk.add(completed("b")) == [("turn", "b", "bus")]
    assert desk.windows.going_on == 1


def test_session_that_left_memory_comes_back_for_feedback_with_all_that_was_known():
    desk = Desk(("tool_cycle", "turn", "session"))
    desk.add(event("tool.called", turn="a", tool_use_id="u"), completed("a"), completed("b"), ended())
    desk.wait(GRACE)
    desk.wait(LINGER)
    assert desk.windows.sessions == 0
    assert desk.add(completed("a")) == []  # known already
    assert desk.add(thumb("a")) == [("turn", "a", "feedback_arrived"), ("session", "s", "feedback_arrived")]
    again = desk.windows._session("s").assembly.session()
    assert [turn.id for turn in again.turns] == ["a", "b"]
    assert len(again.events) == 5


def test_a_new_session_is_not_looked_up_while_none_has_left_memory():
    desk = Desk()
    desk.add(completed("a"), completed("b", "other"))
    assert desk.archive.asked == 0


def test_memory_does_not_grow_with_the_sessions_that_are_over():
    desk = Desk(("tool_cycle", "turn", "session"))
    desk.archive.added = None

    def many(first):
        for number in range(first, first + 300):
            session, turn = f"s{number}", f"t{number}"
            for event_ in (
                event("tool.called", session, turn, tool_use_id=turn),
                completed(turn, session),
                ended(session),
            ):
                desk.windows.add(event_, desk.now)
            desk.wait(1.0)

    desk.archive.events = lambda session_id: ()
    many(0)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        many(1000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert desk.windows.sessions < 20
    assert grown < 100_000


def test_close_judges_all_that_was_completed_and_every_session():
    desk = Desk(messages=5)
    desk.add(completed("a"), completed("b", "other"), event("tool.called", turn="c", tool_use_id="u"))
    desk.add(completed("d", "third"), ended("third"))
    desk.wait(GRACE)
    assert desk.judge(desk.windows.close(desk.now)) == [
        ("turn", "a", "bus"),
        ("session", "s", "bus"),
        ("turn", "b", "bus"),
        ("session", "other", "bus"),
    ]


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(st.data())
def test_however_time_passes_every_turn_is_due_once_and_again_only_for_feedback(data):
    desk = Desk(("turn", "session"), messages=2, hours=1)
    turns = [f"{session}/{number}" for session in "ab" for number in range(4)]
    plan = data.draw(st.permutations([completed(turn, turn[0]) for turn in turns] + [ended("a"), ended("b")]))
    due_ = []
    for event_ in plan:
        due_ += desk.add(event_, after=data.draw(st.sampled_from([0.0, GRACE, LINGER, 2 * HOUR])))
        if data.draw(st.booleans()):
            turn = data.draw(st.sampled_from(turns))
            judged = ("turn", turn, "bus") in due_
            new = desk.add(thumb(turn, turn[0], time=f"2026-01-01T00:00:00.{len(due_):06d}+00:00"))
            assert (("turn", turn, "feedback_arrived") in new) <= judged
            due_ += new
    due_ += desk.wait(2 * HOUR)
    assert sorted(id for kind, id, trigger in due_ if (kind, trigger) == ("turn", "bus")) == turns
    assert {id for kind, id, _ in due_ if kind == "session"} == {"a", "b"}
