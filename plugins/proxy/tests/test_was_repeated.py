from __future__ import annotations

import math
import pickle
import sys
import time
import unicodedata

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score, Subject, TraceEvent
from dicast_proxy import WasRepeated

SEARCH = {"tool": "search", "params": {"to": "Zürich", "seats": 1}}


def judged(output, history=None, **options) -> Score | Failure:
    context_ = None if history is None else {"execution_history": history}
    return WasRepeated(**options).score(Subject("row", "q1", context_, output))


def value(params, before, **options) -> float:
    return judged({"tool": "t", "params": params}, [{"tool": "t", "params": before}], **options).value


# One call


def test_a_call_that_was_made_before_scores_0_and_names_the_step():
    score = judged(SEARCH, [{"tool": "look"}, SEARCH, SEARCH])
    assert score.value == 0.0
    assert score.details == "search repeats step 2 of 3"
    assert score.signals == {"was_repeated": True, "steps": 3, "repeats": "step 2", "similarity": 1.0}


def test_a_new_call_scores_1():
    score = judged(SEARCH, [{"tool": "search", "params": {}}, {"tool": "book", "params": SEARCH["params"]}])
    assert (score.value, score.signals) == (1.0, {"was_repeated": False, "steps": 2})


@pytest.mark.parametrize(
    ("first", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": 1}, {"a": 1.0}),
        (10**16, 1e16),
        (0, -0.0),
        ([1, {"b": [2.0]}], [1.0, {"b": [2]}]),
        ("Z\u00fcrich", "Zu\u0308rich"),
        ({"Z\u00fcrich": 1}, {"Zu\u0308rich": 1.0}),
        ("K", "\u212a"),  # the sign for kelvin is the letter
        (None, None),
    ],
)
def test_equal_params_in_another_form_are_the_same(first, other):
    assert value(first, other) == value(other, first) == 0.0


@pytest.mark.parametrize(
    ("first", "other"),
    [
        (1, True),
        (0, False),
        (1, "1"),
        ({"a": 1}, {"a": "1"}),
        (1.5, "1.5"),
        ("true", True),
        (None, False),
        ({}, None),
        ([], {}),
        ({"a": None}, {}),
        ([1, 2], [2, 1]),
        (2**53 + 1, float(2**53)),
        ("é", "e"),
        ("Zürich", "ZÜRICH"),
        ({"\u00e9": 1, "e\u0301": 2}, {"\u00e9": 2}),  # keys that would become one
        (" a", "a"),
        (["a,b"], ["a", "b"]),
        ("1.0", "1"),
    ],
)
def test_different_params_are_never_taken_for_equal(first, other):
    assert value(first, other) == value(other, first) == 1.0


def test_missing_params_are_null():
    assert judged({"tool": "t"}, [{"tool": "t", "params": None}]).value == 0.0
    assert judged({"tool": "t"}, [{"tool": "t", "params": {}}]).value == 1.0


def test_the_tool_counts_by_its_normal_form_and_its_case():
    assert judged({"tool": "caf\u00e9"}, [{"tool": "cafe\u0301"}]).value == 0.0
    assert judged({"tool": "Search"}, [{"tool": "search"}]).value == 1.0
    assert judged({"tool": 1}, [{"tool": "1"}]).value == 1.0


def test_calls_are_also_read_in_the_forms_of_openai_and_of_traces():
    openai = {
        "id": "c1",
        "type": "function",
        "function": {"name": "search", "arguments": orjson.dumps(SEARCH["params"]).decode()},
    }
    traced = {"tool_use_id": "c1", "tool_name": "search", "input": SEARCH["params"]}
    for call_ in (SEARCH, openai, traced):
        for other in (SEARCH, openai, traced):
            assert judged(call_, [other]).value == 0.0


def test_the_output_and_the_history_may_be_json_text():
    text = orjson.dumps(SEARCH).decode()
    subject = Subject("row", "q1", orjson.dumps({"execution_history": [SEARCH]}).decode(), text)
    assert WasRepeated().score(subject).value == 0.0
    assert judged(text, orjson.dumps([SEARCH]).decode()).value == 0.0


