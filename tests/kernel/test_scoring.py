"""Metrics of a subject: proxies, gate, truth, weights, failures, rollouts and the audit."""

from __future__ import annotations

import json
from hashlib import blake2b
from statistics import median

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Score, Subject, metric
from dicast._kernel.asking.scoring import MetricSet, audited
from dicast._kernel.plan.sections import Audit, Scoring, Slot
from dicast.testing import FakeJudge, FakeMetric, run_pipeline, sample

BAD = Failure("refused", "no comment")


def judge(proxy=(), truth=(), *, scoring=None, subjects=None, options=None, **sections):
    """Run the metrics p0, p1, … and t0, t1, …: a number is a metric that always gives it, a tuple one that gives a
    reply after the other; *options* are slot options by name.
    """
    components, metrics = {}, {}
    for tier, given_ in (("proxy", proxy), ("truth", truth)):
        named = {f"{tier[0]}{n}": item if attrs.has(type(item)) and not isinstance(item, Score | Failure) else fake(item)
                 for n, item in enumerate(given_)}  # fmt: skip
        components |= named
        metrics[tier] = [{name: {"as": name, **(options or {}).get(name, {})}} for name in named]
    text = json.dumps({"metrics": metrics, "scoring": scoring or {}, **sections})
    return run_pipeline(text, subjects=subjects or [sample("x")], components=components)


def fake(reply):
    replies = [scored(answer) for answer in reply] if isinstance(reply, tuple) else scored(reply)
    return FakeMetric(replies)


def scored(value):
    return Score(value) if isinstance(value, int | float) else value


def verdict(*given_, **options):
    (verdict,) = judge(*given_, **options).verdicts
    return verdict


def failures(done):
    return [(event.payload["failure_mode"], event.payload["error_message"]) for event in done.of("eval.failed")]


# The gate


def test_a_subject_below_the_gate_rests_on_its_proxies():
    outcome = verdict((1, 1, 0.4), (0.1,))
    assert outcome.score == pytest.approx(0.8)
    assert (outcome.tier, outcome.truth_reason, outcome.propensity) == ("proxy", None, None)
    assert [item["metric"] for item in outcome.scores] == ["p0", "p1", "p2"]


def test_a_value_equal_to_the_threshold_passes():
    outcome = verdict((1, 1, 0.5), (0.1,))
    assert outcome.score == pytest.approx(0.65)
    assert (outcome.tier, outcome.truth_reason, outcome.propensity) == ("truth", "gate", 1.0)


@pytest.mark.parametrize(("threshold", "tier"), [(0.7, "truth"), (0.71, "proxy"), (0, "truth"), (1, "proxy")])
def test_the_threshold_is_the_file_s(threshold, tier):
    assert verdict((0.7,), (1,), scoring={"threshold": threshold}).tier == tier


def test_every_proxy_runs_though_the_first_is_below_the_gate():
    second = FakeMetric(Score(1.0))
    assert verdict((0, second), (1,)).score == 0.5
    second.assert_all_asked()


def test_no_truth_metric_is_asked_about_a_subject_below_the_gate():
    truth = FakeMetric(Score(1.0))
    verdict((0.2,), (truth,))
    assert truth.asked == []


def test_the_gate_is_every_proxy_not_their_mean():
    assert verdict((1, 1, 1, 0.49), (0,)).tier == "proxy"


def test_truth_alone_needs_no_gate():
    outcome = verdict((), (0.3,))
    assert (outcome.score, outcome.tier, outcome.truth_reason) == (0.3, "truth", "gate")


def test_proxies_alone_are_never_truth():
    outcome = verdict((0.9,))
    assert (outcome.score, outcome.tier, outcome.truth_reason) == (0.9, "proxy", None)


# Weights and confidence


def test_weights_count_across_the_tiers():
    outcome = verdict((1,), (0.8,), options={"t0": {"weight": 2}})
    assert outcome.score == pytest.approx(0.8666667)
    assert [(item["metric"], item["tier"], item["weight"]) for item in outcome.scores] == [
        ("p0", "proxy", 1.0),
        ("t0", "truth", 2.0),
    ]


