"""A judge's rate, corrected by labels."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast.testing import run_pipeline
from dicast.toolkit.function_task import FunctionTask
from dicast.toolkit.intervals import wilson
from dicast_trust.audits.prevalence import Prevalence, rogan_gladen


def record(judged, label=None):
    return {"row": {} if label is None else {"label": label}, "metrics": {"scores": {"j": judged}}}


def corrected(pairs, labels="same"):
    live = Prevalence(on="j", labels=labels).live()
    for judged, label in pairs:
        live.add(record(judged, label))
    return live.finish()


def binary(hits, misses, false, right, passing, failing):
    """Return labeled subjects by verdict and label, and unlabeled subjects by verdict."""
    labeled = [(1.0, 1.0)] * hits + [(0.0, 1.0)] * misses + [(1.0, 0.0)] * false + [(0.0, 0.0)] * right
    return labeled + [(1.0, None)] * passing + [(0.0, None)] * failing


def test_verdicts_are_strata():
    from scipy import stats

    estimate = corrected(binary(18, 4, 6, 32, 100, 140))
    n, sizes = 300, (124, 176)
    rates, label_counts = (18 / 24, 4 / 36), (24, 36)
    mean = sum(size / n * rate for size, rate in zip(sizes, rates, strict=True))
    z = stats.norm.ppf(0.975)
    ends = [wilson(rate, size) for rate, size in zip(rates, label_counts, strict=True)]
    extra = z**2 * (rates[0] - rates[1]) ** 2 * (sizes[0] / n) * (sizes[1] / n) / n
    low = mean - math.sqrt(sum((s / n * (r - e[0])) ** 2 for s, r, e in zip(sizes, rates, ends, strict=True)) + extra)
    high = mean + math.sqrt(sum((s / n * (e[1] - r)) ** 2 for s, r, e in zip(sizes, rates, ends, strict=True)) + extra)
    assert estimate["method"] == "stratified-wilson"
    assert (estimate["mean"], estimate["ci_low"], estimate["ci_high"]) == pytest.approx((mean, low, high), abs=1e-9)
    assert (estimate["n"], estimate["labels"], estimate["judge_mean"]) == (300, 60, pytest.approx(124 / 300))


def test_labels_may_be_drawn_at_different_rates_in_each_verdict():
    """Ten times as many labels of failed subjects: the mean stays the mean of the strata."""
    estimate = corrected(binary(9, 40, 1, 160, 90, 100))
    assert estimate["mean"] == pytest.approx(100 / 400 * 0.9 + 300 / 400 * 0.2)


@pytest.mark.parametrize("pair", [(0.5, 1.0), (1.0, 0.5)])
def test_labels_of_another_population_correct_verdicts_of_0_or_1_alone(pair):
    estimate = corrected([*binary(8, 2, 2, 8, 5, 5), pair], labels="other")
    assert estimate["mean"] is None
    assert len(estimate["reasons"]) == 1
    assert "scores and labels are not all 0 or 1" in estimate["reasons"][0]


def test_a_verdict_without_a_label_has_no_rate():
    assert corrected(binary(8, 0, 2, 0, 5, 5))["reasons"] == ["no subject with the verdict 0 has a label"]
    assert corrected(binary(2, 0, 0, 2, 5, 5))["reasons"] == ["too few labels: 4, at least 5 are needed"]


def scores(seed, n=60, unlabeled=500):
    rng = np.random.default_rng(seed)
    skill = rng.random(n + unlabeled)
    judged = np.clip(skill + rng.normal(0.1, 0.1, n + unlabeled), 0, 1)
    return judged, np.clip(skill[:n] + rng.normal(0, 0.05, n), 0, 1)


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_used_as_far_as_they_go_with_the_labels(seed):
    from scipy import stats

    judged, labels = scores(seed)
    estimate = corrected([*zip(judged[:60], labels, strict=True), *((value, None) for value in judged[60:])])
    f, rest = judged[:60], judged[60:]
    weight = np.clip(np.cov(labels, f, ddof=0)[0, 1] / ((1 + 60 / 500) * np.var(judged, ddof=1)), 0, 1)
    d = labels - weight * f
    mean = weight * rest.mean() + d.mean()
    half = stats.t.ppf(0.975, 59) * math.sqrt(d.var(ddof=1) / 60 + weight**2 * rest.var(ddof=1) / 500)
    expected = (mean, mean - half, mean + half, weight)
    assert estimate["method"] == "ppi++"
    assert (estimate["mean"], estimate["ci_low"], estimate["ci_high"], estimate["lambda"]) == pytest.approx(
        expected, abs=1e-9
    )


def test_the_estimate_is_the_one_of_ppi_python():
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    judged, labels = scores(8)
    estimate = corrected([*zip(judged[:60], labels, strict=True), *((value, None) for value in judged[60:])])
    expected = np.asarray(ppi.ppi_mean_pointestimate(labels, judged[:60], judged[60:])).item()
    assert estimate["mean"] == pytest.approx(expected, abs=1e-9)


def test_labels_of_another_population_correct_the_rate_by_sensitivity_and_specificity():
    estimate = corrected(binary(45, 5, 10, 90, 120, 280), "other")
    assert estimate["method"] == "rogan-gladen"
    assert (estimate["sensitivity"], estimate["specificity"]) == pytest.approx((0.9, 0.9))
    assert estimate["mean"] == pytest.approx((0.3 + 0.9 - 1) / 0.8)
    assert estimate["n"] == 400


def test_the_interval_is_lang_and_reiczigels():
    """Computed again step by step from their section 2."""
    from scipy import stats

    z, n, rate, (se, n_se), (sp, n_sp) = stats.norm.ppf(0.975), 400, 0.3, (0.9, 50), (0.85, 100)
    adjusted_n, p = n + z**2, (n * rate + z**2 / 2) / (n + z**2)
    se2, sp2 = (n_se * se + 1) / (n_se + 2), (n_sp * sp + 1) / (n_sp + 2)
    pi = (p + sp2 - 1) / (se2 + sp2 - 1)
    d = 2 * z**2 * (pi * se2 * (1 - se2) / (n_se + 2) - (1 - pi) * sp2 * (1 - sp2) / (n_sp + 2))
    square = (
        p * (1 - p) / adjusted_n + pi**2 * se2 * (1 - se2) / (n_se + 2) + (1 - pi) ** 2 * sp2 * (1 - sp2) / (n_sp + 2)
    )
    half = z * math.sqrt(square) / (se2 + sp2 - 1)
    estimate = rogan_gladen(rate, n, (se, n_se), (sp, n_sp))
    assert estimate == pytest.approx(((rate + sp - 1) / (se + sp - 1), pi + d - half, pi + d + half), abs=1e-9)


def test_a_judge_no_better_than_chance_is_refused():
    estimate = corrected(binary(5, 5, 5, 5, 10, 10), "other")
    assert estimate["mean"] is None
    assert "no more often than by chance" in estimate["reasons"][0]


@pytest.mark.parametrize("pairs", [binary(0, 0, 5, 5, 10, 10), binary(5, 5, 0, 0, 10, 10), binary(5, 1, 1, 5, 0, 0)])
def test_what_is_lacking_is_named(pairs):
    estimate = corrected(pairs, "other")
    assert estimate["mean"] is None
    assert estimate["reasons"][0].startswith("there are no")


@given(*[st.integers(0, 20)] * 6, st.sampled_from(["same", "other"]))
def test_whatever_comes_is_a_share_or_null_with_a_reason(a, b, c, d, e, f, labels):
    estimate = corrected(binary(a, b, c, d, e, f), labels)
    if estimate["mean"] is None:
        assert estimate["reasons"]
    else:
        assert 0 <= estimate["ci_low"] <= estimate["mean"] + 1e-9
        assert estimate["mean"] - 1e-9 <= estimate["ci_high"] <= 1


def test_a_label_outside_the_bounds_is_refused():
    with pytest.raises(ValueError, match="not between 0 and 1"):
        corrected([(1.0, 2.0)])


@pytest.mark.slow
def test_the_corrected_rate_covers_the_true_one():
    """A judge that passes too much, 60 labels of 600, 1,000 draws with a seed."""
    rng, inside, runs = np.random.default_rng(3), 0, 1000
    for _ in range(runs):
        truth = rng.random(600) < 0.4
        judged = np.where(truth, rng.random(600) < 0.95, rng.random(600) < 0.3).astype(float)
        is_labeled = rng.random(600) < 0.1
        estimate = corrected([(j, float(t) if s else None) for j, t, s in zip(judged, truth, is_labeled, strict=True)])
        inside += estimate["mean"] is not None and estimate["ci_low"] <= 0.4 <= estimate["ci_high"]
    assert 0.93 <= inside / runs <= 0.985


def test_in_a_pipeline_the_labels_are_a_column(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(at), "said": "xy"[at % 2], "gold": float(at % 3 == 0) if at < 30 else None} for at in range(90)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = "source: {rows/jsonl: {path: rows.jsonl}}\ntask: ask\nmetrics: [check/regex: {pattern: x, as: has_x}]\n"
    aggregate = "aggregates: [trust/prevalence: {on: has_x, label: gold}]\n"
    task = FunctionTask(lambda row: row["said"])
    document = run_pipeline(text + aggregate, components={"ask": task}).document
    estimate = document["aggregates"]["trust/prevalence"]
    assert (estimate["n"], estimate["labels"], estimate["method"]) == (90, 30, "stratified-wilson")
    assert estimate["mean"] == pytest.approx(10 / 30)
