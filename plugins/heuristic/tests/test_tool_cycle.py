from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Failure, Subject, TraceEvent
from dicast_heuristic import ToolCycle

ID = "tool-cycle-heuristic-v1"
JUDGE = ToolCycle(dicast.rubric(ID))
MISSING = object()


def call(id="u", tool="search", input=MISSING, hash=None):
    payload = {"tool_use_id": id, "tool_name": tool, "input_hash": hash}
    return TraceEvent("tool.called", payload if input is MISSING else {**payload, "input": input})


def completed(**options):
    return TraceEvent("tool.completed", {"tool_use_id": "u", "tool_name": "search", **options})


FAILED = TraceEvent("tool.failed", {"tool_use_id": "u", "tool_name": "search", "error": "503"})
GOOD = completed(success=True)


def judge(*events, judge=JUDGE, id="u"):
    return judge.judge(Subject("tool_cycle", id, events=events), ())


def judged(*events, **options):
    verdict_ = judge(*events, **options)
    return round(verdict_.score, 6), verdict_.confidence, verdict_.signals["flags_negative"]


def test_success_alone_is_good():
    assert judged(call(hash="h"), GOOD) == (1.0, 0.85, [])


def test_same_call_again_at_once():
    twice = ["immediate_re_call_same_input", "thrash_in_window"]
    assert judged(call(hash="h"), GOOD, call("v", hash="h")) == (0.6, 0.4, twice)
    assert judged(call(hash="h"), FAILED, call("v", hash="h")) == (0.0, 0.4, ["tool_failed", *twice])


@pytest.mark.parametrize(
    ("end", "score", "flags"),
    [
        ([FAILED], 0.4, ["tool_failed"]),
        ([completed(success=False)], 0.4, ["tool_failed"]),
        ([completed(success=None)], 1.0, []),
        ([completed()], 1.0, []),
        ([], 0.4, ["tool_did_not_complete"]),
    ],
)
def test_what_became_of_the_call(end, score, flags):
    assert judged(call(), *end) == (score, 0.6 if flags else 0.85, flags)
    assert judge(call(), *end).signals["succeeded"] is (not flags)


def test_same_call_later_is_thrash_within_the_next_three():
    between = [call(f"o{number}", "other", hash="h") for number in range(3)]
    first, again = call(hash="h"), call("v", hash="h")
    assert judged(first, GOOD, *between[:1], again) == (0.8, 0.6, ["thrash_in_window"])
    assert judged(first, GOOD, *between[:2], again) == (0.8, 0.6, ["thrash_in_window"])
    assert judged(first, GOOD, *between, again) == (1.0, 0.85, [])


def test_ends_of_other_calls_do_not_count_as_calls():
    end = TraceEvent("tool.completed", {"tool_use_id": "o", "success": False})
    between = [event for number in range(2) for event in (call(f"o{number}", "other"), end)]
    assert judged(call(hash="h"), GOOD, *between, call("v", hash="h")) == (0.8, 0.6, ["thrash_in_window"])


TEXT = "abcdefghij" * 10


@pytest.mark.parametrize(
    ("input", "score"),
    [
        ({"b": 1, "a": TEXT}, 0.6),  # the same in another order
        ({"a": TEXT[:-5] + "12345", "b": 1}, 0.8),
        ({"a": TEXT[:-12] + "1234567890", "b": 1}, 1.0),
        ("a", 1.0),
    ],
)
def test_nearly_the_same_input_is_thrash(input, score):
    first, other = call(input={"a": TEXT, "b": 1}), call("v", input=input)
    assert judge(first, GOOD, other).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("first", "other", "score"),
    [
        ({"hash": "h"}, {"hash": "i"}, 1.0),
        ({"hash": "h"}, {"hash": "h", "input": 1}, 0.6),
        ({}, {}, 1.0),  # nothing is known
        ({"input": None}, {"input": None}, 0.6),
        ({"input": None}, {}, 1.0),
        ({"input": {"q": 1}, "hash": "h"}, {"input": {"q": 1}}, 0.6),
        ({"input": "a" * 20, "hash": "h"}, {"input": "a" * 20 + "b", "hash": "i"}, 0.8),
    ],
)
def test_without_an_input_only_equal_hashes_are_the_same(first, other, score):
    assert judge(call(**first), GOOD, call("v", **other)).score == pytest.approx(score)
    assert judge(call(**first), GOOD, call("v", "another tool", **other)).score == 1.0


