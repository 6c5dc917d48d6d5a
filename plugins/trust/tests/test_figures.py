"""Figures that a calibration and its audits have to reach, by simulation with fixed seeds and on recorded judges."""

from __future__ import annotations

import gzip
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import pytest

from dicast.toolkit.gold import GoldLabel
from dicast_trust.calibration.document import Calibration
from dicast_trust.calibration.labels_needed import least_n
from dicast_trust.calibration.ladder import LabeledSignals, RungTest, climb, thresholds
from dicast_trust.calibration.signals import QUANTILES, cross_fitted, fit, fold, scores
from dicast_trust.statistics.e_process import ln_above
from dicast_trust.verdicts.outcomes import Outcome
from dicast_trust.verdicts.rules import Rules
from dicast_trust.verdicts.stages import Stage

RISK, ALPHA = 0.1, 0.1
DATA = os.environ.get("DICAST_OUTSIDE_DATA")
outside = [
    pytest.mark.outside_data,
    pytest.mark.skipif(DATA is None, reason="DICAST_OUTSIDE_DATA does not name the folder of the outside data"),
]


def violations(signals, wrong, n, *, times=1000, seed=0):
    """Return the share of calibrations, from *n* labels drawn with replacement, whose kept verdicts are wrong too often in the population."""
    random, at = np.random.default_rng(seed), thresholds(signals)
    bad = with_threshold = 0
    for _ in range(times):
        drawn = random.integers(0, len(signals), n)
        labeled = LabeledSignals(signals[drawn], wrong[drawn], np.arange(n))
        threshold = climb(labeled, at, RungTest(RISK, ALPHA)).threshold
        if threshold is not None:
            with_threshold += 1
            bad += wrong[signals >= threshold].mean() > RISK
    return bad / times, with_threshold / times


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.2, 0.5, 1.5])
def test_thresholds_are_wrong_in_at_most_alpha_of_1000_calibrations(slope):
    random = np.random.default_rng(1)
    signals = np.round(random.random(5_000), 2)
    wrong = (random.random(5_000) < 0.1 + slope * (0.7 - signals).clip(-0.2, 0.5) * 0.4).astype(int)
    share, with_threshold = violations(signals, wrong, 200)
    assert share <= 0.12
    assert with_threshold > 0 or slope == 0.2


def test_thresholds_are_wrong_in_at_most_alpha_where_every_rung_is_at_the_boundary():
    random = np.random.default_rng(2)
    signals = random.choice([0.5, 0.7, 0.9], 20_000)
    wrong = (random.random(20_000) < RISK * 1.001).astype(int)
    assert violations(signals, wrong, 150)[0] <= 0.12


def clustered_violations(sizes, share, times=600):
    """Return the share of calibrations in which a rung with errors above the risk passes, with a different error rate in each session."""
    random, bad = np.random.default_rng(11), 0
    spread = (1 - share) / share
    for _ in range(times):
        of = np.repeat(np.arange(len(sizes)), sizes)
        rates = random.beta(spread * RISK * 1.001, spread * (1 - RISK * 1.001), len(sizes))[of]
        labeled = LabeledSignals(np.ones(len(of)), (random.random(len(of)) < rates).astype(int), of)
        bad += climb(labeled, [1.0], RungTest(RISK, ALPHA, "korn-graubard")).threshold is not None
    return bad / times


@pytest.mark.slow
@pytest.mark.parametrize(("sessions", "size", "share"), [(40, 5, 0.3), (100, 3, 0.2), (60, 8, 0.1)])
def test_thresholds_of_sessions_are_wrong_in_at_most_alpha(sessions, size, share):
    assert clustered_violations([size] * sessions, share) <= 0.12


@pytest.mark.slow
def test_thresholds_of_a_cross_fitted_model_are_wrong_in_at_most_alpha():
    random = np.random.default_rng(3)
    size, n, bad = 4_000, 200, 0
    x = random.normal(size=(size, 3))
    wrong = (random.random(size) < 1 / (1 + np.exp(1.5 + 1.2 * x[:, 0] + 0.5 * x[:, 1]))).astype(int)
    for draw in range(200):
        drawn = random.integers(0, size, n)
        agrees = 1.0 - wrong[drawn]
        folds = np.array([fold(draw, str(index)) for index in drawn])
        fold_scores = cross_fitted(x[drawn], agrees, folds, ("a", "b", "c"))
        everyone = scores(fit(x[drawn], agrees, ("a", "b", "c")), x)
        threshold = climb(
            LabeledSignals(fold_scores, wrong[drawn], np.arange(n)),
            thresholds(everyone, QUANTILES),
            RungTest(RISK, ALPHA),
        ).threshold
        bad += threshold is not None and wrong[everyone >= threshold].mean() > RISK
    assert bad / 200 <= 0.12


def evidence(losses, risk, most):
    """Return the evidence after each of *most* audits, of many streams at once, one row a stream."""
    factors = np.ones_like(losses, dtype=float)
    n = np.arange(1, most + 1)
    for j, begin in enumerate(range(0, most, 25)):
        share = 6 / (math.pi**2 * (j + 1) ** 2)
        since = losses[:, begin:].cumsum(1)
        bet = np.exp(np.minimum(ln_above(since, np.broadcast_to(n[: most - begin], since.shape), risk), 700))
        factors[:, begin:] += share * (bet - 1)
    return factors


