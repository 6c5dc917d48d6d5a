"""Means corrected by audits, against re-implementations that store every subject, and by simulation."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from fractions import Fraction

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ALL_METRICS, Cost, Score
from dicast.testing import run_pipeline
from dicast.toolkit.intervals import wilson
from dicast_trust.audits.corrected import Corrected, combined_wilson


def population(rng, n, *, pass_line=0.5, binary=False, sessions=False, noise=0.2):
    """Return scores and truths of subjects, whether they pass, and their sessions."""
    skill = rng.random(n)
    truth = (rng.random(n) < skill).astype(float) if binary else np.clip(skill + rng.normal(0, 0.1, n), 0, 1)
    proxy = np.clip(skill + rng.normal(0, noise, n), 0, 1)
    passed = proxy >= pass_line
    score = np.where(passed, truth, proxy)
    groups = [f"s{at}" for at in rng.integers(0, max(2, n // 3), n)] if sessions else [None] * n
    return score, truth, passed, groups


def run_subjects(score, truth, passed, audited, groups):
    """Return the subjects as a run reports them."""
    return [
        {
            "session_id": group,
            "state": "passed" if has_passed else "audited" if is_audited else "held",
            "score": float(value),
            "truths": {ALL_METRICS: float(y)} if has_passed or is_audited else {},
            "costs": [],
        }
        for value, y, has_passed, is_audited, group in zip(score, truth, passed, audited, groups, strict=True)
    ]


def corrected(subjects, rate=0.2):
    live = Corrected([ALL_METRICS], rate)
    live.add(subjects[: len(subjects) // 2])
    live.add(subjects[len(subjects) // 2 :])
    plain = sum(subject["score"] for subject in subjects) / len(subjects)
    result = live.finish({ALL_METRICS: plain})
    return result["corrected"][ALL_METRICS], result["reasons"].get(ALL_METRICS)


def general(score, truth, passed, audited, groups):
    """Compute the general formula as it is written, over arrays."""
    from scipy import stats

    n, m, held_back = len(score), int(audited.sum()), ~passed
    w, weight = held_back.mean(), held_back.sum() / m
    f, y = score[audited], truth[audited]
    slope = float(np.clip(np.cov(y, f)[0, 1] / np.var(f, ddof=1), 0, 1)) if m >= 10 and np.ptp(f) > 0 else 0.0
    d = y - slope * f
    mean = (1 - w) * (truth[passed].mean() if passed.any() else 0) + w * (slope * score[held_back].mean() + d.mean())
    audit_variance = w**2 * ((d - d.mean()) ** 2).sum() / (m - 1 - (slope > 0)) / m
    pseudo = np.where(passed, truth, slope * score + d.mean() + audited * (truth - slope * score - d.mean()) * weight)
    if groups[0] is None:
        rest = pseudo.var(ddof=1) / n - w**2 * ((d - d.mean()) ** 2).sum() / m**2
        variance = rest + audit_variance
        degrees = variance**2 / (rest**2 / (n - 1) + audit_variance**2 / (m - 1 - (slope > 0)))
    else:
        sums = defaultdict(float)
        for group, value in zip(groups, pseudo - pseudo.mean(), strict=True):
            sums[group] += value
        clusters = len(sums)
        variance = clusters / (clusters - 1) * sum(value**2 for value in sums.values()) / n**2
        with_audit = len({group for group, seen in zip(groups, audited, strict=True) if seen})
        degrees = variance**2 / (
            (variance - audit_variance) ** 2 / (clusters - 1) + audit_variance**2 / (with_audit - 1)
        )
    half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    weights, truths = np.where(passed, 1.0, weight)[passed | audited], truth[passed | audited]
    spread = np.average((truths - np.average(truths, weights=weights)) ** 2, weights=weights)
    return {
        "mean": mean,
        "ci_low": max(0, mean - half),
        "ci_high": min(1, mean + half),
        "lambda": slope,
        "ess": spread / variance,
    }


@pytest.mark.parametrize("sessions", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_the_general_formula(seed, sessions):
    rng = np.random.default_rng(seed)
    score, truth, passed, groups = population(rng, 300, pass_line=(0.3, 0.5, 1.1)[seed % 3], sessions=sessions)
    audited = ~passed & (rng.random(300) < 0.3)
    estimate, _ = corrected(run_subjects(score, truth, passed, audited, groups))
    expected = general(score, truth, passed, audited, groups)
    assert {key: estimate[key] for key in expected} == pytest.approx(expected, abs=1e-9)
    assert (estimate["method"], estimate["n_audited"], estimate["held_back"]) == (
        "general",
        audited.sum(),
        (~passed).sum(),
    )
    assert estimate["plain_bias"] == pytest.approx(score.mean() - expected["mean"], abs=1e-9)
    assert estimate["plain_bias_low"] == pytest.approx(score.mean() - expected["ci_high"], abs=1e-9)


def test_subjects_without_a_session_are_clusters_next_to_sessions():
    rng = np.random.default_rng(9)
    score, truth, passed, groups = population(rng, 200, sessions=True)
    groups = [group if at % 2 else None for at, group in enumerate(groups)]
    audited = ~passed & (rng.random(200) < 0.4)
    estimate, _ = corrected(run_subjects(score, truth, passed, audited, groups))
    named = [group or f"lone{at}" for at, group in enumerate(groups)]
    expected = general(score, truth, passed, audited, named)
    assert {key: estimate[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def exact_wilson(rate: Fraction, n: Fraction):
    z = Fraction(1.959963984540054)
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = float(z / (1 + z * z / n)) * math.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    return float(centre) - half, float(centre) + half


@given(st.integers(0, 40), st.integers(1, 40), st.integers(0, 12), st.integers(5, 12), st.integers(12, 60))
def test_strata_of_0_and_1(passing, failing, right, audits, held_count):
    """Each stratum by Wilson in fractions, with random sizes of the strata."""
    right = min(right, audits)
    n_passed = passing + failing
    scores = [1.0] * passing + [0.0] * failing
    subjects = [
        {"session_id": None, "state": "passed", "score": s, "truths": {ALL_METRICS: s}, "costs": []} for s in scores
    ]
    for at in range(held_count):
        truths = {ALL_METRICS: float(at < right)} if at < audits else {}
        subjects.append(
            {"session_id": None, "state": "audited" if truths else "held", "score": 0.25, "truths": truths, "costs": []}
        )
    estimate, _ = corrected(subjects)
    n, rates = n_passed + held_count, (Fraction(passing, n_passed), Fraction(right, audits))
    shares = Fraction(n_passed, n), Fraction(held_count, n)
    mean = sum(share * rate for share, rate in zip(shares, rates, strict=True))
    ends = [exact_wilson(rate, Fraction(size)) for rate, size in zip(rates, (n_passed, audits), strict=True)]
    sizes = 1.959963984540054**2 * float((rates[0] - rates[1]) ** 2 * shares[0] * shares[1]) / n
    low = float(mean) - math.sqrt(
        sum((float(s) * (float(r) - e[0])) ** 2 for s, r, e in zip(shares, rates, ends, strict=True)) + sizes
    )
    high = float(mean) + math.sqrt(
        sum((float(s) * (e[1] - float(r))) ** 2 for s, r, e in zip(shares, rates, ends, strict=True)) + sizes
    )
    assert estimate["method"] == "stratified-wilson"
    expected = {"mean": float(mean), "ci_low": max(0.0, low), "ci_high": min(1.0, high)}
    assert {key: estimate[key] for key in expected} == pytest.approx(expected, abs=1e-9)


def test_one_stratum_is_wilson_as_statsmodels_has_it():
    proportion = pytest.importorskip("statsmodels.stats.proportion", reason="statsmodels is not installed")
    assert wilson(0.3, 50) == pytest.approx(proportion.proportion_confint(15, 50, method="wilson"), abs=1e-9)
    assert combined_wilson([(50, 0.3, 50)]) == pytest.approx(wilson(0.3, 50), abs=1e-12)


def test_all_audited_is_the_mean_itself():
    rng = np.random.default_rng(2)
    score, truth, passed, groups = population(rng, 120)
    estimate, _ = corrected(run_subjects(score, truth, passed, ~passed, groups))
    assert estimate["mean"] == pytest.approx(truth.mean(), abs=1e-12)


@given(st.integers(0, 1), st.integers(2, 9))
def test_too_few_audits_give_no_mean_and_say_how_many_subjects_would(binary, audits):
    held_count = 40
    passed = [{"session_id": None, "state": "passed", "score": 1.0, "truths": {ALL_METRICS: 1.0}, "costs": []}] * 60
    truths = {ALL_METRICS: 1.0 if binary else 0.7}
    audited_subjects = [{"session_id": None, "state": "audited", "score": 0.2, "truths": truths, "costs": []}] * audits
    rest = [{"session_id": None, "state": "held", "score": 0.2, "truths": {}, "costs": []}] * (held_count - audits)
    estimate, reason = corrected([*passed, *audited_subjects, *rest], rate=0.05)
    if binary and audits >= 5:
        assert estimate is not None
        return
    assert estimate is None
    assert (reason["reason"], reason["subjects"]) == ("too_few_audits", math.ceil(10 / (0.4 * 0.05)))


def test_what_the_budget_skipped_leaves_no_mean():
    skipped = {"session_id": None, "state": "skipped", "score": 0.6, "truths": {}, "costs": []}
    passed = {"session_id": None, "state": "passed", "score": 1.0, "truths": {ALL_METRICS: 1.0}, "costs": []}
    estimate, reason = corrected([passed] * 20 + [skipped])
    assert (estimate, reason["reason"]) == (None, "truths_skipped")


def test_uniform_audits_report_the_differences_that_they_may_miss():
    score, passed = np.array([0.2] * 60 + [0.9] * 40), np.array([False] * 60 + [True] * 40)
    audited = np.array([True] * 15 + [False] * 85)
    estimate, _ = corrected(run_subjects(score, np.where(passed, 0.9, 0.3), passed, audited, [None] * 100))
    assert estimate["notes"] == [
        "audits_alike: the truth differs from the score by the same amount in every audit; up to 20 % of the held back subjects may differ by another amount"
    ]


def test_few_sessions_are_reported():
    rng = np.random.default_rng(3)
    score, truth, passed, _ = population(rng, 120)
    audited = ~passed & (rng.random(120) < 0.5)
    few_sessions, _ = corrected(run_subjects(score, truth, passed, audited, [f"s{at % 6}" for at in range(120)]))
    assert few_sessions["notes"][0].startswith("few_sessions")
    many_sessions, _ = corrected(run_subjects(score, truth, passed, audited, [f"s{at // 2}" for at in range(120)]))
    assert "notes" not in many_sessions


def test_a_score_that_does_not_vary_has_no_slope():
    rng = np.random.default_rng(4)
    truth, passed = rng.random(100), np.arange(100) < 50
    score = np.where(passed, truth, 0.1 + 0.2)
    estimate, _ = corrected(run_subjects(score, truth, passed, ~passed & (np.arange(100) % 2 == 0), [None] * 100))
    assert estimate["lambda"] == 0.0


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_the_order_of_subjects_makes_no_difference(seed, binary, sessions):
    rng = np.random.default_rng(seed)
    score, truth, passed, groups = population(rng, 80, binary=binary, sessions=sessions)
    audited = ~passed & (rng.random(80) < 0.5)
    subjects = run_subjects(score, truth, passed, audited, groups)
    forward, backward = corrected(subjects)[0], corrected(subjects[::-1])[0]
    assert (forward is None) == (backward is None)
    if forward is not None:
        assert forward["method"] == backward["method"]
        assert forward["mean"] == pytest.approx(backward["mean"], abs=1e-9)
        assert (forward["ci_low"], forward["ci_high"]) == pytest.approx(
            (backward["ci_low"], backward["ci_high"]), abs=1e-9
        )


def covered(runs, n, *, binary, seed):
    """Return the coverage of the population mean by the corrected interval, and by the interval of the plain gate."""
    rng, hits, plain = np.random.default_rng(seed), 0, 0
    _, truth, _, _ = population(rng, 200_000, binary=binary, pass_line=0.6)
    for _ in range(runs):
        score, truths, passed, groups = population(rng, n, binary=binary, pass_line=0.6)
        audited = np.zeros(n, dtype=bool)
        audited[rng.choice(np.flatnonzero(~passed), 12, replace=False)] = True
        estimate, _ = corrected(run_subjects(score, truths, passed, audited, groups))
        hits += estimate["ci_low"] <= truth.mean() <= estimate["ci_high"]
        half = 1.96 * score.std(ddof=1) / math.sqrt(n)
        plain += abs(score.mean() - truth.mean()) <= half
    return hits / runs, plain / runs


@pytest.mark.slow
@pytest.mark.parametrize("binary", [True, False])
def test_the_corrected_interval_covers_the_mean_where_the_plain_one_does_not(binary):
    """With a seed; ``benchmarks/corrected.py`` has 2,000 runs of each."""
    share, plain = covered(500, 400, binary=binary, seed=21)
    assert 0.93 <= share <= 0.97
    assert plain < share


def hits(draw, truth, runs=400, seed=1):
    """Return how often the corrected interval contains *truth*, among runs with an interval."""
    rng, inside, count = np.random.default_rng(seed), 0, 0
    for _ in range(runs):
        score, known_truth, passed, audited, groups = draw(rng)
        estimate, _ = corrected(run_subjects(score, known_truth, passed, audited, groups))
        if estimate is not None:
            count += 1
            inside += estimate["ci_low"] - 1e-12 <= truth <= estimate["ci_high"] + 1e-12
    return inside / count


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "passing", "failing", "share_held", "rate"),
    [
        (100, 0.99, 0.01, 0.5, 0.2),  # nearly one class in each stratum, ten audits
        (100, 1.0, 0.0, 0.5, 0.2),
        (1000, 0.02, 0.02, 0.7, 0.02),  # a rare truth
        (400, 0.9, 0.2, 0.9, 0.03),  # nearly all held back
        (2000, 0.95, 0.3, 0.05, 0.1),  # nearly none
        (500, 0.9, 0.5, 0.5, 0.99),  # nearly all audited
    ],
)
def test_extreme_rates_are_covered(n, passing, failing, share_held, rate):
    def draw(rng):
        passed = rng.random(n) >= share_held
        truth = (rng.random(n) < np.where(passed, passing, failing)).astype(float)
        return np.where(passed, truth, 0.3), truth, passed, ~passed & (rng.random(n) < rate), [None] * n

    assert hits(draw, (1 - share_held) * passing + share_held * failing) >= 0.92


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sessions", "size", "share", "rate"), [(20, 20, 0.5, 0.2), (40, 10, 0.5, 0.1), (100, 5, 0.3, 0.1)]
)
def test_sessions_that_hang_together_are_covered(sessions, size, share, rate):
    def draw(rng):
        of = np.repeat(np.arange(sessions), size)
        shared, individual = (
            rng.normal(0, 0.15 * math.sqrt(share), sessions)[of],
            rng.normal(0, 0.15 * math.sqrt(1 - share), len(of)),
        )
        truth = 0.5 + shared + individual
        truth = np.clip(truth, 0, 1)
        proxy = np.clip(truth + rng.normal(-0.1, 0.1, len(of)), 0, 1)
        passed = proxy >= 0.5
        audited = ~passed & (rng.random(len(of)) < rate)
        return np.where(passed, truth, proxy), truth, passed, audited, [f"s{number}" for number in of]

    assert 0.92 <= hits(draw, 0.5) <= 0.98


# In runs


@attrs.frozen
class Half:
    """Proxy that returns the first number of the output."""

    tier = "proxy"
    name = "half"

    def score(self, subject):
        return Score(float(subject.output.split()[0]))


@attrs.frozen
class Truth:
    """Truth metric that returns the second number of the output, at a cost."""

    tier = "truth"
    name = "truth"

    def score(self, subject):
        from dicast import Cost

        return Score(float(subject.output.split()[1]), cost=Cost("0.01"))

    def estimate(self, subject):
        from dicast import Cost

        return Cost("0.01")


BUDGET = "budget: {session: 100 usd, day: 100 usd}\n"


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """Return a function that runs 400 rows with a proxy and a truth, and audits rows that the proxy held back."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(7)
    score, truth, _, _ = population(rng, 400, noise=0.3)
    lines = [
        json.dumps({"id": str(at), "output": f"{abs(p):.3f} {t:.3f}"})
        for at, (p, t) in enumerate(zip(score, truth, strict=True))
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))

    def run(scoring="{audit: {rate: 0.3, seed: 1}}", extra="", name="run", metric=None):
        text = f"name: {name}\nsource: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [half, truth]\nscoring: {scoring}\n{BUDGET}{extra}"
        return run_pipeline(text, components={"half": Half(), "truth": metric or Truth()})

    return run


