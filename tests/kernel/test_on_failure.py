"""``on_failure: zero``: every failure of a metric counts as 0, visibly."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from dicast import Cost, Failure, Judgment, Score, metric
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample


@metric(tier="proxy")
def slow(subject):
    """Takes too long."""
    time.sleep(5)
    return Score(1.0)


@metric(tier="truth")
async def asleep(subject):
    """Waits too long."""
    await asyncio.sleep(5)
    return Score(1.0)


@metric(tier="proxy")
def raises(subject):
    """Raises."""
    raise ZeroDivisionError("oh")


@metric(tier="proxy")
def bare(subject):
    """Gives no score."""
    return 0.5


@metric(tier="proxy")
def beyond(subject):
    """Gives a score outside of [0, 1]."""
    return Score(1.5)


FAILING = {
    "timeout": [slow(), asleep()],
    "crashed": [raises(), FakeJudge(RuntimeError("oh"))],
    "invalid_score": [bare(), beyond()],
    "missing_input": [FakeMetric(Failure("missing_input", "no reference"))],
    "judge_output_invalid": [FakeJudge(Failure("judge_output_invalid", "no seal"))],
    "judge_call_failed": [FakeJudge(Failure("judge_call_failed", "HTTP 500"))],
    "refused": [FakeMetric(Failure("refused", "no comment"))],
}
CASES = [(kind, one) for kind, several in FAILING.items() for one in several]


def run(tier, component, *, scoring=None, other_slots=(), **slot):
    """The failing component and, in the other tiers' lists, the *other_slots*: label, tier and value."""
    metrics = {"proxy": [], "truth": []}
    metrics[tier].append({"bad": {"as": "bad", "timeout": 0.05, "on_failure": "zero", **slot}})
    components = {"bad": component}
    for label, of, value in other_slots:
        metrics[of].append({label: {"as": label}})
        components[label] = FakeMetric(Score(value))
    text = json.dumps({"metrics": metrics, "scoring": scoring or {}})
    return run_pipeline(text, subjects=[sample("x")], components=components)


@pytest.mark.parametrize("tier", ["proxy", "truth"])
@pytest.mark.parametrize(("kind", "component"), CASES, ids=lambda one: getattr(one, "name", None))
def test_every_kind_of_failure_counts_as_zero(tier, kind, component):
    done = run(tier, component, other_slots=[("good", "proxy", 0.8)])
    (verdict,) = done.verdicts
    assert verdict.score == pytest.approx(0.4)
    (item,) = [item for item in verdict.scores if item["metric"] == "bad"]
    assert (item["value"], item["signals"], bool(item["details"])) == (0.0, {"failure": kind}, True)
    assert (verdict.tier, verdict.skipped) == (tier, ())
    assert (done.document["failed"], done.document["coverage"], done.exit_code) == (0, 1.0, 0)
    bad = {
        "mean": 0.0,
        "pass_rate": 0.0,
        "basis": tier,
        "scored": 1,
        "total": 1,
        "skipped": 0,
        "spared": 0,
        "saved": {"usd": "0", "msat": "0"},
    }
    assert done.document["metrics"]["bad"].pop("passes")["passed"] == 0
    assert done.document["metrics"]["bad"] == bad


def test_a_proxy_that_counts_as_zero_closes_the_gate():
    verdict = run("proxy", raises(), other_slots=[("truth", "truth", 1.0)]).verdicts[0]
    assert (verdict.score, verdict.tier) == (0.0, "proxy")


def test_it_counts_with_its_weight():
    verdict = run(
        "truth", FakeMetric(Failure("refused", "no")), other_slots=[("good", "proxy", 1.0)], weight=3
    ).verdicts[0]
    assert verdict.score == pytest.approx(0.25)


def test_a_rollout_that_failed_is_a_zero_among_the_others():
    """003: a rollout without an output scores 0.0 and is aggregated with the rest."""
    bad = FakeMetric([Score(0.9), Failure("missing_input", "no output"), Score(0.6)])
    for method, score in (("median", 0.6), ("mean", 0.5), ("min", 0.0), ("max", 0.9), ({"trimmed_mean": 34}, 0.6)):
        bad = FakeMetric([Score(0.9), Failure("missing_input", "no output"), Score(0.6)])
        verdict = run("truth", bad, scoring={"rollouts": 3, "aggregation": method}).verdicts[0]
        assert (verdict.score, verdict.signals["rollouts"]) == (pytest.approx(score), [0.9, 0.0, 0.6])


def test_what_a_failure_cost_is_counted():
    @metric(tier="truth", cost="9 msat")
    async def failed(subject):
        return Failure("refused", "no", cost=Cost("7", "msat"))

    done = run("truth", failed())
    assert (done.document["cost"]["msat"], done.verdicts[0].score) == ("7", 0.0)
    assert done.verdicts[0].scores[0]["cost"]["amount"] == "7"


def test_retries_come_first():
    failed = FakeMetric([Failure("timeout", "slow", retryable=True), Score(0.9)])
    assert run("truth", failed, retries=1).verdicts[0].score == 0.9


def test_a_judge_of_its_own_is_no_metric_and_its_failure_stands():
    text = "judges: [{bad: {as: bad, on_failure: zero}}]"
    done = run_pipeline(text, subjects=[sample("x")], components={"bad": FakeJudge([Failure("refused", "no")])})
    assert (done.document["scored"], done.document["failures"]) == (0, {"refused": 1})


def test_without_it_the_subject_is_unscored_and_coverage_falls():
    """A failure is no zero unless the file asks for it."""
    text = "metrics: [{bad: {as: bad}}, {good: {as: good}}]"
    components = {"bad": raises(), "good": FakeMetric(Score(1.0))}
    done = run_pipeline(text, subjects=[sample("x")], components=components)
    assert (done.document["failures"], done.document["coverage"], done.exit_code) == ({"crashed": 1}, 0.0, 3)


def test_a_judgment_inside_the_metrics_that_is_good_is_no_zero():
    assert run("truth", FakeJudge(Judgment(0.7))).verdicts[0].score == 0.7
