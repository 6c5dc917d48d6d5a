from __future__ import annotations

import copy
import importlib.resources
import pickle

import attrs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judge, Rubric, Subject, TraceEvent
from dicast_heuristic import Turn

TEXT = importlib.resources.files("dicast_rubrics").joinpath("turn-heuristic-v1.yaml").read_text(encoding="utf-8")
DATA = yaml.safe_load(TEXT)
RUBRIC = Rubric(DATA["id"], DATA["version"], TEXT, DATA)
JUDGE = Turn(RUBRIC)


def completed(calls=0, stop="end_turn", **texts):
    payload = {"stop_reason": stop, "tool_call_count": calls, "signals_extra": texts}
    return TraceEvent("turn.completed", payload)


def user_says(text):
    return completed(final_response_text=text)


def event(type, **payload):
    return TraceEvent(type, payload)


def judged(*events):
    judgment = JUDGE.judge(Subject("turn", "t", events=events), ())
    return round(judgment.score, 6), judgment.confidence


def flags(*events):
    return JUDGE.judge(Subject("turn", "t", events=events), ()).signals["flags_negative"]


BAD = (
    completed(21, "tool_use"),
    event("llm.call_failed"),
    event("tool.failed"),
    event("tool.completed", success=False),
    event("llm.call_completed", stop_reason="max_tokens"),
)


def test_clean_turn_is_certainly_good():
    assert judged(completed(final_response_text="done"), event("tool.completed", success=True)) == (1.0, 0.9)


@pytest.mark.parametrize(
    ("events", "score", "confidence", "flag"),
    [
        ([completed(), event("tool.failed")], 0.833333, 0.55, "tool_failed"),
        ([completed(), event("tool.completed", success=False)], 0.666667, 0.55, "tool_returned_failure"),
        ([completed(), event("llm.call_failed")], 0.833333, 0.55, "llm_call_failed"),
        ([completed(), event("llm.call_completed", stop_reason="max_tokens")], 0.9, 0.55, "max_tokens_hit"),
        ([completed(21)], 0.933333, 0.55, "tool_cycle_count_excessive"),
        ([completed(stop="tool_use")], 0.833333, 0.55, "stop_reason_unclean"),
        ([user_says(" \n ")], 0.4, 0.55, "empty_assistant_response"),
        ([user_says(None)], 0.4, 0.55, "empty_assistant_response"),
        ([user_says("I cannot help with that request")], 0.5, 0.55, "assistant_refusal_detected"),
    ],
)
def test_one_bad_sign_lowers_score_and_confidence(events, score, confidence, flag):
    assert judged(*events) == (score, confidence)
    assert flags(*events) == [flag]


def unfinished(reason, *events, stop="error", **texts):
    ended = completed(stop=stop, **texts)
    return (*events, TraceEvent("turn.completed", {**ended.payload, "ended_by": reason}))


def test_a_turn_that_ends_with_a_failed_call_or_a_stop_does_not_pass():
    failed = unfinished("model_failure", event("llm.call_failed"), final_response_text="API Error: 529")
    assert (judged(*failed), flags(*failed)[-1]) == ((0.266667, 0.35), "ended_by_model_failure")
    stopped = unfinished("interruption", stop="interrupted", final_response_text="I start.")
    assert (judged(*stopped), flags(*stopped)[-1]) == ((0.333333, 0.35), "ended_by_interruption")


@given(
    st.sampled_from(["model_failure", "interruption"]), st.lists(st.sampled_from(["tool.called", "llm.call_completed"]))
)
def test_no_turn_that_did_not_end_reaches_one_half_without_a_thumb_up(reason, types):
    events = unfinished(reason, *(event(type_) for type_ in types), stop="end_turn", final_response_text="done")
    assert judged(*events)[0] < 0.5
    subject = Subject("turn", "t", events=(*events, event("feedback.explicit", rating="thumbs_up", scope="turn")))
    assert JUDGE.judge(subject).score >= 0.51


@pytest.mark.parametrize("reason", [None, "end_turn", 1, ["interruption"]])
def test_an_unknown_reason_for_the_end_has_no_factor(reason):
    assert judged(*unfinished(reason, stop="end_turn", final_response_text="done")) == (1.0, 0.9)


def test_a_rubric_may_have_its_own_factors_for_the_end():
    data = DATA | {"unfinished": {"model_failure": 1.0}}
    judge = Turn(Rubric("mine", "1", yaml.safe_dump(data), data))
    scores = [
        round(judge.judge(Subject("turn", "t", events=unfinished(reason, final_response_text="x"))).score, 6)
        for reason in ("model_failure", "interruption")
    ]
    assert scores == [0.833333, 0.333333]