def test_a_metric_of_weight_0_gates_but_does_not_count():
    outcome = verdict((0.2, 0.8), options={"p0": {"weight": 0}})
    assert outcome.score == pytest.approx(0.8)
    assert verdict((0.2, 0.8), (1,), options={"p0": {"weight": 0}}).tier == "proxy"


@pytest.mark.parametrize(
    ("given_", "extra", "failure"),
    [
        (((1,),), {}, ("missing_input", "no metric gave a score that counts (p0: weight 0)")),
        (((0.2,), (1,)), {}, ("missing_input", "no metric gave a score that counts (p0: weight 0)")),
        (
            ((1,), (BAD,)),
            {"t0": {"on_failure": "exclude"}},
            ("missing_input", "no metric gave a score that counts (t0: refused, p0: weight 0)"),
        ),
    ],
    ids=["a sole metric", "below the gate", "an excluded truth"],
)
def test_where_all_that_scored_has_weight_0_nothing_is_made_up(given_, extra, failure):
    done = judge(*given_, options={"p0": {"weight": 0}, **extra}, gate={"min_score": 0})
    assert failures(done) == [failure]
    assert (done.document["coverage"], done.exit_code) == (0.0, 3)


def test_a_proxy_of_weight_0_and_a_truth_that_does_not_fit_are_throttled():
    done = judge((1,), (costly(),), options={"p0": {"weight": 0}}, budget={"run": "100 msat"})
    assert failures(done) == [
        ("throttled_no_heuristic", "no metric gave a score that counts (t0: run_cap, p0: weight 0)")
    ]


# What is combined


def test_under_combine_truth_the_proxies_only_gate():
    outcome = verdict(
        (Score(0.6, 0.1), 1),
        (0.2, Score(0.5, 0.4)),
        scoring={"combine": "truth"},
        options={"t1": {"weight": 3}},
    )
    assert (outcome.score, outcome.confidence) == (pytest.approx(0.425), pytest.approx(0.55))
    assert [item["weight"] for item in outcome.scores] == [0, 0, 1, 3]
    assert outcome.signals["metrics"] == {"p0": 0.6, "p1": 1.0, "t0": 0.2, "t1": 0.5}


def test_under_combine_truth_the_proxies_score_what_they_hold_back():
    outcome = verdict((0.4, 1), (1,), scoring={"combine": "truth"})
    assert (outcome.score, outcome.tier, [item["weight"] for item in outcome.scores]) == (0.7, "proxy", [1, 1])


def test_under_combine_truth_a_truth_that_never_ran_is_a_failure():
    done = judge((1,), (costly(),), scoring={"combine": "truth"}, budget={"run": "100 msat"})
    assert [kind for kind, _ in failures(done)] == ["throttled_no_heuristic"]
    done = judge((1,), (BAD,), scoring={"combine": "truth"}, options={"t0": {"on_failure": "exclude"}})
    assert failures(done) == [("missing_input", "no metric gave a score that counts (t0: refused, p0: weight 0)")]


def test_combine_truth_leaves_alone_what_no_truth_metric_judges():
    assert verdict((0.4, 1), scoring={"combine": "truth"}).score == 0.7


@pytest.mark.parametrize("weight", [1e9, 1e-300, 1])
def test_equal_weights_make_the_plain_mean_whatever_they_are(weight):
    options = {"p0": {"weight": weight}, "p1": {"weight": weight}}
    assert verdict((0.5, 1), options=options).score == pytest.approx(0.75)


@pytest.mark.parametrize("weight", [1e308, 1.1e9, -0.1])
def test_a_weight_that_sums_cannot_hold_is_refused(weight):
    with pytest.raises(ConfigError, match="weight"):
        judge((1,), options={"p0": {"weight": weight}})


def test_the_confidence_is_the_weighted_mean_of_those_that_entered():
    metrics = (Score(1, 0.2), Score(1, 1.0))
    assert verdict(metrics, options={"p0": {"weight": 3}}).confidence == pytest.approx(0.4)
    assert verdict(metrics, (BAD,), options={"t0": {"on_failure": "exclude"}}).confidence == pytest.approx(0.6)


