"""Weights of subjects: means, pass rates and intervals of a sample, stored with the subject and shown with their effective number."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError, Score, Subject, metric
from dicast._kernel.report.spool import Passes, ScoreFile
from dicast._kernel.report.statistics import confidence_interval, pass_rate, pass_rate_bounds
from dicast.testing import run_pipeline

PIPELINE = "name: w\nmetrics: [value]\nscoring: {pass_at: 0.5}\n"
ROWS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.floats(0, 1), st.integers(1, 9)), min_size=2, max_size=12
)


@metric(tier="truth")
def value(subject: Subject) -> Score:
    return Score(float(subject.output))


def run(rows, text=PIPELINE):
    subjects = [
        Subject("row", f"r{number}", output=score, session_id=session, weight=weight)
        for number, (session, score, weight) in enumerate(rows)
    ]
    return run_pipeline(text, subjects=subjects, components={"value": value()})


def score_file(rows):
    scores = ScoreFile()
    scores.add([(session, score) for session, score, _ in rows], [float(weight) for _, _, weight in rows])
    return scores


def test_the_mean_is_a_ratio_of_weighted_sums_and_is_shown_with_its_effective_number():
    done = run([(None, 0.0, 1.0), (None, 1.0, 3.0), (None, 1.0, 1.0)]).document
    assert done["score"]["mean"] == pytest.approx(4 / 5)
    assert done["score"]["weight"] == 5
    assert done["score"]["effective_n"] == pytest.approx(25 / 11)
    assert done["score"]["aggregate"] == 1.0
    assert done["score"]["pass_rate"] == pytest.approx(4 / 5)
    assert done["score"]["passes"]["n"] == 3
    assert [warning["kind"] for warning in done["warnings"]].count("weights") == 1


def test_weights_are_stored_with_the_subject_and_only_where_they_differ_from_1():
    events = run([(None, 0.0, 1.0), (None, 1.0, 2.5)]).of("subject.read")
    assert [event.payload.get("weight") for event in events] == [None, 2.5]
    plain = run([(None, 0.0, 1.0), (None, 1.0, 1.0)]).document
    assert not {"weight", "effective_n"} & plain["score"].keys()
    assert "weights" not in [warning["kind"] for warning in plain["warnings"]]


@pytest.mark.parametrize("weight", [0, -1.0, math.inf, math.nan, "2"])
def test_a_weight_that_is_no_finite_number_above_0_is_refused(weight):
    with pytest.raises(DataError, match="weight"):
        run([(None, 1.0, weight)])


@given(ROWS)
def test_equal_weights_give_the_interval_without_weights(rows):
    plain, doubled = (
        score_file([(at, score, 1) for at, score, _ in rows]),
        score_file([(at, score, 2) for at, score, _ in rows]),
    )
    mean = statistics.fmean(score for _, score, _ in rows)
    first, second = confidence_interval(plain, mean), confidence_interval(doubled, mean)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert second[:2] == pytest.approx(first[:2])


@given(ROWS)
def test_the_interval_is_the_linearized_one_of_a_ratio(rows):
    total = sum(weight for _, _, weight in rows)
    mean = sum(score * weight for _, score, weight in rows) / total
    interval = confidence_interval(score_file(rows), mean, bounded=False)
    residuals: dict[object, float] = {}
    for number, (session, score, weight) in enumerate(rows):
        key = number if session is None else session
        residuals[key] = residuals.get(key, 0.0) + weight * (score - mean)
    groups = len(residuals)
    if interval is not None:
        half = 1.959963984540054 * math.sqrt(groups / (groups - 1) * sum(r * r for r in residuals.values())) / total
        assert (interval.low, interval.high) == pytest.approx((mean - half, mean + half), abs=1e-9)


@given(ROWS)
def test_a_weighted_pass_rate_lies_in_its_interval_whatever_the_scale_of_the_weights(rows):
    def figures(scale):
        passes = Passes()
        sessions, answers = [at for at, _, _ in rows], [score >= 0.5 for _, score, _ in rows]
        half = len(rows) // 2
        passes.add(sessions[:half], answers[:half])  # these count once
        passes.add(sessions[half:], answers[half:], [float(weight * scale) for _, _, weight in rows[half:]])
        return passes

    passes = figures(1)
    rate = pass_rate(passes)
    half = len(rows) // 2
    weights = [1] * half + [weight for _, _, weight in rows[half:]]
    expected = sum(w for w, (_, score, _) in zip(weights, rows, strict=True) if score >= 0.5) / sum(weights)
    assert rate["value"] == pytest.approx(expected)
    assert rate["n"] == len(rows)
    if rate["ci_low"] is not None:
        assert 0 <= rate["ci_low"] <= rate["value"] + 1e-9
        assert rate["value"] - 1e-9 <= rate["ci_high"] <= 1
    (least, _), (most, _) = pass_rate_bounds(passes)
    assert least == pytest.approx(expected) == most


def test_open_subjects_bound_a_weighted_rate():
    passes = Passes()
    passes.add([None, None, "s"], [True, False, None], [2.0, 1.0, 3.0])
    assert pass_rate(passes)["value"] == pytest.approx(2 / 3)
    (least, _), (most, _) = pass_rate_bounds(passes)
    assert (least, most) == (pytest.approx(2 / 6), pytest.approx(5 / 6))


@pytest.mark.slow
def test_the_intervals_of_stratified_samples_cover_the_mean_of_the_population():
    """A rare stratum of bad sessions is drawn as often as the common one; without weights the mean would be far off."""
    generator, covered, times = random.Random(5), 0, 300
    strata = [
        [min(1.0, max(0.0, generator.gauss(0.8, 0.15))) for _ in range(3600)],
        [min(1.0, max(0.0, generator.gauss(0.3, 0.15))) for _ in range(400)],
    ]
    mean = statistics.fmean([*strata[0], *strata[1]])
    for _ in range(times):
        rows = [(None, score, len(stratum) / 60) for stratum in strata for score in generator.sample(stratum, 60)]
        drawn = sum(score * weight for _, score, weight in rows) / sum(weight for _, _, weight in rows)
        interval = confidence_interval(score_file(rows), drawn)
        covered += interval.low <= mean <= interval.high
    assert covered / times >= 0.93