def test_twenty_tool_calls_are_reasonable():
    assert judged(completed(20)) == (1.0, 0.9)


def test_all_six_bad_signs_are_zero():
    assert judged(*BAD) == (0.0, 0.35)
    assert len(flags(*BAD)) == 6


def test_two_bad_signs_have_low_confidence():
    assert judged(completed(stop="tool_use"), event("tool.failed")) == (0.666667, 0.35)


def test_missing_text_is_no_penalty():
    assert judged(completed()) == (1.0, 0.9)
    assert judged(TraceEvent("turn.completed", {"stop_reason": "end_turn", "tool_call_count": 0})) == (1.0, 0.9)


def test_assistant_response_text_is_the_same_key():
    assert judged(completed(assistant_response_text="I refuse to")) == (0.5, 0.55)
    assert judged(completed(assistant_response_text="I refuse to", final_response_text="sure")) == (1.0, 0.9)


@pytest.mark.parametrize("nothing", [None, "", " \n "])
def test_nothing_under_one_key_does_not_hide_a_text_under_the_other(nothing):
    assert judged(completed(final_response_text=nothing, assistant_response_text="done")) == (1.0, 0.9)
    assert flags(completed(final_response_text=nothing, assistant_response_text="I refuse to")) == [
        "assistant_refusal_detected"
    ]
    assert judged(completed(final_response_text="done", assistant_response_text=nothing)) == (1.0, 0.9)
    assert flags(completed(final_response_text=None, assistant_response_text=nothing)) == ["empty_assistant_response"]
    assert flags(completed(final_response_text=nothing, assistant_response_text=None)) == ["empty_assistant_response"]


def test_refusal_is_looked_for_in_the_first_160_characters():
    assert judged(user_says("x" * 160 + "I refuse to")) == (1.0, 0.9)
    assert judged(user_says("x" * 149 + "I refuse to")) == (0.5, 0.55)
    assert judged(user_says("x" * 150 + "I refuse to")) == (1.0, 0.9)
    assert judged(user_says(" " * 500 + "I REFUSE TO")) == (0.5, 0.55)


def test_runs_of_blanks_count_like_one_and_the_limit_is_on_the_text_as_it_is():
    assert judged(user_says("I \n\t refuse\u00a0to")) == judged(user_says("I\u202f\u00a0refuse\nto")) == (0.5, 0.55)
    assert judged(user_says(" \n" * 200 + "I refuse to")) == (0.5, 0.55)
    assert judged(user_says("x" + " " * 148 + "I refuse to")) == (0.5, 0.55)
    assert judged(user_says("x" + " " * 150 + "I refuse to")) == (1.0, 0.9)
    assert judged(user_says("Irefuse to")) == (1.0, 0.9)


@pytest.mark.parametrize("phrase", DATA["refusal"]["phrases"])
def test_every_refusal_phrase_counts_in_any_apostrophe(phrase):
    written = [phrase.replace("'", apostrophe) for apostrophe in "\u2018\u2019\u02bc"]
    for text in (phrase, phrase.upper(), f"Well, {phrase} it.", phrase.replace(" ", "\u00a0 "), *written):
        assert flags(user_says(text)) == ["assistant_refusal_detected"]


def test_unknown_success_is_no_failure():
    assert judged(completed(), event("tool.completed", success=None), event("tool.completed")) == (1.0, 0.9)


def test_turn_that_was_not_completed_is_unclean_and_has_no_stop_reason():
    judgment = JUDGE.judge(Subject("turn", "t", events=(event("tool.called"),)), ())
    assert round(judgment.score, 6) == 0.833333
    assert judgment.signals == {
        "flags": [name for name in DATA["weights"] if name != "stop_reason_clean"],
        "flags_negative": ["stop_reason_unclean"],
        "tool_call_count": 0,
    }


def test_signals_name_what_was_seen():
    judgment = JUDGE.judge(Subject("turn", "t", events=(completed(3),)), ())
    assert judgment.signals == {
        "flags": list(DATA["weights"]),
        "flags_negative": [],
        "tool_call_count": 3,
        "stop_reason": "end_turn",
    }
    assert (judgment.judge_kind, judgment.judge_model, judgment.cost) == ("heuristic", None, Cost.zero())
    assert judgment.rubric is RUBRIC


def test_turn_without_events_is_no_subject():
    failure = JUDGE.judge(Subject("turn", "t7"), ())
    assert isinstance(failure, Failure)
    assert failure.kind == "subject_not_found"
    assert "t7" in failure.message


def test_judge_is_a_component():
    assert isinstance(JUDGE, Judge)
    assert JUDGE.accepts == ("turn",)
    assert (JUDGE.lookahead_messages, JUDGE.lookahead_hours) == (5, 24)
    assert pickle.loads(pickle.dumps(JUDGE)) == JUDGE
    assert attrs.evolve(JUDGE, lookahead_messages=3) != JUDGE