def test_the_combined_verdict_says_what_it_is():
    outcome = verdict((Score(0.5, 0.25, "why", cost=Cost.zero(), signals={"a": 1}),))
    assert (outcome.judge, outcome.judge_kind, outcome.judge_model) == ("metrics", "metrics", None)
    assert (outcome.rubric_id, outcome.subject_kind, outcome.subject_id) == ("proxy-then-truth", "row", "sample")
    assert outcome.rubric_version
    assert outcome.scores[0] == {
        "metric": "p0",
        "value": 0.5,
        "confidence": 0.25,
        "tier": "proxy",
        "weight": 1.0,
        "rollout": 0,
        "details": "why",
        "cost": {"amount": "0", "unit": "usd"},
        "signals": {"a": 1},
    }
    assert outcome.signals == {"metrics": {"p0": 0.5}, "rollouts": [0.5]}


# Failures


@pytest.mark.parametrize("place", ["p0", "t0"])
def test_a_failed_metric_leaves_the_subject_unscored(place):
    given_ = {"p0": ((BAD, 1), (1,)), "t0": ((1, 1), (BAD,))}[place]
    done = judge(*given_)
    assert done.verdicts == ()
    assert failures(done) == [("refused", f"{place}: no comment")]
    assert (done.document["failed"], done.document["failures"], done.document["coverage"]) == (1, {"refused": 1}, 0.0)


def test_the_other_proxies_run_though_one_failed():
    other = FakeMetric(Score(1.0))
    judge((BAD, other))
    other.assert_all_asked()


def test_a_failed_truth_metric_stands_though_the_next_one_scored():
    assert failures(judge((1,), (BAD, 1))) == [("refused", "t0: no comment")]


def test_a_failed_proxy_keeps_the_truth_from_running():
    truth = FakeMetric(Score(1.0))
    judge((BAD,), (truth,))
    assert truth.asked == []


@pytest.mark.parametrize("place", ["p1", "t0"])
def test_an_excluded_failure_is_left_out_and_listed(place):
    given_ = {"p1": ((0.6, BAD), (1.0,)), "t0": ((0.6, 1.0), (BAD,))}[place]
    outcome = verdict(*given_, options={place: {"on_failure": "exclude"}})
    assert outcome.score == pytest.approx(0.8)
    assert outcome.skipped == ({"metric": place, "reason": "refused"},)


def test_a_truth_metric_that_failed_and_is_excluded_makes_no_truth():
    outcome = verdict((0.6,), (BAD,), options={"t0": {"on_failure": "exclude"}})
    assert (outcome.score, outcome.tier, outcome.truth_reason, outcome.propensity) == (0.6, "proxy", None, None)


def test_one_truth_metric_that_scored_makes_truth_though_the_next_is_excluded():
    outcome = verdict((0.6,), (1, BAD), options={"t1": {"on_failure": "exclude"}})
    assert (outcome.score, outcome.tier, outcome.truth_reason) == (pytest.approx(0.8), "truth", "gate")


def test_an_excluded_proxy_does_not_gate():
    assert verdict((0.6, BAD), (1,), options={"p1": {"on_failure": "exclude"}}).tier == "truth"


def test_a_failure_that_counts_as_zero_enters_and_gates():
    outcome = verdict((1, BAD), (1,), options={"p1": {"on_failure": "zero"}})
    assert (outcome.score, outcome.tier, outcome.skipped) == (0.5, "proxy", ())
    assert outcome.scores[1]["value"] == 0.0
    assert (outcome.scores[1]["details"], outcome.scores[1]["signals"]) == ("no comment", {"failure": "refused"})


def test_when_all_are_excluded_nothing_is_made_up():
    done = judge((BAD,), (BAD,), options={"p0": {"on_failure": "exclude"}, "t0": {"on_failure": "exclude"}})
    ((kind, message),) = failures(done)
    assert kind == "missing_input"
    assert "p0: refused, t0: refused" in message


def test_a_failure_in_one_rollout_leaves_the_subject_unscored():
    assert failures(judge(((1, BAD, 1),), scoring={"rollouts": 3})) == [("refused", "p0: no comment")]


# A judge among the metrics


def test_a_judge_stands_as_a_truth_metric():
    judge_ = FakeJudge(Judgment(0.4, 0.5, "llm", "m-1", signals={"why": "so"}))
    outcome = verdict((1,), (judge_,))
    assert (outcome.score, outcome.confidence, outcome.tier) == (pytest.approx(0.7), 0.75, "truth")
    assert (outcome.scores[1]["tier"], outcome.scores[1]["signals"]) == ("truth", {"why": "so"})


