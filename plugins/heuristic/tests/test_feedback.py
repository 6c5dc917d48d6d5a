"""Users' feedback on a turn, and its effect on the score."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Subject, TraceEvent
from dicast_heuristic import Turn

JUDGE = Turn(dicast.rubric("turn-heuristic-v1"))
CLEAN = (TraceEvent("turn.completed", {"stop_reason": "end_turn", "tool_call_count": 0}),)
AWFUL = (
    TraceEvent(
        "turn.completed", {"stop_reason": "x", "tool_call_count": 21, "signals_extra": {"final_response_text": ""}}
    ),
    TraceEvent("llm.call_failed"),
    TraceEvent("tool.failed"),
    TraceEvent("tool.completed", {"success": False}),
    TraceEvent("llm.call_completed", {"stop_reason": "max_tokens"}),
)
REFUSES = (
    TraceEvent("turn.completed", {"stop_reason": "end_turn", "signals_extra": {"final_response_text": "I refuse to"}}),
)
LIFECYCLES = [CLEAN, AWFUL, REFUSES]


def thumb(direction, about="t", scope="turn", **event):
    payload = {"scope": scope, "subject_turn_id": about, "rating": f"thumbs_{direction}"}
    return TraceEvent("feedback.explicit", payload, **event)


def implicit(what, about="t"):
    return TraceEvent("feedback.implicit", {"type": what, "subject_turn_id": about})


UP, DOWN = thumb("up"), thumb("down")
IMPLICIT = [implicit("retry"), implicit("manual_swap"), implicit("edit_followup")]
WITHOUT_WORDS = [combination for size in (1, 2, 3) for combination in itertools.combinations(IMPLICIT, size)]


def judge(*events, after=None, judge=JUDGE):
    context = {} if after is None else {"feedback_after_messages": after}
    return judge.judge(Subject("turn", "t", events=events, context=context), ())


def score(*events, **fields):
    return judge(*events, **fields).score


@pytest.mark.parametrize("lifecycle", LIFECYCLES)
def test_a_thumb_decides_the_side_whatever_the_rest_says(lifecycle):
    for rest in [(), *WITHOUT_WORDS]:
        assert score(*lifecycle, *rest, DOWN) < 0.5 < score(*lifecycle, *rest, UP)


@pytest.mark.parametrize("lifecycle", LIFECYCLES)
def test_what_a_user_does_next_brings_a_turn_without_a_thumb_below_half(lifecycle):
    for verdict_ in WITHOUT_WORDS:
        assert score(*lifecycle, *verdict_) < 0.5
        assert score(*lifecycle, *verdict_) <= score(*lifecycle)


def test_figures_of_the_rubric():
    assert score(*CLEAN, UP) == 1.0
    assert score(*CLEAN, DOWN) == pytest.approx(1.5 / 9.5)
    assert score(*CLEAN, IMPLICIT[0]) == pytest.approx(1.5 / 3.5)
    assert score(*CLEAN, *IMPLICIT) == pytest.approx(1.5 / 7.5)
    assert score(*CLEAN, *IMPLICIT, UP) == pytest.approx(9.5 / 15.5)
    assert score(*AWFUL, DOWN) == 0.0


def test_thumb_is_held_after_the_penalty():
    assert score(*REFUSES) == 0.5
    assert score(*REFUSES, UP) == 0.51
    assert score(*REFUSES, DOWN) == pytest.approx(1.5 / 9.5 * 0.5)


def test_the_later_thumb_counts():
    assert score(*CLEAN, UP, DOWN) == score(*CLEAN, DOWN)
    assert score(*AWFUL, DOWN, UP) == score(*AWFUL, UP)


def test_the_later_thumb_is_later_by_its_time_however_it_was_written_down():
    late_down = thumb("down", time="2026-03-01T10:05:00+01:00")
    early_up = thumb("up", time="2026-03-01T09:01:00")  # UTC, as all without an offset
    assert score(*CLEAN, early_up, late_down) == score(*CLEAN, late_down, early_up) == score(*CLEAN, DOWN)
    assert score(*CLEAN, thumb("up", time="2026-03-01T09:00:00Z"), thumb("down")) < 0.5


@pytest.mark.parametrize("other", [thumb("down", "t2"), thumb("down", scope="session"), thumb("down", None, turn_id="t2"),
                                   implicit("retry", "t2"), implicit("swooned")])  # fmt: skip
def test_feedback_about_something_else_does_not_count(other):
    assert judge(*CLEAN, other) == judge(*CLEAN)


@pytest.mark.parametrize("turn_", [thumb("down", None), thumb("down", None, turn_id="t"), thumb("down", scope=None)])
def test_feedback_that_names_no_turn_is_about_the_one_it_was_given_in(turn_):
    assert judge(*CLEAN, turn_) == judge(*CLEAN, DOWN)


def test_turn_named_by_a_number_is_the_same():
    subject = Subject("turn", "7", events=(*CLEAN, thumb("down", 7)))
    assert JUDGE.judge(subject, ()).score < 0.5


def test_flags_name_the_feedback():
    lifecycle = judge(*CLEAN).signals["flags"]
    assert len(lifecycle) == 6  # without any feedback nothing is said of it
    up = judge(*CLEAN, IMPLICIT[0], UP)
    assert up.signals["flags"] == [*lifecycle, "no_manual_swap_after", "no_edit_followup", "explicit_thumbs_up"]
    assert up.signals["flags_negative"] == ["retry_implicit"]
    down = judge(*CLEAN, *IMPLICIT, DOWN)
    assert down.signals["flags_negative"] == [
        "retry_implicit", "manual_swap_after", "edit_followup", "explicit_thumbs_down"
    ]  # fmt: skip
    assert (up.confidence, down.confidence) == (0.55, 0.35)
    assert judge(*CLEAN, UP).confidence == 0.9


def test_retry_counts_within_the_next_five_messages():
    retry, swap, edit = IMPLICIT
    assert score(*CLEAN, retry, after=[5]) < 0.5
    assert judge(*CLEAN, retry, after=[6]) == judge(*CLEAN)
    assert score(*CLEAN, swap, after=[6]) < 0.5
    assert score(*CLEAN, edit, after=[60]) < 0.5
    assert judge(*CLEAN, retry, swap, after=[6, 6]) == judge(*CLEAN, swap)
    assert score(*CLEAN, retry, after=[6], judge=Turn(JUDGE.rubric, lookahead_messages=6)) < 0.5


def test_thumb_counts_however_late():
    assert score(*CLEAN, DOWN, after=[100]) < 0.5


def test_figures_of_another_rubric_keep_their_side(changed):
    weak = changed("turn-heuristic-v1", feedback__weights=dict.fromkeys(JUDGE.rubric.data["feedback"]["weights"], 0.0))
    judge = Turn(weak)
    assert score(*CLEAN, DOWN, judge=judge) == 0.49
    assert score(*AWFUL, UP, judge=judge) == 0.51
    assert score(*CLEAN, IMPLICIT[0], judge=judge) == 0.49


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"feedback": None}, "feedback"),
        ({"feedback__weights__no_retry_implicit": -1}, "feedback.weights.no_retry_implicit"),
        ({"feedback__bounds__explicit_thumbs_up": 0.5}, "feedback.bounds.explicit_thumbs_up"),
        ({"feedback__bounds__explicit_thumbs_up": 1.1}, "feedback.bounds.explicit_thumbs_up"),
        ({"feedback__bounds__explicit_thumbs_down": 0.5}, "feedback.bounds.explicit_thumbs_down"),
        ({"feedback__bounds__implicit": True}, "feedback.bounds.implicit"),
        ({"feedback__bounds__implict": 0.4}, "feedback.bounds.implict"),
    ],
)
def test_wrong_figures_are_refused_with_their_place(changed, changes, path):
    with pytest.raises(ConfigError) as caught:
        Turn(changed("turn-heuristic-v1", **changes))
    assert path in [problem.path for problem in caught.value.problems]


FEEDBACK = st.lists(st.sampled_from([UP, DOWN, *IMPLICIT, thumb("up", "t2")]), max_size=6)


@given(st.sampled_from(LIFECYCLES), FEEDBACK, st.lists(st.integers(0, 9), max_size=6))
def test_score_is_bounded_ordered_and_the_same_again(lifecycle, feedback, after):
    verdict_ = judge(*lifecycle, *feedback, after=after)
    assert 0 <= verdict_.score <= 1
    assert verdict_ == judge(*lifecycle, *feedback, after=after)
    silent = [event for event in feedback if event.type == "feedback.implicit"]
    bounds = (score(*lifecycle, *silent, DOWN), score(*lifecycle, *silent, UP))
    assert bounds[0] <= score(*lifecycle, *silent) <= bounds[1]