def changed(**changes):
    data = copy.deepcopy(DATA)
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = data
        for parent in parents:
            inner = inner[parent]
        if value is None:
            del inner[last]
        else:
            inner[last] = value
    return attrs.evolve(RUBRIC, data=data)


def test_all_figures_come_from_the_rubric():
    judge = Turn(
        changed(
            weights__no_tool_failure=1,
            max_tool_calls=1,
            clean_stop_reasons=["stop"],
            penalties__assistant_refusal_detected=0.1,
            refusal__phrases=["No Way"],
            refusal__window=6,
            confidence=[{"value": 0.2}],
        )
    )
    judgment = judge.judge(Subject("turn", "t", events=(completed(2, "stop", final_response_text="no way!"),)), ())
    assert judgment.signals["flags_negative"] == ["tool_cycle_count_excessive", "assistant_refusal_detected"]
    assert judgment.score == pytest.approx((2.25 - 0.1) / 2.25 * 0.1)
    assert judgment.confidence == 0.2


@pytest.mark.parametrize(
    ("changes", "path", "hint"),
    [
        ({"weights__no_tool_failur": 1}, "weights.no_tool_failur", "no_tool_failure"),
        ({"weights__no_tool_failure": None}, "weights.no_tool_failure", None),
        ({"weights__no_tool_failure": -1}, "weights.no_tool_failure", None),
        ({"weights__no_tool_failure": float("nan")}, "weights.no_tool_failure", None),
        ({"weights__no_tool_failure": float("inf")}, "weights.no_tool_failure", None),
        ({"weights__no_tool_failure": True}, "weights.no_tool_failure", None),
        ({"weights": [1]}, "weights", None),
        ({"penalties__empty_assistant_response": 1.5}, "penalties.empty_assistant_response", None),
        ({"refusal__phrases": [""]}, "refusal.phrases", None),
        ({"refusal__window": 1.5}, "refusal.window", None),
        ({"max_tool_calls": "20"}, "max_tool_calls", None),
        ({"clean_stop_reasons": "end_turn"}, "clean_stop_reasons", None),
        ({"confidence": []}, "confidence", None),
        ({"confidence": [{"value": 2}]}, "confidence[0].value", None),
        ({"confidence": [{"value": 1, "max_negative": 3}]}, "confidence[0]", None),
        ({"confidense": []}, "confidense", "confidence"),
    ],
)
def test_malformed_rubric_is_refused_with_its_place(changes, path, hint):
    with pytest.raises(ConfigError) as caught:
        Turn(changed(**changes))
    assert (path, hint) in [(problem.path, problem.hint) for problem in caught.value.problems]


def test_everything_wrong_with_a_rubric_is_said_at_once():
    with pytest.raises(ConfigError) as caught:
        Turn(changed(max_tool_calls=-1, refusal__window=None, weights__no_llm_failure="x"))
    assert {problem.path for problem in caught.value.problems} == {
        "max_tool_calls",
        "refusal.window",
        "weights.no_llm_failure",
    }


def test_rubric_without_weight_is_refused():
    with pytest.raises(ConfigError, match="weights are all 0"):
        Turn(changed(weights=dict.fromkeys(DATA["weights"], 0)))


@pytest.mark.parametrize("rubric", ["turn-heuristic-v1", Rubric("a", "1", "text")])
def test_what_has_no_figures_is_no_rubric(rubric):
    with pytest.raises(ConfigError, match="rubric"):
        Turn(rubric)


def test_lookahead_cannot_be_negative():
    with pytest.raises(ConfigError, match="lookahead_messages"):
        Turn(RUBRIC, lookahead_messages=-1)


events = st.lists(
    st.one_of(
        st.builds(completed, st.integers(0, 40), st.sampled_from(["end_turn", "tool_use"])),
        st.builds(user_says, st.none() | st.text(max_size=20) | st.sampled_from(DATA["refusal"]["phrases"])),
        st.sampled_from(BAD),
    ),
    min_size=1,
).map(tuple)


@given(events)
def test_score_is_bounded_and_the_same_again(events):
    subject = Subject("turn", "t", events=events)
    judgment = JUDGE.judge(subject, ())
    assert 0 <= judgment.score <= 1
    assert judgment == JUDGE.judge(subject, ())


@given(events)
def test_failed_tool_never_raises_the_score(events):
    before, after = (
        JUDGE.judge(Subject("turn", "t", events=judge_), ()) for judge_ in (events, (*events, event("tool.failed")))
    )
    assert after.score <= before.score
    assert after.confidence <= before.confidence
