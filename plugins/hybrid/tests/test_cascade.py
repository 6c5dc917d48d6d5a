from __future__ import annotations

import asyncio

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Rubric, Subject, TraceEvent
from dicast.testing import FakeJudge, run_pipeline, sample
from dicast_hybrid import Cascade

TURN = Subject("turn", "t-1", "?", "!")
FLAGS = {"flags": ["stop_reason_clean"], "flags_negative": ["tool_failed"]}
CHEAP = Judgment(0.8, 0.55, "heuristic", signals=FLAGS, rubric=Rubric("turn-heuristic-v1", "1.1.0"))
COSTLY = Judgment(0.3, 0.9, "llm", "m-1", Cost("0.004"), {"rationale_hash": "ab"}, Rubric("turn-llm-v1", "1.0.0"))
DOWN = Failure("judge_call_failed", "HTTP 500", cost=Cost("0.001"))
CAPPED = Failure("throttled_no_heuristic", "no room", throttled_reason="session_cap")
SHARES = st.floats(0, 1)


def judged(*replies, threshold=0.7, subject=TURN, **options):
    """The outcome of a cascade over judges with these replies, and how often each was asked."""
    stages = tuple(FakeJudge(reply) for reply in replies)
    outcome = asyncio.run(Cascade(stages, threshold, **options).judge(subject, ()))
    return outcome, [len(stage.asked) for stage in stages]


def test_confident_verdict_is_kept_unchanged_and_nobody_else_asked():
    assert judged(CHEAP, COSTLY, threshold=0.5) == (CHEAP, [1, 0])


def test_confidence_equal_to_the_threshold_keeps():
    assert judged(CHEAP, COSTLY, threshold=0.55) == (CHEAP, [1, 0])


def test_doubtful_verdict_is_replaced_by_the_next_stage():
    outcome, calls = judged(CHEAP, COSTLY)
    assert calls == [1, 1]
    assert outcome == Judgment(
        0.3,
        0.9,
        "hybrid",
        "m-1",
        Cost("0.004"),
        {
            "rationale_hash": "ab",
            "heuristic_score": 0.8,
            "heuristic_confidence": 0.55,
            "heuristic_flags": ["stop_reason_clean"],
            "heuristic_flags_negative": ["tool_failed"],
            "escalated": True,
        },
        Rubric("turn-hybrid-v1", "1.0.0"),
        includes_replies=True,
    )


@pytest.mark.parametrize("kind", ["workload", "row", "session"])
def test_rubric_is_named_for_the_kind_of_subject(kind):
    outcome, _ = judged(CHEAP, COSTLY, subject=sample("!", kind=kind))
    assert outcome.rubric == Rubric(f"{kind}-hybrid-v1", "1.0.0")


def test_threshold_0_never_asks_a_later_stage():
    unsure = Judgment(0.1, 0.0, "heuristic")
    assert judged(unsure, COSTLY, threshold=0) == (unsure, [1, 0])


def test_threshold_1_asks_unless_the_first_is_fully_confident():
    sure = Judgment(0.1, 1.0, "heuristic")
    assert judged(sure, COSTLY, threshold=1) == (sure, [1, 0])
    assert judged(attrs.evolve(sure, confidence=0.999), COSTLY, threshold=1)[1] == [1, 1]


@pytest.mark.parametrize("kind", ["judge_output_invalid", "judge_call_failed", "timeout", "refused"])
def test_failed_escalation_leaves_the_last_good_verdict_and_says_why(kind):
    outcome, calls = judged(CHEAP, Failure(kind, "no", cost=Cost("0.001")))
    assert calls == [1, 1]
    assert outcome.judge_kind == "heuristic"
    assert (outcome.score, outcome.confidence, outcome.rubric) == (0.8, 0.55, CHEAP.rubric)
    assert outcome.signals["escalation_skipped"] == kind
    assert (outcome.signals["heuristic_score"], outcome.signals["heuristic_confidence"]) == (0.8, 0.55)
    assert outcome.signals["flags"] == CHEAP.signals["flags"]
    assert "escalated" not in outcome.signals
    assert outcome.cost == Cost("0.001")


@pytest.mark.parametrize("reason", ["session_cap", "daily_cap", "run_cap", "unknown_price"])
def test_capped_escalation_leaves_the_cheap_verdict_and_names_the_cap(reason):
    outcome, _ = judged(CHEAP, attrs.evolve(CAPPED, throttled_reason=reason))
    assert (outcome.judge_kind, outcome.score) == ("heuristic", 0.8)
    assert outcome.signals["throttled_reason"] == reason
    assert outcome.signals["escalation_skipped"] == "budget_exhausted"
    assert "escalated" not in outcome.signals