def test_a_judge_listed_without_a_tier_is_truth():
    text = "metrics: [{cheap: {as: cheap}}, {costly: {as: costly}}]"
    components = {"cheap": FakeMetric(Score(0.2)), "costly": FakeJudge()}
    done = run_pipeline(text, subjects=[sample("x")], components=components)
    assert done.verdicts[0].tier == "proxy"
    assert components["costly"].asked == []


def test_a_judge_that_fails_among_the_metrics_fails_the_subject():
    assert failures(judge((1,), (FakeJudge(Failure("judge_output_invalid", "no seal")),))) == [
        ("judge_output_invalid", "t0: no seal")
    ]


# Rollouts


@pytest.mark.parametrize(
    ("method", "score"),
    [("median", 0.5), ("mean", 0.5), ("min", 0.1), ("max", 0.9), ({"trimmed_mean": 34}, 0.5)],
)
def test_rollouts_come_to_one_score(method, score):
    outcome = verdict(((0.9, 0.1, 0.5),), scoring={"rollouts": 3, "aggregation": method})
    assert outcome.score == pytest.approx(score)
    assert outcome.signals == {"metrics": {"p0": pytest.approx(score)}, "rollouts": [0.9, 0.1, 0.5]}
    assert [(item["rollout"], item["value"]) for item in outcome.scores] == [(0, 0.9), (1, 0.1), (2, 0.5)]


def test_rollouts_may_be_called_num_rollouts():
    assert len(verdict((1,), scoring={"num_rollouts": 4}).scores) == 4


def test_a_metric_s_value_is_the_aggregate_of_the_rollouts_it_ran_in():
    outcome = verdict(((0.2, 0.8, 0.6),), ((0.4, 0.9),), scoring={"rollouts": 3})
    assert outcome.signals["metrics"] == {"p0": 0.6, "t0": 0.65}
    assert outcome.signals["rollouts"] == [0.2, pytest.approx(0.6), pytest.approx(0.75)]
    assert (outcome.score, outcome.tier) == (pytest.approx(0.6), "truth")  # .2 is a proxy's, and did not enter


def test_what_was_skipped_is_listed_for_each_rollout():
    outcome = verdict((1, (BAD, 0.5, BAD)), scoring={"rollouts": 3}, options={"p1": {"on_failure": "exclude"}})
    assert outcome.skipped == ({"metric": "p1", "reason": "refused"},) * 2
    assert outcome.signals == {"metrics": {"p0": 1.0, "p1": 0.5}, "rollouts": [1.0, 0.75, 1.0]}


@pytest.mark.parametrize(
    ("values", "method", "tier"),
    [
        ((0.4, 0.4, 0.9), "median", "proxy"),
        ((0.4, 0.8, 0.9), "median", "truth"),
        ((0.4, 0.9), "median", "proxy"),
        ((0.4, 0.6, 0.8, 0.9), "median", "truth"),
        ((0.4, 0.9, 0.9), "mean", "proxy"),
        ((0.6, 0.9, 0.9), "mean", "truth"),
        ((0.4, 0.9), "min", "proxy"),
        ((0.4, 0.9), "max", "truth"),
        ((0.4, 0.8, 0.9), {"trimmed_mean": 34}, "truth"),
        ((0.4, 0.4, 0.9), {"trimmed_mean": 34}, "proxy"),
        ((0.4, 0.8, 0.9), {"trimmed_mean": 50}, "truth"),
    ],
)
def test_a_subject_is_truth_only_where_every_rollout_that_entered_is(values, method, tier):
    """Each output scores the value of its proxy; the truth, which runs from .5 on, has the same value."""
    truths = tuple(value for value in values if value >= 0.5) or (1,)
    outcome = verdict((values,), (truths,), scoring={"rollouts": len(values), "aggregation": method})
    assert (outcome.tier, outcome.basis, outcome.truth_reason) == (tier, tier, "gate")