def truths(rows="rows.jsonl"):
    with open(rows) as lines:
        return [tuple(map(float, json.loads(line)["output"].split())) for line in lines]


def test_a_run_corrects_its_mean_and_that_of_its_truth_metric(audited):
    document = audited().document
    pairs = truths()
    combined = np.mean([(p + t) / 2 for p, t in pairs])
    estimate = document["score"]["corrected"]
    assert estimate["ci_low"] <= combined <= estimate["ci_high"]
    assert abs(estimate["mean"] - combined) < abs(document["score"]["mean"] - combined)
    of_truth = document["metrics"]["truth"]["corrected"]
    assert of_truth["ci_low"] <= np.mean([t for _, t in pairs]) <= of_truth["ci_high"]
    assert "corrected" not in document["metrics"]["half"]
    assert (estimate["held_back"], estimate["n_audited"]) == (
        document["score"]["by_tier"]["proxy"],
        of_truth["n_audited"],
    )


@pytest.mark.slow
def test_an_audit_scores_as_a_run_without_a_gate(audited):
    scores = {verdict.subject_id: verdict.score for verdict in audited("{threshold: 0}").verdicts}
    result = audited("{audit: {rate: 1, seed: 1}}")
    assert result.document["score"]["corrected"]["mean"] == pytest.approx(np.mean(list(scores.values())), abs=1e-9)
    only = audited("{audit: {rate: 1}, combine: truth}")
    assert only.document["score"]["corrected"]["mean"] == pytest.approx(np.mean([t for _, t in truths()]), abs=1e-9)


