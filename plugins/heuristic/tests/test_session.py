from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dicast
from dicast import ConfigError, Failure, Subject, TraceEvent
from dicast_heuristic import Session

ID = "session-aggregate-v1"
JUDGE = Session(dicast.rubric(ID))


def session_end(disposition="completed"):
    return TraceEvent("session.ended", {"disposition": disposition})


def thumb(direction, scope="session", about=None):
    return TraceEvent("feedback.explicit", {"scope": scope, "rating": f"thumbs_{direction}", "subject_turn_id": about})


SWAP = TraceEvent("feedback.implicit", {"type": "manual_swap", "subject_turn_id": "t0"})


def routed(model):
    return TraceEvent("route.decided", {"chosen_model": model})


@pytest.fixture
def judge(verdict):
    def ask(scores, *events, judge=JUDGE, **fields):
        turns = [verdict("turn", f"t{place}", score, **fields) for place, score in enumerate(scores)]
        return judge.judge(Subject("session", "s", events=events), turns)

    return ask


@pytest.mark.parametrize(
    ("scores", "disposition", "score", "confidence"),
    [
        ([0.9, 0.8, 1.0], "completed", 0.89, 0.7),
        ([0.4], "abandoned", 0.32, 0.7),
        ([], "completed", 0.6, 0.4),
        ([], "error", 0.4, 0.4),
        ([1.0], "completed", 1.0, 0.7),
    ],
)
def test_mean_minimum_and_end_make_the_score(judge, scores, disposition, score, confidence):
    verdict_ = judge(scores, session_end(disposition))
    assert (round(verdict_.score, 12), verdict_.confidence) == (score, confidence)


def test_signals_name_the_turns(judge):
    verdict_ = judge([0.9, 0.8], session_end("abandoned"))
    assert verdict_.signals == {
        "flags": [],
        "flags_negative": ["disposition_abandoned"],
        "child_eval_ids": ["t0-turns", "t1-turns"],
        "mean_turn_score": pytest.approx(0.85),
        "min_turn_score": 0.8,
        "turn_count": 2,
        "disposition": "abandoned",
        "turns_with_explicit_thumbs_down": 0,
        "distinct_models_swapped": 0,
    }
    assert (verdict_.judge_kind, verdict_.rubric) == ("heuristic", JUDGE.rubric)


def test_session_whose_end_is_not_known_was_not_completed(judge):
    verdict_ = judge([1.0], TraceEvent("turn.completed"))
    assert (round(verdict_.score, 12), verdict_.signals["disposition"], verdict_.signals["flags_negative"]) == (
        0.8,
        None,
        [],
    )


def test_newest_verdict_on_each_turn_counts_in_the_order_of_the_turns(verdict):
    turns = [
        verdict("turn", "t1", 0.1, eval_id="1"),
        verdict("turn", "t2", 0.6, eval_id="2"),
        verdict("turn", "t1", 0.8, eval_id="4"),
        verdict("turn", "t1", 0.2, eval_id="3"),
        verdict("tool_cycle", "u", 0.0, eval_id="5"),
    ]
    verdict_ = JUDGE.judge(Subject("session", "s", events=(session_end(),)), turns)
    assert verdict_.signals["child_eval_ids"] == ["4", "2"]
    assert verdict_.signals["mean_turn_score"] == pytest.approx(0.7)


@pytest.mark.parametrize(("label", "mean"), [("a", 0.2), ("b", 0.6), (None, 0.6)])
def test_verdicts_of_one_judge_count(verdict, label, mean):
    turns = [verdict("turn", "t1", 0.6, "b"), verdict("turn", "t2", 0.2, "a"), verdict("turn", "t2", 0.6, "b")]
    verdict_ = Session(JUDGE.rubric, label).judge(Subject("session", "s", events=(session_end(),)), turns)
    assert verdict_.signals["mean_turn_score"] == mean


def test_label_that_no_turn_has_is_a_failure_that_names_those_there_are(judge):
    verdict_ = judge([0.5], session_end(), judge=Session(JUDGE.rubric, "turn"))
    assert isinstance(verdict_, Failure)
    assert verdict_.kind == "missing_input"
    assert "'turn', did you mean 'turns'?" in verdict_.message


def test_session_without_anything_is_no_subject(judge):
    assert judge([]).kind == "subject_not_found"
    assert judge([0.5]).score == pytest.approx(0.4)


@pytest.mark.parametrize("scores", [[], [0.0], [1.0, 1.0], [0.3, 0.9]])
@pytest.mark.parametrize("disposition", ["completed", "error"])
def test_a_thumb_for_the_session_decides_the_side(judge, scores, disposition):
    end = session_end(disposition)
    plain, up, down = (judge(scores, end, *thumbs) for thumbs in ((), [thumb("up")], [thumb("down")]))
    assert down.score < 0.5 < up.score
    assert down.score <= plain.score <= up.score
    assert up.signals["flags"][-1] == "explicit_thumbs_up"
    assert down.signals["flags_negative"][-1] == "explicit_thumbs_down"
    assert judge(scores, end, thumb("up"), thumb("down")) == down
    assert down.confidence == plain.confidence


