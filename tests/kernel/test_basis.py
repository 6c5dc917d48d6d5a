"""Basis of a verdict."""

from __future__ import annotations

import json

import attrs
import pytest

from dicast import BASES, Failure, Judgment, Score, ScoringError, Verdict, weakest
from dicast._kernel.cli.summary import run_parts
from dicast._kernel.plan.clauses import Gate
from dicast._kernel.report.document import document
from dicast._kernel.report.fold import Report
from dicast._kernel.values.json_form import structure, unstructure
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample
from dicast.toolkit.terminal import plain_lines

OLD = {
    "eval_id": "e", "subject_kind": "turn", "subject_id": "t", "score": 0.5, "confidence": 1.0, "judge_kind": "llm",
    "judge_model": "m", "judge_cost_usd": "0", "judge_pricing_version": None, "judge_latency_ms": 1, "rubric_id": "r",
    "rubric_version": "1", "signals": {}, "parent_eval_id": None, "created_at": "2026-01-01T00:00:00.000Z",
    "run_id": "run", "judge": "llm/judge", "fingerprint": "f",
}  # fmt: skip
"""A verdict as ledgers have it that were written before verdicts had a basis."""


def test_bases_are_ordered_from_a_human_down_to_a_proxy():
    assert BASES == ("human", "truth", "model", "heuristic", "proxy", "recorded")
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


# What a combined verdict rests on


def model(value=0.8, kind="llm", **options):
    return FakeJudge(Judgment(value, judge_kind=kind, **options))


def combined(metrics, proxy=1.0, options=None, **sections):
    """The one verdict of a proxy and of *metrics*, and the run's document."""
    listed = {
        "proxy": [{"p": {"as": "p"}}],
        "truth": [{name: {"as": name, **(options or {}).get(name, {})}} for name in metrics],
    }
    text = json.dumps({"metrics": listed, **sections})
    done = run_pipeline(text, subjects=[sample("x")], components={"p": FakeMetric(Score(proxy)), **metrics})
    return done.verdicts[0], done.document


@pytest.mark.parametrize(
    ("metrics", "basis"),
    [
        ({"t": FakeMetric(Score(1.0))}, "truth"),
        ({"t": FakeMetric(Score(1.0)), "m": model()}, "model"),
        ({"m": model(), "h": model(kind="heuristic")}, "heuristic"),
        ({"h": model(kind="human")}, "human"),
        ({"j": model(kind="jury", basis="model")}, "model"),
        ({"t": FakeMetric(Score(1.0, basis="model"))}, "model"),
    ],
    ids=["truth", "model", "heuristic", "human", "jury", "a metric that asks a judge"],
)
def test_a_combined_verdict_rests_on_the_weakest_truth_that_entered(metrics, basis):
    verdict, document = combined(metrics)
    assert (verdict.tier, verdict.basis) == ("truth", basis)
    assert document["score"]["by_basis"] == {basis: 1}
    assert combined(metrics, proxy=0.1)[0].basis == "proxy"


def test_what_has_no_weight_is_nothing_to_rest_on():
    metrics = {"t": FakeMetric(Score(1.0)), "m": model()}
    assert combined(metrics, options={"m": {"weight": 0}})[0].basis == "truth"


def test_each_metric_says_its_basis_and_an_item_only_where_its_tier_does_not():
    verdict, document = combined({"t": FakeMetric(Score(1.0)), "m": model()})
    assert [item.get("basis") for item in verdict.scores] == [None, None, "model"]
    assert {label: tally["basis"] for label, tally in document["metrics"].items()} == {
        "p": "proxy",
        "t": "truth",
        "m": "model",
    }


def test_a_metric_that_only_an_audit_asked_has_no_basis():
    _, document = combined({"m": model()}, proxy=0.1, scoring={"audit": {"rate": 1}})
    assert (document["metrics"]["m"]["mean"], document["metrics"]["m"]["basis"]) == (None, None)