def test_without_audits_the_document_is_as_it_was(audited):
    document = audited("{threshold: 0.5}").document
    assert "corrected" not in document["score"]
    assert set(document["cost"]) == {"usd", "msat"}


def test_the_gate_may_go_by_the_corrected_mean(audited):
    gate = "gate: {on: metrics, min_score: %s, corrected: true, bound: %s}"
    result = audited(extra=gate % (0.1, "interval"))
    estimate, clause = result.document["score"]["corrected"], result.document["gate"]["clauses"][1]
    assert (clause["value"], clause["low"], clause["high"]) == (
        estimate["mean"],
        estimate["ci_low"],
        estimate["ci_high"],
    )
    assert result.exit_code == 0
    assert audited(extra=gate % (0.99, "interval")).exit_code == 1
    assert audited(extra=gate % (round(estimate["mean"], 3), "interval")).exit_code == 3
    unaudited = audited("{audit: {rate: 0.001}}", gate % (0.1, "point"))
    assert unaudited.exit_code == 3
    assert "held back subjects were audited" in unaudited.document["gate"]["reasons"][0]


@pytest.mark.parametrize(
    ("scoring", "gate", "wrong"),
    [
        ("{threshold: 0.5}", "{on: metrics, min_score: 0.5, corrected: true}", "corrected needs audits"),
        (
            "{audit: {rate: 0.1}}",
            "{on: half, min_score: 0.5, corrected: true}",
            "audits correct the mean of metrics, truth",
        ),
        (
            "{audit: {rate: 0.1}}",
            "{on: metrics, min_pass_rate: 0.5, corrected: true}",
            "corrected needs min_score or max_score",
        ),
        (
            "{audit: {rate: 0.1}}",
            "{on: metrics, min_score: 0.5, corrected: true, bound: anytime}",
            "no interval at any time",
        ),
        ("{audit: {rate: 1.1}}", "{}", "from 0 to 1"),
        ("{audit: {rate: {auto: {width: 0}}}}", "{}", "width"),
        ("{audit: {rate: often}}", "{}", "rate"),
    ],
)
def test_what_no_audit_corrects_is_refused(audited, scoring, gate, wrong):
    with pytest.raises(Exception, match=wrong):
        audited(scoring, f"gate: {gate}")


