"""What a verdict rests on."""

from __future__ import annotations

import json

import pytest

from dicast import BASES, Judgment, Score, ScoringError, Verdict, weakest
from dicast._kernel.converter import structure, unstructure
from dicast.testing import FakeJudge, run_pipeline, sample

OLD = {
    "eval_id": "e", "subject_kind": "turn", "subject_id": "t", "score": 0.5, "confidence": 1.0, "judge_kind": "llm",
    "judge_model": "m", "judge_cost_usd": "0", "judge_pricing_version": None, "judge_latency_ms": 1, "rubric_id": "r",
    "rubric_version": "1", "signals": {}, "parent_eval_id": None, "created_at": "2026-01-01T00:00:00.000Z",
    "run_id": "run", "judge": "llm/judge", "fingerprint": "f",
}  # fmt: skip
"""A verdict as ledgers have it that were written before verdicts had a basis."""


def test_bases_are_ordered_from_a_human_down_to_a_proxy():
    assert BASES == ("human", "truth", "model", "heuristic", "proxy")
    assert weakest(["truth", "heuristic", "model"]) == "heuristic"
    assert weakest([]) == "proxy"


@pytest.mark.parametrize(
    ("kind", "tier", "model", "basis"),
    [
        ("human", "truth", None, "human"),
        ("evaluator", "truth", None, "truth"),
        ("llm", "truth", "m", "model"),
        ("heuristic", "truth", None, "heuristic"),
        ("hybrid", "truth", "m", "model"),
        ("hybrid", "truth", None, "heuristic"),
        ("jury", "truth", None, "heuristic"),
        ("metrics", "truth", None, "truth"),
        ("metrics", "proxy", None, "proxy"),
    ],
)
def test_a_verdict_of_an_old_ledger_has_the_basis_of_its_kind_and_tier(kind, tier, model, basis):
    verdict = structure(OLD | {"judge_kind": kind, "tier": tier, "judge_model": model}, Verdict)
    assert (verdict.basis, verdict.calibrated) == (basis, False)
    assert structure(unstructure(verdict), Verdict) == verdict


def test_a_judgment_says_its_basis_or_has_that_of_its_kind():
    assert Judgment(1.0).basis == "truth"
    assert Judgment(1.0, judge_kind="llm").basis == "model"
    assert Judgment(1.0, judge_kind="jury", basis="model").basis == "model"
    assert structure({"score": 1.0, "judge_kind": "heuristic"}, Judgment).basis == "heuristic"


@pytest.mark.parametrize("answer", [Judgment, Score])
def test_an_unknown_basis_is_refused(answer):
    with pytest.raises(ScoringError, match="unknown basis 'facts'; one of human, truth, model, heuristic, proxy"):
        answer(1.0, basis="facts")


def test_a_judges_verdict_carries_its_basis():
    judges = {name: FakeJudge(Judgment(0.5, judge_kind=name)) for name in ("llm", "heuristic", "human")}
    done = run_pipeline(json.dumps({"judges": list(judges)}), subjects=[sample("x")], components=judges)
    assert [verdict.basis for verdict in done.verdicts] == ["model", "heuristic", "human"]
    assert all(event.payload["calibrated"] is False for event in done.of("eval.completed"))