def test_size_of_the_output_counts_where_the_tool_has_a_range(changed):
    ranged = ToolCycle(changed(ID, output_sizes={"search": [10, 2000], "read": [0, 0]}))
    small, edge, unknown = completed(output_size=9), completed(output_size=2000), completed()
    assert judged(call(), small, judge=ranged) == (round(1 / 1.2, 6), 0.6, ["output_size_out_of_window"])
    assert judged(call(), edge, judge=ranged) == (1.0, 0.85, [])
    assert judge(call(), edge, judge=ranged).signals["flags"][-1] == "output_size_in_window"
    assert judged(call(), unknown, judge=ranged) == (1.0, 0.85, [])
    assert judged(call(), FAILED, judge=ranged) == (0.4, 0.6, ["tool_failed"])
    assert judged(call(tool="other"), small, judge=ranged) == (1.0, 0.85, [])
    assert judged(call(), small) == (1.0, 0.85, [])


def test_signals_name_what_was_seen():
    verdict_ = judge(call(hash="h"), GOOD)
    assert verdict_.signals == {
        "flags": ["tool_succeeded", "no_immediate_re_call_same_input", "no_thrash_in_window"],
        "flags_negative": [],
        "tool_name": "search",
        "succeeded": True,
    }
    assert (verdict_.judge_kind, verdict_.rubric) == ("heuristic", JUDGE.rubric)


def test_call_is_found_among_all_events_of_its_turn():
    events = (call("a", hash="h"), call("u", hash="h"), completed(), call("b", "other"), call("c", "other", hash="h"))
    assert judged(*events) == (1.0, 0.85, [])
    assert judged(TraceEvent("tool.called", {"tool_use_id": 7, "tool_name": "search"}), id="7")[0] == 0.4


def test_end_alone_is_judged():
    assert judged(GOOD) == (1.0, 0.85, [])


@pytest.mark.parametrize("events", [(), (call("v"), TraceEvent("turn.completed"))])
def test_call_that_is_not_there_is_no_subject(events):
    failure_ = judge(*events)
    assert isinstance(failure_, Failure)
    assert (failure_.kind, "u" in failure_.message) == ("subject_not_found", True)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"weights__tool_succeded": 1}, "weights.tool_succeded"),
        ({"thrash__window": 1.5}, "thrash.window"),
        ({"thrash__window": 21}, "thrash.window"),
        ({"thrash__distance": 2}, "thrash.distance"),
        ({"output_sizes": [1]}, "output_sizes"),
        ({"output_sizes": {"a": [2, 1]}}, "output_sizes.a"),
        ({"output_sizes": {"a": [1, "2"]}}, "output_sizes.a"),
        ({"output_sizes": {"a": 5}}, "output_sizes.a"),
        ({"confidence": []}, "confidence"),
    ],
)
def test_wrong_figures_are_refused_with_their_place(changed, changes, path):
    with pytest.raises(ConfigError) as caught:
        ToolCycle(changed(ID, **changes))
    assert path in [problem.path for problem in caught.value.problems]


def test_rubric_by_which_most_tools_have_no_score_is_refused(changed):
    data = JUDGE.rubric.data["weights"]
    with pytest.raises(ConfigError, match="without a range"):
        ToolCycle(changed(ID, weights={**dict.fromkeys(data, 0), "output_size_in_window": 1}))


def test_all_figures_come_from_the_rubric(changed):
    other = changed(
        ID, weights__no_thrash_in_window=0.4, thrash__window=1, thrash__distance=0.5, confidence=[{"value": 0.3}]
    )
    verdict_ = judge(call(input="aaaa"), GOOD, call("v", input="aabb"), judge=ToolCycle(other))
    assert (verdict_.score, verdict_.confidence) == (pytest.approx(0.8 / 1.2), 0.3)


inputs = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=30),
    lambda one: st.dictionaries(st.text("ab"), one),
    max_leaves=12,
)
calls = st.builds(
    call, st.sampled_from(["u", "v"]), st.sampled_from(["f", "g"]), inputs, st.sampled_from([None, "h", "i"])
)
EVENTS = st.lists(calls | st.sampled_from([GOOD, FAILED, completed(success=False)]), max_size=8).map(tuple)


@given(EVENTS)
def test_score_is_bounded_and_the_same_again(events):
    verdict_ = judge(call(hash="h"), *events)
    assert 0 <= verdict_.score <= 1
    assert verdict_ == judge(call(hash="h"), *events)
    assert len(verdict_.signals["flags"]) + len(verdict_.signals["flags_negative"]) == 3