class Uneven(Truth):
    """A truth metric that costs less for some subjects."""

    def score(self, subject):
        return attrs.evolve(super().score(subject), cost=Cost("0.01" if subject.id < "3" else "0.003"))


def test_the_mean_cost_of_a_subject_has_12_places(audited):
    audit = audited("{audit: {rate: 0.3, seed: 3}}", metric=Uneven()).document["score"]["audit"]
    assert re.fullmatch(r"0\.\d{12}", audit["cost_truth"])


def test_what_judging_everything_would_have_cost(audited):
    document = audited().document
    assert float(document["cost"]["if_all_judged"]) == pytest.approx(400 * 0.01)
    audit = document["score"]["audit"]
    share_held, rate, spread, tau2 = audit["share_held"], 0.3, audit["variance"], audit["tau2"]
    ratio = (
        (spread + share_held * tau2 * (1 / rate - 1))
        * ((1 - share_held) * 0.01 + share_held * rate * 0.01)
        / (spread * 0.01)
    )
    assert document["cost"]["ratio_at_equal_width"] == pytest.approx(ratio)
    best = math.sqrt(tau2 * (1 - share_held) * 0.01 / ((spread - share_held * tau2) * 0.01))
    assert audit["best_rate"] == pytest.approx(min(1, max(0.01, best)))


def test_the_rate_is_taken_from_the_newest_run_with_audits(audited):
    ledger = "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    with pytest.raises(Exception, match="the ledger has no audited run of these metrics"):
        audited("{audit: {rate: auto}}", ledger)
    pilot = audited(extra=ledger).document["score"]["audit"]
    audit = audited("{audit: {rate: auto}}", ledger).document["score"]["audit"]
    assert audit["rate"] == pilot["best_rate"]
    wide = audited("{audit: {rate: {auto: {width: 0.05}}}}", ledger).document["score"]["audit"]["rate"]
    newest = audit  # the newest run before it
    left = 400 * (0.05 / 1.959963984540054) ** 2 - (newest["variance"] - newest["share_held"] * newest["tau2"])
    assert wide == pytest.approx(newest["share_held"] * newest["tau2"] / left)
    with pytest.raises(Exception, match=r"[\d,]+ or more are needed"):
        audited("{audit: {rate: {auto: {width: 0.001}}}}", ledger)
