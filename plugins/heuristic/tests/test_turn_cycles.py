"""The effect of the verdicts on a turn's tool cycles on its score."""

from __future__ import annotations

import pytest

import dicast
from dicast import Subject, TraceEvent
from dicast_heuristic import Turn

RUBRIC = dicast.rubric("turn-heuristic-v1")
SUBJECT = Subject(
    "turn", "t", events=(TraceEvent("turn.completed", {"stop_reason": "end_turn", "tool_call_count": 3}),)
)


@pytest.fixture
def cycles(verdict):
    return [verdict("tool_cycle", f"u{place}", score) for place, score in enumerate([0.49, 0.5, 0.0])]


def test_low_tool_cycles_are_counted_and_leave_the_lifecycle_figures(cycles):
    alone, verdict_ = Turn(RUBRIC).judge(SUBJECT, ()), Turn(RUBRIC).judge(SUBJECT, cycles)
    assert verdict_.signals == {**alone.signals, "tool_cycles_with_score_below_threshold": 2}
    assert (verdict_.score, verdict_.confidence) == (alone.score, alone.confidence) == (1.0, 0.9)
    assert "tool_cycles_with_score_below_threshold" not in alone.signals


def test_rubric_may_give_them_a_weight(cycles, changed):
    judge = Turn(changed("turn-heuristic-v1", tool_cycles__weight=0.5))
    low, good, unknown = (judge.judge(SUBJECT, children) for children in (cycles, cycles[1:2], ()))
    assert (low.score, low.confidence) == (0.75, 0.55)
    assert low.signals["flags_negative"] == ["tool_cycle_below_threshold"]
    assert (good.score, good.signals["flags"][-1]) == (1.0, "no_tool_cycle_below_threshold")
    assert (unknown.score, len(unknown.signals["flags"])) == (1.0, 6)


def test_rubric_sets_the_threshold(cycles, changed):
    judge = Turn(changed("turn-heuristic-v1", tool_cycles__threshold=0.4))
    assert judge.judge(SUBJECT, cycles).signals["tool_cycles_with_score_below_threshold"] == 1


def test_newest_verdict_of_the_last_judge_counts(verdict):
    children = [
        verdict("tool_cycle", "u1", 0.1, "a"),
        verdict("tool_cycle", "u1", 0.9, "b", eval_id="1"),
        verdict("tool_cycle", "u2", 0.1, "a"),
        verdict("tool_cycle", "u1", 0.2, "b", eval_id="2"),
        verdict("turn", "u3", 0.0, "b"),
    ]
    assert Turn(RUBRIC).judge(SUBJECT, children).signals["tool_cycles_with_score_below_threshold"] == 1