def test_of_rollouts_with_one_score_the_weakest_says_what_the_subject_rests_on():
    outcome = verdict(((1, 0.4, 0.9),), ((0, 0.9),), scoring={"rollouts": 3, "threshold": 0.5, "aggregation": "min"})
    assert (outcome.signals["rollouts"], outcome.score, outcome.tier) == ([0.5, 0.4, 0.9], 0.4, "proxy")
    outcome = verdict(((1, 0.4),), (0,), scoring={"rollouts": 2, "aggregation": "max"}, options={"t0": {"weight": 1.5}})
    assert (outcome.signals["rollouts"], outcome.tier) == ([0.4, 0.4], "proxy")


def test_the_confidence_is_the_mean_over_the_rollouts():
    given_ = (Score(1, 0.2), Score(0, 0.5))
    assert verdict((given_,), scoring={"rollouts": 2}).confidence == pytest.approx(0.35)


# The audit


def test_an_audit_looks_at_a_gated_out_subject_without_touching_its_score():
    outcome = verdict((0.25,), (Score(1, 0.1),), scoring={"audit": {"rate": 1, "seed": 7}})
    assert (outcome.score, outcome.confidence, outcome.tier) == (0.25, 1.0, "proxy")
    assert (outcome.truth_reason, outcome.propensity) == ("audit", 1.0)
    assert [(item["metric"], item["value"], item["weight"]) for item in outcome.scores] == [
        ("p0", 0.25, 1),
        ("t0", 1, 0),
    ]
    assert outcome.signals["metrics"] == {"p0": 0.25}


def test_an_audit_of_rate_0_looks_at_nobody():
    truth = FakeMetric(Score(1.0))
    assert verdict((0.25,), (truth,), scoring={"audit": {"rate": 0}}).truth_reason is None
    assert truth.asked == []


def test_a_subject_that_passed_the_gate_is_no_audit():
    outcome = verdict((1,), (0,), scoring={"audit": {"rate": 0.5}})
    assert (outcome.truth_reason, outcome.propensity, outcome.scores[1]["weight"]) == ("gate", 1.0, 1)


def test_a_failed_audit_is_listed_and_no_failure():
    outcome = verdict((0.25,), (BAD,), scoring={"audit": {"rate": 1}})
    assert (outcome.score, outcome.truth_reason, outcome.propensity) == (0.25, None, None)
    assert outcome.skipped == ({"metric": "t0", "reason": "refused"},)


def test_an_audit_that_failed_in_one_rollout_is_still_an_audit():
    outcome = verdict((0.25,), ((0.5, BAD),), scoring={"rollouts": 2, "audit": {"rate": 1}})
    assert (outcome.truth_reason, outcome.propensity, outcome.score) == ("audit", 1.0, 0.25)


def test_a_rollout_that_passed_was_looked_at_and_the_audited_one_stays_beside():
    outcome = verdict(((1, 0.2),), ((0.5, 0.9),), scoring={"rollouts": 2, "aggregation": "min", "audit": {"rate": 1}})
    assert (outcome.score, outcome.tier, outcome.truth_reason, outcome.propensity) == (0.2, "proxy", "gate", 1.0)
    assert [(item["metric"], item["rollout"], item["weight"]) for item in outcome.scores] == [
        ("p0", 0, 1),
        ("t0", 0, 1),
        ("p0", 1, 1),
        ("t0", 1, 0),
    ]
    assert outcome.signals["metrics"] == {"p0": 0.2, "t0": 0.5}


def test_the_same_subjects_are_audited_at_any_concurrency():
    subjects = [sample("x", id=str(n)) for n in range(60)]
    audits = []
    for concurrency, order in ((1, 1), (7, 1), (64, -1)):
        done = judge(
            (0.1,),
            (FakeJudge(Judgment(1.0)),),
            scoring={"audit": {"rate": 0.3, "seed": 7}},
            subjects=subjects[::order],
            executor={"dicast/async": {"concurrency": concurrency}},
        )
        audits.append({verdict.subject_id for verdict in done.verdicts if verdict.truth_reason == "audit"})
    assert audits[0] == audits[1] == audits[2] == {item.id for item in subjects if audited(item.id, 0.3, 7)}
    assert 5 < len(audits[0]) < 35


def test_who_is_audited_is_the_documented_keyed_hash():
    """BLAKE2b of the id, keyed with the seed: others can find the sample again."""
    for id_ in ("a", "ü", "turn/17"):
        share = int.from_bytes(blake2b(id_.encode(), digest_size=8, key=b"7").digest()) / 2**64
        assert audited(id_, share * 1.0001, 7)
        assert not audited(id_, share * 0.9999, 7)