def test_stand_in_of_a_capped_stage_is_no_escalation():
    why = {"throttled_reason": "daily_cap", "escalation_skipped": "budget_exhausted"}
    outcome, _ = judged(CHEAP, Judgment(0.6, 0.4, "heuristic", signals=why))
    assert (outcome.judge_kind, outcome.score) == ("heuristic", 0.6)
    assert outcome.signals.items() >= why.items()
    assert "escalated" not in outcome.signals


def test_first_stage_that_fails_is_passed_over():
    outcome, _ = judged(DOWN, COSTLY)
    assert (outcome.judge_kind, outcome.score, outcome.cost) == ("hybrid", 0.3, Cost("0.005"))
    assert outcome.signals["escalated"] is True
    assert outcome.signals["stages"][0] == {"failure": "judge_call_failed"}
    assert "heuristic_score" not in outcome.signals


def test_middle_stage_that_fails_is_passed_over():
    outcome, calls = judged(CHEAP, DOWN, COSTLY)
    assert calls == [1, 1, 1]
    assert (outcome.judge_kind, outcome.score) == ("hybrid", 0.3)
    assert "escalation_skipped" not in outcome.signals


def test_when_every_stage_fails_the_last_failure_is_the_answer_at_the_cost_of_all():
    last = Failure("judge_output_invalid", "no JSON", cost=Cost("0.002"))
    assert judged(DOWN, last)[0] == attrs.evolve(last, cost=Cost("0.003"))
    assert judged(last, CAPPED)[0].throttled_reason == "session_cap"


def test_stage_in_the_middle_that_is_unsure_goes_on_and_each_is_listed():
    middle = Judgment(0.5, 0.6, "llm", "small", Cost("0.001"))
    outcome, calls = judged(CHEAP, middle, COSTLY, threshold=(0.7, 0.8))
    assert calls == [1, 1, 1]
    assert (outcome.score, outcome.judge_model, outcome.cost) == (0.3, "m-1", Cost("0.005"))
    assert outcome.signals["stages"] == [
        {"judge_kind": "heuristic", "judge_model": None, "score": 0.8, "confidence": 0.55},
        {"judge_kind": "llm", "judge_model": "small", "score": 0.5, "confidence": 0.6},
        {"judge_kind": "llm", "judge_model": "m-1", "score": 0.3, "confidence": 0.9},
    ]


def test_each_step_has_its_own_threshold():
    middle = Judgment(0.5, 0.6, "llm", "small")
    outcome, calls = judged(CHEAP, middle, COSTLY, threshold=(0.7, 0.6))
    assert calls == [1, 1, 0]
    assert (outcome.judge_kind, outcome.judge_model, len(outcome.signals["stages"])) == ("hybrid", "small", 2)


def test_last_stage_that_fails_leaves_the_middle_one():
    middle = Judgment(0.5, 0.6, "llm", "small", Cost("0.001"))
    outcome, _ = judged(CHEAP, middle, DOWN)
    assert (outcome.judge_kind, outcome.judge_model, outcome.cost) == ("llm", "small", Cost("0.002"))
    assert outcome.signals["escalation_skipped"] == "judge_call_failed"
    assert outcome.signals["stages"][-1] == {"failure": "judge_call_failed"}


def test_costs_in_two_units_are_never_added():
    outcome, _ = judged(attrs.evolve(CHEAP, cost=Cost("0.01")), attrs.evolve(COSTLY, cost=Cost(700, "msat")))
    assert outcome.cost == Cost(700, "msat")


def test_unknown_cost_of_a_stage_makes_the_sum_unknown():
    outcome, _ = judged(attrs.evolve(CHEAP, cost=Cost("0.01")), attrs.evolve(COSTLY, cost=Cost.unknown()))
    assert outcome.cost.amount is None


REPLIES = st.lists(
    st.one_of(
        st.builds(Judgment, SHARES, SHARES, st.sampled_from(["heuristic", "llm"]), cost=st.just(Cost("0.001"))),
        st.just(DOWN),
        st.just(CAPPED),
    ),
    min_size=2,
    max_size=5,
)


