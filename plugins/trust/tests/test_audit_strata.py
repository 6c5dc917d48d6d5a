"""Audits of groups with different rates, in proportion to the residual deviation of the truth in each group."""

from __future__ import annotations

import json
import math
from collections import defaultdict

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ALL_METRICS, ConfigError, Cost, Score
from dicast.testing import run_pipeline
from dicast_trust.audits.corrected import Corrected
from dicast_trust.audits.rates import rates_for_width

GROUPS, RATES = np.array(["easy", "hard"]), {"easy": 0.1, "hard": 0.5}


def population(rng, n, *, binary=False, sessions=0):
    """Return scores, truths, passes, groups and sessions; in the group ``hard`` the score is a weak predictor."""
    group = GROUPS[(rng.random(n) < 0.4).astype(int)]
    skill, noise = rng.random(n), np.where(group == "hard", 0.35, 0.03)
    truth = (rng.random(n) < skill).astype(float) if binary else np.clip(skill + rng.normal(0, 0.05, n), 0, 1)
    if binary:
        truth = np.where((group == "easy") & (skill < 0.6), 0.0, truth)
    proxy = np.clip((truth if not binary else skill) * 0.7 + rng.normal(0, 1, n) * noise, 0, 1)
    passed = proxy >= 0.6
    session = [f"s{at}" for at in rng.integers(0, sessions, n)] if sessions else [None] * n
    return np.where(passed, truth, proxy), truth, passed, group, session


def run_subjects(score, truth, passed, audited, group, session):
    rows = zip(score, truth, passed, audited, group, session, strict=True)
    return [
        {
            "session_id": session_id,
            "stratum": "" if has_passed else str(part),
            "state": "passed" if has_passed else "audited" if is_audited else "held",
            "score": float(value),
            "truths": {ALL_METRICS: float(y)} if has_passed or is_audited else {},
            "costs": [],
        }
        for value, y, has_passed, is_audited, part, session_id in rows
    ]


def corrected(subjects, rates=None):
    live = Corrected([ALL_METRICS], 0.2, RATES if rates is None else rates)
    live.add(subjects)
    result = live.finish({ALL_METRICS: sum(subject["score"] for subject in subjects) / len(subjects)})
    return result["corrected"][ALL_METRICS], result["reasons"].get(ALL_METRICS), result["audit"]


def draw(rng, passed, group, rates=RATES):
    return ~passed & (rng.random(len(passed)) < np.array([rates[str(name)] for name in group]))


def by_hand(score, truth, passed, audited, group, session):
    """Compute the general formula in each group, over arrays; the pseudo-scores of all groups are combined."""
    from scipy import stats

    n, mean, pseudo, added, sampled, terms = len(score), 0.0, np.where(passed, truth, 0.0), 0.0, 0.0, 0.0
    mean = passed.mean() * truth[passed].mean()
    for name in GROUPS:
        members = ~passed & (group == name)
        sampled_members, w, m = audited & members, members.mean(), (audited & members).sum()
        f, y = score[sampled_members], truth[sampled_members]
        slope = float(np.clip(np.cov(y, f)[0, 1] / np.var(f, ddof=1), 0, 1)) if m >= 10 else 0.0
        d = y - slope * f
        squares, degrees = ((d - d.mean()) ** 2).sum(), m - 1 - (slope > 0)
        mean += w * (slope * score[members].mean() + d.mean())
        part = w**2 * squares / degrees / m
        added, sampled, terms = added + part, sampled + w**2 * squares / m**2, terms + part**2 / degrees
        off = sampled_members * (truth - slope * score - d.mean()) * (members.sum() / m)
        pseudo = np.where(members, slope * score + d.mean() + off, pseudo)
    if session[0] is None:
        rest = pseudo.var(ddof=1) / n - sampled
        variance = rest + added
        degrees = variance**2 / (rest**2 / (n - 1) + terms)
    else:
        sums = defaultdict(float)
        for of, value in zip(session, pseudo - mean, strict=True):
            sums[of] += value
        count, audits = (
            len(sums),
            len({of for of, sampled_members in zip(session, audited, strict=True) if sampled_members}),
        )
        variance = count / (count - 1) * sum(total**2 for total in sums.values()) / n**2
        degrees = variance**2 / ((variance - added) ** 2 / (count - 1) + added**2 / (audits - 1))
    half = stats.t.ppf(0.975, degrees) * math.sqrt(variance)
    return mean, max(0, mean - half), min(1, mean + half)


