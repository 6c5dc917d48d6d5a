"""A verdict of this process is the same as the verdict that is read from its event with a check."""

from __future__ import annotations

import pytest

from dicast import Event
from dicast._kernel.resume.queries import new_verdict, verdict

SCORE = {"metric": "m", "value": 0.5, "signals": {}}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"score": None, "raw": 7.0},
        {"judge_cost_usd": "0.010", "judge_cost_msat": None, "judge_pricing_version": "p"},
        {"scores": [SCORE], "skipped": [{"metric": "n", "reason": "budget"}], "tier": "proxy", "propensity": 0.5},
        {"spared": [{"metric": "m", "runs": 1, "amount": "0", "unit": "usd"}], "models": {"m": ["x"]}},
        {"adapted": {"m": ["top_k"]}, "audit": {"score": 1.0}},
    ],
)
def test_a_new_verdict_is_the_verdict_of_its_event(change):
    payload = {
        "eval_id": "V",
        "subject_kind": "turn",
        "subject_id": "t",
        "judge": "j",
        "judge_latency_ms": 1,
        "judge_cost_usd": "0",
        "judge_cost_msat": "0",
        "fingerprint": "f",
        "judge_pricing_version": None,
        "parent_eval_id": None,
        "score": 0.5,
        "confidence": 1.0,
        "judge_kind": "heuristic",
        "judge_model": None,
        "rubric_id": "r",
        "rubric_version": "1",
        "signals": {"flags": ["a"]},
        "scores": (),
        "tier": "truth",
        "truth_reason": None,
        "skipped": (),
        "propensity": None,
        "basis": "heuristic",
        "calibrated": False,
        **change,
    }
    event = Event("E", "eval.completed", "2026-03-01T12:00:00.000Z", "R", payload)
    assert new_verdict(event) == verdict(event)