def test_the_history_stands_in_the_input_or_else_in_the_context():
    context = {"execution_history": [SEARCH]}
    assert WasRepeated().score(Subject("row", "q1", "find it", SEARCH, context=context)).value == 0.0
    assert WasRepeated().score(Subject("row", "q1", {"execution_history": []}, SEARCH, context=context)).value == 1.0


def test_a_field_of_the_output_is_the_call():
    subject = Subject("row", "q1", {"execution_history": [SEARCH]}, {"steps": [SEARCH]})
    assert (
        WasRepeated(field="steps.0").score(subject).value == WasRepeated(field="/steps/0").score(subject).value == 0.0
    )
    missing = WasRepeated(field="step").score(subject)
    assert (missing.value, missing.details) == (
        1.0,
        "the field 'step' of the output is missing, so that it repeats none",
    )


@pytest.mark.parametrize(
    "output", [None, "", "I will search now.", 7, {"answer": 1}, [], b"\xff", object(), "[" * 100_000]
)
def test_what_is_no_call_repeats_none(output):
    score = judged(output, [SEARCH])
    assert score.value == 1.0
    assert "so that it repeats none" in score.details


def test_without_a_history_nothing_was_called_before():
    assert judged(SEARCH).value == 1.0


def test_of_a_tool_cycle_without_its_history_nothing_can_be_said():
    answer = WasRepeated().score(Subject("tool_cycle", "c1", {"tool_name": "search", "input": {}}))
    assert isinstance(answer, Failure)
    assert answer.kind == "missing_input"
    assert "history: true" in answer.message


@pytest.mark.parametrize("history", ["no list", {"tool": "t"}, 7, None])
def test_a_history_that_is_no_list_is_a_failure(history):
    answer = WasRepeated().score(Subject("row", "q1", {"execution_history": history}, SEARCH))
    assert isinstance(answer, Failure)
    assert "execution_history" in answer.message


def test_what_is_no_call_in_the_history_is_repeated_by_none():
    assert judged(SEARCH, [None, 3, "text", {}, [SEARCH], {"params": SEARCH["params"]}]).value == 1.0


def nested(levels):
    nested_value: object = 1
    for _ in range(levels):
        nested_value = {"a": nested_value}
    return nested_value


@pytest.mark.parametrize("params", [nested(300), nested(100_000), {"a": b"\xff"}, {"a": "\ud800"}, {1: 2}, {"a": {1}}])
def test_params_that_are_no_json_are_a_failure_that_names_the_step(params):
    bad = {"tool": "t", "params": params}
    step_, earlier = judged(bad, [SEARCH]), judged(SEARCH, [SEARCH | {"tool": "x"}, bad])
    assert isinstance(step_, Failure)
    assert "'q1': call  is not" not in step_.message
    assert "the call is not JSON that can be compared" in step_.message
    assert isinstance(earlier, Failure)
    assert "step 2 of the execution_history is not JSON that can be compared" in earlier.message


@pytest.mark.slow
def test_a_hundred_megabytes_are_compared():
    text = "x" * 100_000_000
    assert value({"a": text}, {"a": text}) == 0.0
    score = judged({"tool": text, "params": {}}, [{"tool": text, "params": {}}], similarity=0.5)
    assert score.value == 0.0
    assert len(score.details) < 300
    assert value({"a": text}, {"a": text + "y"}, similarity=0.5) == 1.0  # too long to say how near


# Nearness


def test_nearness_is_one_less_the_share_of_letters_that_differ():
    before = {"query": "flights to Rome"}
    score = judged(
        {"tool": "t", "params": {"query": "flights to Nome"}}, [{"tool": "t", "params": before}], similarity=0.9
    )
    assert score.value == 0.0
    assert score.signals["similarity"] == pytest.approx(1 - 1 / len(orjson.dumps(before)))
    assert score.details == "t repeats nearly (0.96) step 1 of 1"
    assert value({"query": "flights to Nome"}, before) == 1.0
    assert value({"query": "trains to Nice"}, before, similarity=0.9) == 1.0