@given(replies=REPLIES, threshold=SHARES)
def test_dear_stages_are_asked_only_while_the_cheap_ones_are_in_doubt(replies, threshold):
    outcome, calls = judged(*replies, threshold=threshold)
    asked_replies = replies[: sum(calls)]
    assert calls == sorted(calls, reverse=True)
    assert not any(isinstance(reply, Judgment) and reply.confidence >= threshold for reply in asked_replies[:-1])
    good = [reply for reply in asked_replies if isinstance(reply, Judgment)]
    assert isinstance(outcome, Judgment) is bool(good)
    if good:
        assert (outcome.score, outcome.confidence) == (good[-1].score, good[-1].confidence)
        assert (outcome.judge_kind == "hybrid") is (outcome.signals.get("escalated") is True)
        assert ("escalation_skipped" in outcome.signals) is isinstance(asked_replies[-1], Failure)
    assert outcome.cost.amount == sum(reply.cost.amount for reply in asked_replies)


# In a pipeline


def checked(threshold, *, stages="[cheap, costly]", **judges):
    text = f"judges:\n  - hybrid/cascade:\n      stages: {stages}\n      escalation_threshold: {threshold}\n"
    ready = {"cheap": FakeJudge(CHEAP), "costly": FakeJudge(COSTLY), **judges}
    return run_pipeline(text, subjects=[TURN], components=ready)


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        ("1.5", "expected a number from 0 to 1, got 1.5"),
        ("-.1", "expected a number from 0 to 1, got -0.1"),
        ("[0.5, 1.5]", "got 1.5"),
        ("[0.5, 0.6, 0.7]", "3 numbers and there are 2 steps"),
        ("[]", "0 numbers and there are 2 steps"),
        ("high", "escalation_threshold"),
        ("[0.5, high]", "escalation_threshold"),
    ],
)
def test_threshold_that_is_none_is_an_error_with_its_place(threshold, message):
    with pytest.raises(ConfigError) as caught:
        checked(threshold, stages="[cheap, costly, costly]")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.line == 4
    assert problem.path.startswith("judges[0].escalation_threshold")


@attrs.frozen
class Of:
    """A judge of some kinds of subject."""

    accepts: tuple[str, ...]

    def judge(self, subject, children):
        return CHEAP


def test_stages_without_a_common_kind_are_an_error():
    with pytest.raises(
        ConfigError, match="no kind of subject is judged by all stages, which judge: turn, row; session"
    ):
        checked(0.5, cheap=Of(("turn", "row")), costly=Of(("session",)))


@pytest.mark.parametrize("stages", ["[]", "[cheap]"])
def test_one_stage_is_no_cascade(stages):
    with pytest.raises(ConfigError, match="at least 2 judges"):
        checked(0.5, stages=stages, cheap=Of(("turn",)))


@pytest.mark.parametrize(
    ("first", "second", "both"), [((), (), ()), (("turn",), (), ("turn",)), (("row", "turn"), ("turn",), ("turn",))]
)
def test_cascade_accepts_what_all_stages_accept(first, second, both):
    assert Cascade((Of(first), Of(second))).accepts == both


def test_run_counts_the_escalation_and_what_it_cost():
    done = checked(0.7)
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.rubric_id, verdict.judge) == ("hybrid", "turn-hybrid-v1", "hybrid/cascade")
    assert done.document["judges"]["hybrid/cascade"]["escalated"] == 1
    assert done.document["cost"]["usd"] == "0.004"
    assert str(verdict.judge_cost_usd) == "0.004"


def test_stage_that_crashes_leaves_the_verdict_before_it():
    done = checked(0.7, costly=FakeJudge(RuntimeError("out of order")))
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.signals["escalation_skipped"]) == ("heuristic", "crashed")


def test_stage_that_is_too_slow_leaves_the_verdict_before_it():
    text = "judges:\n  - hybrid/cascade: {stages: [cheap, costly], timeout: 0.2}\n"
    slow = FakeJudge(COSTLY, seconds=30)
    done = run_pipeline(text, subjects=[TURN], components={"cheap": FakeJudge(CHEAP), "costly": slow})
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.signals["escalation_skipped"]) == ("heuristic", "timeout")


def workload(rubric):
    return attrs.evolve(sample("!", kind="workload"), context={"evaluate": {"rubric": rubric}})


@pytest.mark.parametrize(
    ("rubric", "expected", "calls"),
    [("heuristic", CHEAP, [1, 0]), ("llm", COSTLY, [0, 1]), (None, None, [1, 1]), ("hybrid", None, [1, 1])],
)
def test_a_workloads_own_block_says_which_stages_judge_it(rubric, expected, calls):
    outcome, asked_calls = judged(CHEAP, COSTLY, subject=workload(rubric))
    assert asked_calls == calls
    assert outcome == expected or (expected is None and outcome.judge_kind == "hybrid")