@pytest.mark.parametrize("sessions", [0, 80])
@pytest.mark.parametrize("seed", range(5))
def test_each_group_has_its_own_slope_and_shift(seed, sessions):
    rng = np.random.default_rng(seed)
    score, truth, passed, group, session = population(rng, 500, sessions=sessions)
    audited = draw(rng, passed, group)
    estimate, _, _ = corrected(run_subjects(score, truth, passed, audited, group, session))
    expected = by_hand(score, truth, passed, audited, group, session)
    assert (estimate["mean"], estimate["ci_low"], estimate["ci_high"]) == pytest.approx(expected, abs=1e-9)
    assert {name: part["rate"] for name, part in estimate["strata"].items()} == RATES
    assert sum(part["n_audited"] for part in estimate["strata"].values()) == estimate["n_audited"] == audited.sum()


def test_one_group_is_as_without_groups():
    rng = np.random.default_rng(9)
    score, truth, passed, group, session = population(rng, 300)
    audited = ~passed & (rng.random(300) < 0.3)
    subjects = run_subjects(score, truth, passed, audited, np.full(300, "all"), session)
    grouped, _, _ = corrected(subjects, {"all": 0.3})
    live = Corrected([ALL_METRICS], 0.3)
    live.add([{**subject, "stratum": ""} for subject in subjects])
    other = live.finish({ALL_METRICS: score.mean()})["corrected"][ALL_METRICS]
    method = other.pop("method")
    assert grouped["method"] == method
    assert {key: grouped[key] for key in other} == pytest.approx(other, rel=1e-12)


def test_a_group_without_enough_audits_has_no_mean_and_is_named():
    rng = np.random.default_rng(1)
    score, truth, passed, group, session = population(rng, 300)
    audited = draw(rng, passed, group) & (group == "hard")
    estimate, reason, _ = corrected(run_subjects(score, truth, passed, audited, group, session))
    assert estimate is None
    assert reason["reason"] == "too_few_audits"
    assert "'easy'" in reason["message"]


def widths(rng, runs, rates, *, binary, n=600):
    """Return the coverage of the interval, its mean width, and the mean number of audits."""
    _, truth, *_ = population(np.random.default_rng(0), 400_000, binary=binary)
    hits, wide, audits = 0, [], []
    for _ in range(runs):
        score, truths, passed, group, session = population(rng, n, binary=binary)
        audited = draw(rng, passed, group, rates)
        estimate, _, _ = corrected(run_subjects(score, truths, passed, audited, group, session), rates)
        if estimate is None:
            continue
        hits += estimate["ci_low"] <= truth.mean() <= estimate["ci_high"]
        wide.append(estimate["ci_high"] - estimate["ci_low"])
        audits.append(estimate["n_audited"])
    return hits / len(wide), np.mean(wide), np.mean(audits)


@pytest.mark.slow
@pytest.mark.parametrize("binary", [True, False])
def test_groups_at_rates_of_their_own_are_covered(binary):
    covered, _, _ = widths(np.random.default_rng(31), 500, RATES, binary=binary)
    assert 0.925 <= covered <= 0.98


@pytest.mark.slow
def test_rates_in_proportion_to_tau_give_a_narrower_interval_for_as_many_audits():
    _, narrow, audits = widths(np.random.default_rng(32), 300, {"easy": 0.1, "hard": 0.38}, binary=False)
    _, wide, even_audits = widths(np.random.default_rng(32), 300, {"easy": 0.2, "hard": 0.2}, binary=False)
    assert audits <= 1.15 * even_audits
    assert narrow < wide


@given(
    st.lists(st.tuples(st.floats(0.01, 0.2), st.floats(0, 0.2)), min_size=1, max_size=4),
    st.integers(500, 5000),
    st.floats(0.02, 0.1),
)
def test_rates_for_a_width_give_it_and_are_in_proportion(parts, subjects, width):
    named = {str(at): part for at, part in enumerate(parts)}
    variance = 0.02 + sum(share * tau2 for share, tau2 in parts)
    left = subjects * (width / 1.959963984540054) ** 2 - 0.02
    if left <= sum(share * tau2 for share, tau2 in parts):
        return  # refused before: not even all audits give it
    rates = rates_for_width(width, subjects, variance, named)
    least = {name: min(1, max(0.01, 10 / (subjects * share))) for name, (share, _) in named.items()}
    inside = {name: rate for name, rate in rates.items() if least[name] < rate < 1}
    scales = [rate / math.sqrt(named[name][1]) for name, rate in inside.items()]
    assert scales == pytest.approx([scales[0]] * len(scales)) if scales else True
    assert all(0 < rate <= 1 for rate in rates.values())
    given_width = sum(share * tau2 / rates[name] for name, (share, tau2) in named.items())
    assert given_width <= left * (1 + 1e-9)  # the least rate may make it narrower


# In runs


@attrs.frozen
class Half:
    tier = "proxy"
    name = "half"

    def score(self, subject):
        return Score(float(subject.output.split()[0]))