@given(st.text(st.characters(codec=None)), st.integers(-(10**9), 10**9), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_rate_audits_the_same_subjects_and_more(id_, seed, rate, extra):
    low, high = sorted((rate, extra))
    assert audited(id_, 1.0, seed)
    assert not audited(id_, 0.0, seed)
    assert audited(id_, high, seed) or not audited(id_, low, seed)


@pytest.mark.parametrize("seed", [-(2**63), 2**63 - 1])
def test_a_seed_has_64_bits(seed):
    verdict((1,), scoring={"audit": {"rate": 1, "seed": seed}})
    with pytest.raises(ConfigError, match="seed"):
        judge((1,), scoring={"audit": {"rate": 1, "seed": seed * 2}})


def test_the_audited_share_is_the_rate():
    assert sum(audited(str(n), 0.05, 7) for n in range(20_000)) == pytest.approx(1000, abs=100)
    assert {n for n in range(300) if audited(str(n), 0.3, 7)} != {n for n in range(300) if audited(str(n), 0.3, 8)}


# The budget


@metric(tier="truth", cost="600 msat")
async def costly(subject):
    return Score(0.0, cost=Cost("600", "msat"))


def test_a_truth_metric_over_budget_is_skipped_and_the_proxies_stand():
    done = judge((1, 0.6), (costly(),), budget={"run": "100 msat"})
    (verdict,) = done.verdicts
    assert (verdict.score, verdict.tier, verdict.truth_reason) == (0.8, "proxy", None)
    assert verdict.skipped == ({"metric": "t0", "reason": "run_cap"},)
    assert (done.document["throttled"], done.document["cost"]["msat"]) == ({"run_cap": 1}, "0")
    not_asked = {
        "mean": None,
        "basis": None,
        "scored": 0,
        "total": 1,
        "skipped": 1,
        "spared": 0,
        "saved": {"usd": "0", "msat": "0"},
    }
    passes, rate = (done.document["metrics"]["t0"].pop(name) for name in ("passes", "pass_rate"))
    assert (passes["passed"], passes["n"], passes["open"], rate) == (0, 0, 1, None)
    assert done.document["metrics"]["t0"] == not_asked
    assert done.document["score"]["by_tier"] == {"truth": 0, "proxy": 1}


def test_a_truth_metric_that_fits_runs():
    done = judge((1,), (costly(),), budget={"run": "600 msat"})
    assert (done.verdicts[0].score, done.verdicts[0].tier) == (0.5, "truth")
    assert done.document["cost"] == {"usd": "0", "msat": "600"}


def test_truth_alone_over_budget_is_throttled_and_nothing_is_made_up():
    done = judge((), (costly(),), budget={"run": "100 msat"})
    assert [kind for kind, _ in failures(done)] == ["throttled_no_heuristic"]
    assert done.exit_code == 5


def test_truth_over_budget_beside_one_that_failed_is_no_throttling():
    options = {"t1": {"on_failure": "exclude"}}
    done = judge((), (costly(), BAD), budget={"run": "100 msat"}, options=options)
    assert [kind for kind, _ in failures(done)] == ["missing_input"]


def test_on_failure_zero_does_not_turn_a_skipped_metric_into_a_score():
    outcome = verdict((1,), (costly(),), budget={"run": "100 msat"}, options={"t0": {"on_failure": "zero"}})
    assert (outcome.score, outcome.tier) == (1.0, "proxy")


def test_an_audit_over_budget_is_listed_as_skipped():
    outcome = verdict((0.1,), (costly(),), scoring={"audit": {"rate": 1}}, budget={"run": "0 msat"})
    assert (outcome.truth_reason, outcome.skipped) == (None, ({"metric": "t0", "reason": "run_cap"},))


# Properties, on the metric set itself


def slots(tier, weights):
    return [
        Slot(f"{tier}{n}", "x/y", None, "metric", "1", "x", f"{tier}[{n}]", {}, "", tier=tier, weight=weight)
        for n, weight in enumerate(weights)
    ]


def combined(values, scoring=None, *, rollouts=None):
    """Return the combined verdict of a metric set on *values*: ``{tier: [(value, weight)]}``; *rollouts* are further lists of values."""
    metrics = [slot for tier in values for slot in slots(tier, [weight for _, weight in values[tier]])]
    answers = {
        slot.label: [value] for slot, value in zip(metrics, (v for t in values.values() for v, _ in t), strict=True)
    }
    for extra in rollouts or ():
        for slot, value in zip(metrics, extra, strict=True):
            answers[slot.label].append(value)
    work = MetricSet(metrics, scoring or Scoring()).judge(
        [Subject("row", "r")], lambda slot, subject, rollout: Score(answers[slot.label][rollout])
    )
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the set waited, though nothing has to be waited for")


def test_a_kind_that_no_metric_judges_is_no_score_and_no_throttling():
    (slot,) = slots("proxy", [1])
    work = MetricSet([attrs.evolve(slot, on=("turn",))], Scoring()).judge([Subject("row", "r")], None)
    with pytest.raises(StopIteration) as done:
        work.send(None)
    assert done.value.value == Failure("missing_input", "no metric gave a score (no metric judges it)")


VALUE = st.floats(0, 1, allow_subnormal=False)
WEIGHT = st.just(0.0) | st.floats(1e-6, 1e6)
METRICS = st.lists(st.tuples(VALUE, WEIGHT), min_size=1, max_size=5).filter(lambda pairs: any(w for _, w in pairs))


@given(METRICS, METRICS | st.just([]), VALUE, st.sampled_from(["all", "truth"]))
def test_a_score_lies_between_the_values_that_entered(proxies, truths, threshold, combine):
    verdict = combined({"proxy": proxies, "truth": truths}, Scoring(threshold=threshold, combine=combine))
    entered = [item["value"] for item in verdict.scores if item["weight"]]
    assert min(entered) <= verdict.score <= max(entered)
    assert verdict.confidence == 1
    passed = min(value for value, _ in proxies) >= threshold
    assert verdict.tier == ("truth" if passed and truths else "proxy")


@given(METRICS, st.randoms(use_true_random=False))
def test_the_order_of_the_metrics_does_not_change_the_score(proxies, random):
    shuffled = random.sample(proxies, len(proxies))
    assert combined({"proxy": proxies}).score == pytest.approx(combined({"proxy": shuffled}).score, abs=1e-12)


@given(METRICS, METRICS, VALUE, VALUE)
def test_a_higher_threshold_never_lets_more_through(proxies, truths, first, second):
    low, high = sorted((first, second))
    tiers = [combined({"proxy": proxies, "truth": truths}, Scoring(threshold=t)).tier for t in (low, high)]
    assert tiers != ["proxy", "truth"]


@given(METRICS, METRICS, VALUE, st.data())
def test_raising_a_proxy_never_closes_the_gate(proxies, truths, threshold, data):
    n = data.draw(st.integers(0, len(proxies) - 1))
    value, weight = proxies[n]
    better = [*proxies[:n], (data.draw(st.floats(value, 1)), weight), *proxies[n + 1 :]]
    tiers = [combined({"proxy": p, "truth": truths}, Scoring(threshold=threshold)).tier for p in (proxies, better)]
    assert tiers != ["truth", "proxy"]


@given(METRICS, METRICS, st.integers(0, 99))
def test_an_audit_changes_neither_score_nor_tier(proxies, truths, seed):
    plain, watched = (
        combined({"proxy": proxies, "truth": truths}, Scoring(audit=audit)) for audit in (None, Audit(1.0, seed))
    )
    equal = ("score", "confidence", "tier", "metrics", "rollouts")
    assert [getattr(plain, name) for name in equal] == [getattr(watched, name) for name in equal]
    assert watched.truth_reason == ("gate" if plain.tier == "truth" else "audit")


@given(st.lists(st.lists(VALUE, min_size=2, max_size=2), min_size=1, max_size=6))
def test_the_score_is_the_median_of_the_rollouts_scores(rollouts):
    values = {"proxy": [(rollouts[0][0], 3.0), (rollouts[0][1], 1.0)]}
    verdict = combined(values, Scoring(rollouts=len(rollouts)), rollouts=rollouts[1:])
    assert verdict.score == pytest.approx(median((3 * item + other) / 4 for item, other in rollouts))
    assert verdict.metrics["proxy0"] == median(item for item, _ in rollouts)