def test_the_likest_earlier_call_is_named_and_another_tool_is_never_near():
    near, nearer = {"q": "abcdefghXX"}, {"q": "abcdefghiX"}
    history = [
        {"tool": "t", "params": near},
        {"tool": "u", "params": {"q": "abcdefghij"}},
        {"tool": "t", "params": nearer},
    ]
    score = judged({"tool": "t", "params": {"q": "abcdefghij"}}, history, similarity=0.5)
    assert score.signals["repeats"] == "step 3"
    assert judged({"tool": "v", "params": {"q": "abcdefghij"}}, history, similarity=0.01).value == 1.0


def test_nearness_looks_at_each_step_of_a_history_once():
    history = [{"tool": "t", "params": {"q": f"city {number * 7919 % 10_000}"}} for number in range(5_000)]
    started = time.process_time()
    assert judged({"tool": "t", "params": {"q": "nothing like them"}}, history, similarity=0.9).value == 1.0
    assert time.process_time() - started < 1.0  # each against all before it would take several


def test_the_first_of_the_likest_steps_counts():
    near, nearer = (f"{'x' * 10_000}{end}" for end in ("ab", "a"))
    texts = [near] * 60 + [nearer, near, nearer]  # so long that they are not compared in one go
    history = [{"tool": "t", "params": [text, f"{number:02}"]} for number, text in enumerate(texts)]
    score = judged({"tool": "t", "params": ["x" * 10_000, "--"]}, history, similarity=0.9)
    assert score.signals["repeats"] == "step 61"


@pytest.mark.parametrize("similarity", [0.0, -1.0, 1.01, math.nan])
def test_a_similarity_outside_of_its_range_is_refused(similarity):
    with pytest.raises(ConfigError, match="similarity is"):
        WasRepeated(similarity=similarity)


def test_without_rapidfuzz_nearness_is_refused_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(ConfigError, match=r"dicast\[similarity\]"):
        WasRepeated(similarity=0.9)
    assert WasRepeated().similarity == 1.0


# Many calls


def test_of_several_calls_the_share_that_is_new_counts_and_each_repeat_is_named():
    score = judged([SEARCH, {"tool": "book"}, SEARCH, {"tool": "book"}])
    assert score.value == 0.5
    assert score.details == "2 of 4 calls were made before; call 3: search repeats call 1"
    assert [(call_["call"], call_["repeats"]) for call_ in score.signals["repeated"]] == [(3, "call 1"), (4, "call 2")]
    assert judged([SEARCH, {"tool": "book"}], [SEARCH]).signals["repeated"][0]["repeats"] == "step 1"


def called(id, params, **fields):
    return TraceEvent("tool.called", {"tool_use_id": id, "tool_name": "search", "input": params, **fields})


def test_a_session_is_judged_step_by_step():
    events = (
        called("u1", {"n": 1}),
        TraceEvent("tool.completed", {"tool_use_id": "u1"}),
        called("u2", {"n": 2}),
        called("u3", {"n": 1.0}),
    )
    score = WasRepeated().score(Subject("session", "s", events=events))
    assert score.value == pytest.approx(2 / 3)
    assert score.signals["repeated"] == [{"call": "u3", "tool": "search", "repeats": "call u1", "similarity": 1.0}]


def test_a_turn_without_calls_repeats_none():
    score = WasRepeated().score(Subject("turn", "t", events=(TraceEvent("turn.completed", {}),)))
    assert (score.value, score.details) == (1.0, "there are no tool calls")


def test_a_tool_cycle_is_the_call_in_its_input():
    cycle = Subject("tool_cycle", "u2", {"tool_name": "search", "input": {"n": 1}}, '{"tool": "x"}')
    history = [{"tool_name": "search", "input": {"n": 1.0}}]
    assert (
        WasRepeated()
        .score(Subject("tool_cycle", "u2", cycle.input, None, context={"execution_history": history}))
        .value
        == 0.0
    )
    assert isinstance(WasRepeated().score(cycle), Failure)