@attrs.frozen
class Truth:
    tier = "truth"
    name = "truth"

    def score(self, subject):
        return Score(float(subject.output.split()[1]), cost=Cost("0.01"))

    def estimate(self, subject):
        return Cost("0.01")


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """Return a function that runs 600 rows in two topics and audits rows that the proxy held back."""
    monkeypatch.chdir(tmp_path)
    score, truth, passed, group, _ = population(np.random.default_rng(7), 600)
    rows = zip(score, truth, passed, group, strict=True)
    (tmp_path / "rows.jsonl").write_text(
        "\n".join(
            json.dumps(
                {"id": str(n), "output": f"{0.9 if ok else min(value, 0.49):.3f} {truth_value:.3f}", "topic": str(of)}
            )
            for n, (value, truth_value, ok, of) in enumerate(rows)
        )
    )

    def run(audit, extra=""):
        text = f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [half, truth]\nscoring: {{audit: {audit}}}\nbudget: {{session: 100 usd, day: 100 usd}}\n{extra}"
        return run_pipeline(text, components={"half": Half(), "truth": Truth()})

    return run


def rates_of(result):
    """Return the propensities of audited subjects, by topic."""
    with open("rows.jsonl") as file:
        topics = {row["id"]: row["topic"] for row in map(json.loads, file)}
    propensities = defaultdict(set)
    for verdict in result.verdicts:
        if verdict.truth_reason == "audit":
            propensities[topics[verdict.subject_id]].add(verdict.propensity)
    return dict(propensities)


def test_a_run_audits_each_group_at_its_rate(audited):
    result = audited("{rate: 0.1, seed: 1, strata: {by: topic, rates: {hard: 0.6}}}")
    assert rates_of(result) == {"easy": {0.1}, "hard": {0.6}}
    strata = result.document["score"]["corrected"]["strata"]
    assert {name: part["rate"] for name, part in strata.items()} == {"easy": 0.1, "hard": 0.6}
    for part in strata.values():
        assert part["n_audited"] / part["held_back"] == pytest.approx(part["rate"], abs=0.12)
    audit = result.document["score"]["audit"]["strata"]
    assert audit["hard"]["tau2"] > audit["easy"]["tau2"]


def test_subjects_of_several_rollouts_are_audited_at_the_rate_of_their_group(audited):
    result = audited("{rate: 0.1, seed: 1, strata: {by: topic, rates: {hard: 0.6}}}, rollouts: 2")
    assert rates_of(result) == {"easy": {0.1}, "hard": {0.6}}
    assert result.document["score"]["corrected"]["strata"]["hard"]["rate"] == 0.6


def test_auto_takes_rates_in_proportion_to_tau(audited):
    ledger = "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    pilot = audited("{rate: 0.4, seed: 1, strata: {by: topic}}", ledger).document["score"]["audit"]["strata"]
    auto = audited("{rate: auto, seed: 1, strata: {by: topic}}", ledger)
    rates = {name: part["rate"] for name, part in auto.document["score"]["corrected"]["strata"].items()}
    least = 10 / (600 * pilot["easy"]["share_held"])  # ten audits of each group at least
    assert rates == {"easy": max(least, pilot["easy"]["best_rate"]), "hard": pilot["hard"]["best_rate"]}
    assert pilot["easy"]["best_rate"] / pilot["hard"]["best_rate"] == pytest.approx(
        math.sqrt(pilot["easy"]["tau2"] / pilot["hard"]["tau2"])
    )
    wide = audited("{rate: {auto: {width: 0.04}}, seed: 1, strata: {by: topic}}", ledger).document["score"]
    assert wide["corrected"]["strata"]["hard"]["rate"] > wide["corrected"]["strata"]["easy"]["rate"]
    half = (wide["corrected"]["ci_high"] - wide["corrected"]["ci_low"]) / 2
    assert half == pytest.approx(0.04, rel=0.25)


@pytest.mark.parametrize(
    ("strata", "wrong"),
    [
        ("{}", "by"),
        ("{by: topic, rates: {hard: 0}}", "invalid value for rates.hard, expected more than 0 and at most 1"),
        ("{by: topic, rate: {hard: 0.1}}", "did you mean 'rates'"),
    ],
)
def test_wrong_groups_are_refused(audited, strata, wrong):
    with pytest.raises(ConfigError, match=wrong):
        audited(f"{{rate: 0.1, strata: {strata}}}")


def test_a_group_that_nobody_held_back_is_in_is_warned_of(caplog):
    rng = np.random.default_rng(1)
    score, truth, passed, group, session = population(rng, 300)
    subjects = run_subjects(score, truth, passed, draw(rng, passed, group), group, session)
    corrected(subjects)
    assert caplog.text == ""
    corrected(subjects, {**RATES, "refunds": 0.5})
    assert (
        "no subject that the proxies held back is in the group 'refunds'; the groups are 'easy', 'hard'" in caplog.text
    )