@pytest.mark.parametrize(
    ("bases", "basis"),
    [(["human", "truth", "model"], "heuristic"), (["truth", "proxy"], "proxy"), ([], "heuristic")],
)
def test_a_session_rests_on_a_heuristic_or_on_what_is_weaker_among_its_turns(verdict, bases, basis):
    turns = [verdict("turn", f"t{place}", 0.5, basis=basis_) for place, basis_ in enumerate(bases)]
    assert JUDGE.judge(Subject("session", "s", events=(session_end(),)), turns).basis == basis


def test_turns_whose_last_thumb_is_down_are_counted(judge):
    events = [
        thumb("down", "turn", "t1"),
        thumb("down", "turn", "t2"),
        thumb("up", "turn", "t1"),
        thumb("down", None, "t3"),
    ]
    verdict_ = judge([1.0], session_end(), *events)
    assert verdict_.signals["turns_with_explicit_thumbs_down"] == 2
    assert verdict_.score == judge([1.0], session_end()).score


@pytest.mark.parametrize(
    ("events", "swaps"),
    [
        ([routed("a"), routed("b")], 0),
        ([SWAP], 1),
        ([routed("a"), SWAP, routed("b"), routed("c")], 1),
        ([SWAP, routed("b"), SWAP, routed("c"), SWAP, routed("b")], 2),
        ([SWAP, SWAP], 1),
        ([TraceEvent("feedback.implicit", {"type": "retry"}), routed("b")], 0),
    ],
)
def test_models_that_were_swapped_are_counted_and_lower_the_score(judge, events, swaps):
    verdict_ = judge([1.0], session_end(), *events)
    assert verdict_.signals["distinct_models_swapped"] == swaps
    assert verdict_.score == pytest.approx(0.95**swaps)
    assert ("model_swapped" in verdict_.signals["flags_negative"]) is bool(swaps)


def test_rubric_may_weigh_turns_by_their_confidence(verdict, changed):
    turns = [verdict("turn", "t1", 1.0, confidence=0.9), verdict("turn", "t2", 0.0, confidence=0.1)]
    sure = Session(changed(ID, turn_weight="confidence"))
    assert sure.judge(Subject("session", "s", events=(session_end(),)), turns).signals[
        "mean_turn_score"
    ] == pytest.approx(0.9)
    none = [verdict("turn", "t1", 1.0, confidence=0.0), verdict("turn", "t2", 0.0, confidence=0.0)]
    assert sure.judge(Subject("session", "s", events=(session_end(),)), none).signals["mean_turn_score"] == 0.5


def test_all_figures_come_from_the_rubric(judge, changed):
    other = changed(
        ID,
        weights={"mean_turn_score": 1, "min_turn_score": 0, "disposition_completed": 1},
        no_turns=0.2,
        model_swap_factor=0.5,
        thumbs__weight=0,
        thumbs__bounds__explicit_thumbs_up=0.9,
        confidence={"with_turns": 0.8, "without_turns": 0.1},
    )
    verdict_ = [judge(scores, session_end(), *events, judge=Session(other)) for scores, events in
             [([0.5], [SWAP]), ([], []), ([0.5], [thumb("up")])]]  # fmt: skip
    assert [(judged_.score, judged_.confidence) for judged_ in verdict_] == [(0.375, 0.8), (0.6, 0.1), (0.9, 0.8)]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"weights__mean": 1}, "weights.mean"),
        ({"turn_weight": "length"}, "turn_weight"),
        ({"no_turns": 1.5}, "no_turns"),
        ({"thumbs__bounds__explicit_thumbs_down": 0.6}, "thumbs.bounds.explicit_thumbs_down"),
        ({"confidence__with_turns": None}, "confidence.with_turns"),
    ],
)
def test_wrong_figures_are_refused_with_their_place(changed, changes, path):
    with pytest.raises(ConfigError) as caught:
        Session(changed(ID, **changes))
    assert path in [problem.path for problem in caught.value.problems]


def test_rubric_without_weight_is_refused(changed):
    with pytest.raises(ConfigError, match="weights are all 0"):
        Session(changed(ID, weights=dict.fromkeys(JUDGE.rubric.data["weights"], 0)))


EVENTS = st.lists(
    st.sampled_from(
        [session_end(), session_end("abandoned"), thumb("up"), thumb("down"), SWAP, routed("a"), routed("b")]
    ),
    min_size=1,
)


@given(scores=st.lists(st.floats(0, 1), max_size=5), sure=st.floats(0, 1), weight=st.sampled_from(["equal", "confidence"]),
       events=EVENTS)  # fmt: skip
def test_score_is_bounded_and_the_same_again(verdict, changed, scores, sure, weight, events):
    turns = [verdict("turn", f"t{place}", score, confidence=sure) for place, score in enumerate(scores)]
    judge, subject = Session(changed(ID, turn_weight=weight)), Subject("session", "s", events=tuple(events))
    verdict_ = judge.judge(subject, turns)
    assert 0 <= verdict_.score <= 1
    if scores:
        assert min(scores) <= verdict_.signals["mean_turn_score"] <= max(scores)
    assert verdict_ == judge.judge(subject, turns)