def test_shifted_stream_is_revoked_within_60_audits_at_the_median():
    random = np.random.default_rng(4)
    losses = (random.random((400, 200)) < 0.3).astype(int)
    crossed = evidence(losses, RISK, 200) >= 1 / ALPHA
    first = np.where(crossed.any(1), crossed.argmax(1) + 1, 201)
    assert np.median(first) <= 60


@pytest.mark.slow
def test_stream_at_the_boundary_is_revoked_in_at_most_alpha_within_1000_audits():
    random = np.random.default_rng(5)
    losses = (random.random((1_000, 1_000)) < RISK).astype(int)
    assert (evidence(losses, RISK, 1_000) >= 1 / ALPHA).any(1).mean() <= ALPHA


@pytest.mark.slow
def test_labels_that_are_needed_are_those_with_which_calibrations_succeed():
    shares, errors, test = np.array([0.4, 0.3, 0.3]), np.array([0.03, 0.06, 0.2]), RungTest(RISK, ALPHA)
    least = least_n(shares, errors, test, 22, np.random.default_rng(6))
    random, needed = np.random.default_rng(7), None
    for n in range(22, 600, 4):
        passed = 0
        for _ in range(200):
            counts = random.multinomial(n, shares).cumsum()
            wrong = random.binomial(np.diff(counts, prepend=0), errors).cumsum()
            first = int((counts >= max(test.least, math.ceil(0.3 * n))).argmax())
            rung = LabeledSignals(
                np.ones(counts[first]),
                np.r_[np.ones(wrong[first]), np.zeros(counts[first] - wrong[first])].astype(int),
                np.arange(counts[first]),
            )
            passed += climb(rung, [1.0], test).threshold is not None
        if passed >= 160:
            needed = n
            break
    assert needed / 1.5 <= least <= needed * 1.5


def population(n):
    """Return a stage with *n* verdicts, all labeled."""
    random = np.random.default_rng(8)
    confidences, draws = random.random(n), random.random(n)
    stage, labels = Stage("judge", None), {}
    for number in range(n):
        score = float(draws[number] < 0.6 + 0.39 * confidences[number])
        key = "row", f"r{number}"
        stage.outcomes[key] = Outcome(*key, None, "run", score, float(confidences[number]), None, None, None, {})
        labels[key] = GoldLabel(key[1], 1.0, "row")
    return stage, labels


def test_10000_labels_are_calibrated_within_2_seconds():
    stage, labels = population(10_000)
    began = time.process_time()
    calibration = Calibration.of_labels(labels, [stage], Rules(signals="confidence", assume_random=True))
    assert time.process_time() - began <= 2
    assert calibration.steps[0].climb.threshold is not None
    assert len(calibration.steps[0].climb.rungs) == 50


# Recorded judges: LLMBar Natural


def pairs():
    with gzip.open(Path(str(DATA), "llmbar_natural.jsonl.gz")) as file:
        return [json.loads(line) for line in file]


def votes(model):
    """Return for each pair the share of all prompts and orders that vote for output 1, and whether people prefer it."""
    shares, gold = [], []
    for pair in pairs():
        ballots = [
            vote["winner"]
            for name, orders in pair["judgments"].items()
            if name.split("/")[0] == model
            for vote in orders.values()
        ]
        shares.append(np.mean([{"1": 1.0, "2": 0.0}.get(vote, 0.5) for vote in ballots]))
        gold.append(float(pair["label"] == 1))
    return np.array(shares), np.array(gold)


class TestLLMBar:
    pytestmark = outside

    @pytest.mark.parametrize(
        ("model", "threshold", "kept_share", "errors", "upper"),
        [("PaLM2", 1.0, 44, 1, 0.08555), ("ChatGPT", None, None, None, None), ("GPT-4", 0.5, 100, 4, None)],
    )
    def test_recorded_votes_are_calibrated_as_published(self, model, threshold, kept_share, errors, upper):
        shares, gold = votes(model)
        stage, labels = Stage("jury", None), {}
        for number, (share, label) in enumerate(zip(shares, gold, strict=True)):
            key = "row", f"r{number}"
            stage.outcomes[key] = Outcome(
                *key, None, "run", float(share), float(max(share, 1 - share)), None, None, None, {}
            )
            labels[key] = GoldLabel(key[1], float(label), "row")
        step = Calibration.of_labels(labels, [stage], Rules()).steps[0].climb
        assert step.threshold == threshold
        if step.chosen is not None:
            assert (step.chosen.n, step.chosen.errors) == (kept_share, errors)
            assert upper is None or step.chosen.upper == pytest.approx(upper, abs=5e-6)

    @pytest.mark.parametrize("model", ["PaLM2", "ChatGPT", "GPT-4"])
    def test_recorded_judges_keep_to_the_target(self, model):
        shares, gold = votes(model)
        signals, wrong = np.maximum(shares, 1 - shares), ((shares >= 0.5) != (gold >= 0.5)).astype(int)
        assert violations(signals, wrong, 100)[0] <= 0.12