def test_a_judge_that_failed_and_counts_as_zero_is_no_more_than_its_kind():
    class Model(FakeJudge):
        judge_kind = "llm"

    metrics = {"m": Model(Failure("refused", "no"))}
    assert combined(metrics, options={"m": {"on_failure": "zero"}})[0].basis == "model"


def test_the_tiers_are_counted_as_before():
    _, document = combined({"m": model()})
    assert document["score"]["by_tier"] == {"truth": 1, "proxy": 0}


# What a run warns of


def warned(count, score, kind):
    replies = [Judgment(entry, judge_kind=kind) for entry in ([score] * count if isinstance(score, float) else score)]
    subjects = [sample("x", id=str(n)) for n in range(count)]
    done = run_pipeline(json.dumps({"judges": ["j"]}), subjects=subjects, components={"j": FakeJudge(replies)})
    return [(entry["kind"], entry["message"]) for entry in done.document["warnings"]]


def test_a_run_warns_where_all_scores_are_equal():
    equal = [("equal_scores", "all 10 scores of j are 0.7: no two subjects differ")]
    assert warned(10, 0.7, "llm") == equal
    assert warned(9, 0.7, "llm") == []
    assert warned(10, [0.7] * 9 + [0.8], "llm") == []


def test_a_run_warns_where_only_heuristics_judged():
    ((kind, message),) = warned(2, 0.7, "heuristic")
    assert (kind, message.partition(":")[0]) == (
        "only_heuristics",
        "no score of j has a basis stronger than heuristics",
    )
    assert warned(2, 0.7, "evaluator") == []


@pytest.mark.parametrize(
    ("kinds", "is_warned"),
    [
        (["heuristic", "heuristic"], True),
        (["heuristic", "llm"], False),
        (["heuristic", "evaluator"], False),
        (["llm", "llm"], False),
    ],
)
def test_one_stronger_basis_ends_the_warning_of_heuristics(kinds, is_warned):
    judge = FakeJudge([Judgment(0.5 + index / 10, judge_kind=kind) for index, kind in enumerate(kinds)])
    subjects = [sample("x", id=f"{index}") for index in range(len(kinds))]
    done = run_pipeline(json.dumps({"judges": ["j"]}), subjects=subjects, components={"j": judge})
    assert [warning["kind"] for warning in done.document["warnings"]] == ["only_heuristics"] * is_warned


def test_the_summary_names_every_basis_and_every_warning():
    kinds = ["human", "evaluator", "llm", "heuristic"]
    judge = FakeJudge([Judgment(0.7, judge_kind=kind) for kind in kinds])
    subjects = [sample("x", id=kind) for kind in kinds]
    done = run_pipeline(json.dumps({"judges": ["j"]}), subjects=subjects, components={"j": judge})
    expected = "scores by basis: human: 1, truth: 1, uncalibrated model: 1, heuristic: 1"
    assert expected in " ".join(plain_lines(run_parts(done.document)).split())
    warning = {"kind": "only_heuristics", "label": "j", "message": "only heuristics"}
    assert "warning: only heuristics\n" in plain_lines(run_parts({**done.document, "warnings": [warning]}))


def test_a_run_of_an_earlier_version_is_counted_and_shown():
    components = {"j": FakeJudge(Judgment(0.5, judge_kind="llm", judge_model="m"))}
    done = run_pipeline(json.dumps({"judges": ["j"]}), subjects=[sample("x")], components=components)
    report = Report()
    for event in done.events:
        report.observe(attrs.evolve(event, payload={k: v for k, v in event.payload.items() if k != "basis"}))
    found = document(report, "median", Gate(), stopped=None)
    assert found["score"]["by_basis"] == {"model": 1}
    score = {key: value for key, value in done.document["score"].items() if key != "by_basis"}
    old = {key: value for key, value in done.document.items() if key != "warnings"} | {"score": score}
    assert "scores by basis: truth: 1\n" in plain_lines(run_parts(old))