def test_calls_recorded_without_their_input_are_compared_by_its_hash():
    hashed = {"tool_name": "search", "input_hash": "6c1f"}
    events = (TraceEvent("tool.called", {"tool_use_id": "u2", **hashed}),)
    cycle = Subject("tool_cycle", "u2", {"tool_name": "search", "input": None}, events=events)

    def scored(*history):
        context = {"execution_history": list(history)}
        return WasRepeated().score(Subject("tool_cycle", "u2", cycle.input, context=context, events=events)).value

    assert scored(hashed) == 0.0
    assert scored(hashed | {"input_hash": "aaaa"}) == scored({"tool_name": "search", "input": None}) == 1.0


# In general

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(), x, max_size=4),
    max_leaves=10,
)


def is_same(first, other) -> bool:
    """Return True if two JSON values are equal, compared without any text."""
    if isinstance(first, bool) or isinstance(other, bool) or first is None or other is None:
        return first is other
    if isinstance(first, str) and isinstance(other, str):
        return unicodedata.normalize("NFC", first) == unicodedata.normalize("NFC", other)
    if isinstance(first, dict) and isinstance(other, dict):
        left, right = (
            {unicodedata.normalize("NFC", key): item for key, item in value_.items()} for value_ in (first, other)
        )
        return left.keys() == right.keys() and all(is_same(item, right[key]) for key, item in left.items())
    if isinstance(first, list) and isinstance(other, list):
        return len(first) == len(other) and all(map(is_same, first, other))
    return isinstance(first, int | float) and isinstance(other, int | float) and first == other


def rewritten(value, draw):
    """The is_same value in another form."""
    if isinstance(value, dict):
        return {rewritten(key, draw): rewritten(value[key], draw) for key in draw(st.permutations(list(value)))}
    if isinstance(value, list):
        return [rewritten(item, draw) for item in value]
    if isinstance(value, str):
        return unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD"])), value)
    if type(value) in (int, float) and value == int(value) and abs(value) < 2**53:
        return draw(st.sampled_from([int, float]))(value)
    return value


@given(st.data(), JSON)
def test_a_value_in_another_form_is_the_same(data, params):
    other = rewritten(params, data.draw)
    if is_same(params, other):  # not where two keys became one
        assert value(params, other) == value(other, params) == 0.0


@given(JSON, JSON)
def test_two_values_are_the_same_where_they_are_equal(left, other):
    assert value(left, other) == value(other, left) == (0.0 if is_same(left, other) else 1.0)


@given(JSON, JSON, st.floats(0.05, 1.0))
def test_nearness_is_symmetric_and_lets_every_equal_call_count(left, other, similarity):
    assert value(left, other, similarity=similarity) == value(other, left, similarity=similarity)
    assert value(left, left, similarity=similarity) == 0.0


@given(
    st.lists(
        st.builds(
            lambda t, p: {"tool": t, "params": p}, st.sampled_from("ab"), st.sampled_from([0, 1, 1.0, True, "1"])
        ),
        max_size=8,
    )
)
def test_a_list_of_calls_scores_what_its_steps_score_one_by_one(calls):
    if calls:
        steps = [judged(call, calls[:place]).value for place, call in enumerate(calls)]
        assert judged(calls).value == pytest.approx(sum(steps) / len(steps))


@given(JSON, JSON)
def test_anything_gets_a_score_or_a_failure(output, history):
    for metric in (WasRepeated(), WasRepeated(similarity=0.5), WasRepeated(field="a.0")):
        answer = metric.score(Subject("row", "q1", {"execution_history": history}, output))
        assert isinstance(answer, Failure) or 0.0 <= answer.value <= 1.0


def test_the_metric_is_a_picklable_value_of_tier_proxy():
    assert pickle.loads(pickle.dumps(WasRepeated(similarity=0.9))) == WasRepeated(similarity=0.9)
    assert WasRepeated.tier == "proxy"