def test_other_subjects_with_such_a_column_are_judged_by_confidence():
    assert judged(CHEAP, COSTLY, subject=attrs.evolve(workload("heuristic"), kind="row"))[1] == [1, 1]
    assert judged(CHEAP, COSTLY, subject=attrs.evolve(workload(None), context={"evaluate": "x"}))[1] == [1, 1]


def test_a_workload_that_asks_for_the_model_fails_with_it_and_only_a_cap_downgrades():
    assert judged(CHEAP, DOWN, subject=workload("llm")) == (DOWN, [0, 1])
    outcome, calls = judged(CHEAP, CAPPED, subject=workload("llm"))
    assert calls == [1, 1]
    assert (outcome.score, outcome.judge_kind) == (CHEAP.score, "heuristic")
    assert outcome.signals["escalation_skipped"] == "budget_exhausted"
    assert outcome.signals["throttled_reason"] == "session_cap"
    assert judged(DOWN, CAPPED, subject=workload("llm"))[0].kind == "throttled_no_heuristic"


def test_a_verdict_rests_on_what_the_stage_that_answered_rests_on():
    assert judged(CHEAP, COSTLY)[0].basis == "model"
    assert judged(CHEAP, COSTLY, threshold=0.5)[0].basis == "heuristic"
    assert judged(CHEAP, DOWN)[0].basis == "heuristic"
    assert (
        judged(CHEAP, attrs.evolve(CHEAP, signals={"escalation_skipped": "budget_exhausted"}))[0].basis == "heuristic"
    )
    assert judged(CHEAP, Judgment(0.9, judge_kind="human"))[0].basis == "human"


# What the user said of a turn.

EXPLICIT = TraceEvent("feedback.explicit", {"scope": "turn", "rating": "thumbs_down"}, None, "s-1", "t-1")
IMPLICIT = TraceEvent("feedback.implicit", {"type": "retry", "subject_turn_id": "t-1"}, None, "s-1", "t-1")


def test_a_turn_with_a_thumb_is_not_escalated_and_the_verdict_says_so():
    outcome, calls = judged(CHEAP, COSTLY, subject=attrs.evolve(TURN, events=(IMPLICIT, EXPLICIT)))
    assert calls == [1, 0]
    assert outcome == attrs.evolve(CHEAP, signals={**FLAGS, "escalation_skipped": "explicit_feedback"})


def test_a_turn_with_a_thumb_is_escalated_where_the_file_says_so():
    subject = attrs.evolve(TURN, events=(EXPLICIT,))
    outcome, calls = judged(CHEAP, COSTLY, subject=subject, escalate_over_feedback=True)
    assert (calls, outcome.judge_kind, outcome.score) == ([1, 1], "hybrid", 0.3)


def test_a_sure_verdict_on_a_turn_with_a_thumb_skipped_nothing():
    assert judged(CHEAP, COSTLY, threshold=0.5, subject=attrs.evolve(TURN, events=(EXPLICIT,))) == (CHEAP, [1, 0])


def test_a_stage_that_fails_is_passed_over_although_there_is_a_thumb():
    outcome, calls = judged(DOWN, CHEAP, COSTLY, subject=attrs.evolve(TURN, events=(EXPLICIT,)))
    assert (calls, outcome.score, outcome.judge_kind) == ([1, 1, 0], CHEAP.score, "heuristic")
    assert outcome.signals["escalation_skipped"] == "explicit_feedback"
    assert outcome.cost == DOWN.cost


@pytest.mark.parametrize(
    "subject",
    [
        attrs.evolve(TURN, events=(IMPLICIT,)),
        attrs.evolve(TURN, events=(attrs.evolve(EXPLICIT, payload={"scope": "turn"}),)),
        Subject("session", "s-1", events=(EXPLICIT,)),
    ],
    ids=["implicit feedback", "no rating", "session"],
)
def test_anything_but_a_thumb_on_a_turn_escalates_as_before(subject):
    assert judged(CHEAP, COSTLY, subject=subject)[1] == [1, 1]


def test_a_failed_escalation_keeps_score_and_kind_and_costs_what_was_spent():
    outcome, _ = judged(CHEAP, DOWN)
    assert (outcome.score, outcome.judge_kind, outcome.cost) == (CHEAP.score, "heuristic", DOWN.cost)
