"""Difference of two runs corrected by labels of some pairs: ``stats/paired`` with *gold*."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, DataError, Results
from dicast_stats import Paired
from dicast_stats.pairs.corrected import correct_difference


def by_hand(pairs):
    """Return the figures of the formula, in fractions; *pairs* are (truth or None, judged)."""
    from scipy.stats import t

    labeled = [(Fraction(y), Fraction(f)) for y, f in pairs if y is not None]
    judged = [Fraction(f) for _, f in pairs]
    n, m = len(pairs), len(labeled)
    mean_y, mean_f = sum(y for y, _ in labeled) / m, sum(f for _, f in labeled) / m
    spread = sum((f - mean_f) ** 2 for _, f in labeled)
    slope = sum((y - mean_y) * (f - mean_f) for y, f in labeled) / spread if spread else Fraction(0)
    share = min(max(slope, Fraction(0)), Fraction(1))
    errors = [y - share * f for y, f in labeled]
    error = sum(errors) / m
    squares, freedom = sum((value - error) ** 2 for value in errors), m - 1 - (share > 0)
    pseudo = [share * f + error + (0 if y is None else (Fraction(y) - share * f - error) * n / m) for y, f in pairs]
    middle = sum(pseudo) / n
    labeled_variance = squares / freedom / m
    rest = sum((value - middle) ** 2 for value in pseudo) / (n - 1) / n - squares / m**2
    df = (rest + labeled_variance) ** 2 / (rest**2 / (n - 1) + labeled_variance**2 / freedom)
    reach = t.ppf(0.975, float(df)) * sqrt(rest + labeled_variance)
    mean = share * sum(judged) / n + error
    return float(mean), float(mean) - reach, float(mean) + reach, float(share)


eighths = st.integers(-8, 8).map(lambda n: n / 8)


@settings(max_examples=3 * settings.default.max_examples // 2, deadline=None)
@given(st.lists(st.tuples(eighths, eighths), min_size=12, max_size=40), st.data())
def test_figures_are_those_of_the_formula(pairs, data):
    m = data.draw(st.integers(10, len(pairs)))
    given_pairs = [(y if place < m else None, f) for place, (y, f) in enumerate(pairs)]
    truth = np.array([np.nan if y is None else y for y, _ in given_pairs])
    figures, reasons = correct_difference(truth, np.array([f for _, f in given_pairs]))
    if reasons:
        assert figures["ci_low"] is None
        return
    assert (figures["mean"], figures["ci_low"], figures["ci_high"], figures["lambda"]) == pytest.approx(
        by_hand(given_pairs), rel=1e-9, abs=1e-12
    )


def test_a_slope_that_is_nothing_but_rounding_takes_no_degree_of_freedom():
    pairs = [
        (0, 0),
        (0, 1),
        (0, 0),
        (0, -6),
        (0, -8),
        (0, -8),
        (1, 6),
        (-1, -5),
        (-1, -6),
        (2, 0),
        (5, 2),
        (-5, 0),
        (-5, -5),
    ]
    pairs = [(y / 8, f / 8) for y, f in [*pairs, (0, 0), (0, 0), (-8, 5), (0, 7)]]
    truth, judged = np.array(pairs).T
    figures, _ = correct_difference(truth, judged)
    assert figures["lambda"] == 0
    assert (figures["ci_low"], figures["ci_high"]) == pytest.approx(by_hand(pairs)[1:3])


def test_fewer_than_ten_labelled_pairs_correct_nothing():
    truth = np.array([0.5] * 9 + [np.nan] * 20)
    figures, reasons = correct_difference(truth, np.linspace(-1, 1, 29))
    assert (figures["mean"], figures["n_labelled"]) == (None, 9)
    assert "9 labeled pairs of the 10 needed" in reasons["corrected"]


@pytest.mark.slow
def test_a_judge_that_likes_length_is_corrected():
    """The judge gives the longer arm .2 more; labels of 40 of 400 pairs show that there is no difference."""
    rng, covered, plain, rounds = np.random.default_rng(20), 0, 0, 1_000
    for _ in range(rounds):
        truth = rng.normal(0, 0.3, 400)
        judged = 0.6 * truth + 0.2 + rng.normal(0, 0.2, 400)
        labeled = truth.copy()
        labeled[rng.permutation(400)[40:]] = np.nan
        figures, _ = correct_difference(labeled, judged)
        covered += figures["ci_low"] <= 0 <= figures["ci_high"]
        reach = 1.96 * judged.std() / 20
        plain += abs(judged.mean()) <= reach
    assert 0.925 <= covered / rounds <= 0.975
    assert plain == 0


def by_session(pairs, sessions):
    """Return the interval for pairs that share sessions, by loops: the sum of squares of each session's pseudo-scores less the mean."""
    from scipy.stats import t

    labeled = [place for place, (y, _) in enumerate(pairs) if y is not None]
    n, m, (mean, *_, share) = len(pairs), len(labeled), by_hand(pairs)
    errors = [pairs[place][0] - share * pairs[place][1] for place in labeled]
    error = sum(errors) / m
    pseudo = [share * f + error + (0 if y is None else (y - share * f - error) * n / m) for y, f in pairs]
    sums = {}
    for value, session in zip(pseudo, sessions, strict=True):
        sums[session] = sums.get(session, 0) + value - mean
    groups, audited = len(sums), len({sessions[place] for place in labeled})
    variance = groups / (groups - 1) * sum(number**2 for number in sums.values()) / n**2
    labeled_variance = sum((number - error) ** 2 for number in errors) / (m - 1 - (share > 0)) / m
    df = variance**2 / ((variance - labeled_variance) ** 2 / (groups - 1) + labeled_variance**2 / (audited - 1))
    reach = t.ppf(0.975, df) * sqrt(variance)
    return mean - reach, mean + reach


@pytest.mark.parametrize("seed", range(5))
def test_pairs_of_one_session_widen_the_interval(seed):
    rng = np.random.default_rng(seed)
    sessions = [f"s{place // 4}" for place in range(80)]
    shared = np.repeat(rng.normal(0, 0.4, 20), 4)
    truth = shared + rng.normal(0, 0.1, 80)
    judged = 0.7 * truth + rng.normal(0, 0.1, 80)
    truth[rng.permutation(80)[40:]] = np.nan
    figures, reasons = correct_difference(truth, judged, sessions)
    pairs = [(None if np.isnan(y) else y, f) for y, f in zip(truth.tolist(), judged.tolist(), strict=True)]
    assert reasons == {}
    assert (figures["ci_low"], figures["ci_high"]) == pytest.approx(by_session(pairs, sessions), rel=1e-9)
    alone, _ = correct_difference(truth, judged, list(range(80)))
    assert (alone["sessions"], figures["sessions"]) == (None, 20)
    assert alone == correct_difference(truth, judged)[0]
    assert figures["ci_high"] - figures["ci_low"] > 1.3 * (alone["ci_high"] - alone["ci_low"])


def test_labelled_pairs_of_one_session_have_no_interval():
    truth = np.array([n / 10 for n in range(12)] + [np.nan] * 28)
    figures, reasons = correct_difference(truth, np.linspace(0, 1, 40), ["a"] * 12 + ["b"] * 28)
    assert (figures["ci_low"], figures["ci_high"]) == (None, None)
    assert "too_few_sessions" in reasons["ci_low"]


@pytest.mark.slow
@pytest.mark.parametrize(("sessions", "labels"), [(100, 80), (40, 60)])
def test_sessions_that_hang_together_are_covered(sessions, labels):
    """The judge's errors also depend on the session; the interval that ignores sessions covers less."""
    rng, covered, without, rounds = np.random.default_rng(21), 0, 0, 1_000
    names = np.repeat(np.arange(sessions), 5).tolist()
    for _ in range(rounds):
        truth = np.repeat(rng.normal(0, 0.3, sessions), 5) + rng.normal(0, 0.1, 5 * sessions)
        judged = 0.6 * truth + np.repeat(rng.normal(0.1, 0.15, sessions), 5) + rng.normal(0, 0.1, 5 * sessions)
        labeled = truth.copy()
        labeled[rng.permutation(5 * sessions)[labels:]] = np.nan
        covered += (
            abs((figures := correct_difference(labeled, judged, names)[0])["mean"])
            <= figures["ci_high"] - figures["mean"]
        )
        alone = correct_difference(labeled, judged)[0]
        without += abs(alone["mean"]) <= alone["ci_high"] - alone["mean"]
    assert 0.93 <= covered / rounds <= 0.975
    assert without / rounds < 0.88


def test_a_record_names_its_session(tmp_path):
    def make_run(name, add):
        records = [
            (str(n), {"row": {"id": str(n), "session_id": f"s{n // 3}"}, "metrics": {"scores": {"a": (n % 7) / 10 + add * (n % 2)}}})
            for n in range(30)
        ]  # fmt: skip
        return Results(f"run-{name}", name, lambda: iter(records))

    gold = labels(tmp_path / "gold.jsonl", *both(20))
    figures = Paired(gold=gold).compare(make_run("old", 0), make_run("new", 0.1))["criteria"]["a"]["corrected"]
    assert (figures["sessions"], figures["n_labelled"]) == (10, 20)


def runs(count=30):
    rng = np.random.default_rng(1)

    def make_run(name, scores):
        records = [
            (str(n), {"row": {"id": str(n)}, "metrics": {"scores": {"a": score}}}) for n, score in enumerate(scores)
        ]
        return Results(f"run-{name}", name, lambda: iter(records))

    return make_run("old", rng.random(count)), make_run("new", rng.random(count))


def labels(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def both(count):
    return [
        {"subject_id": str(n), "score": (n % 3) / 2, "arm": arm}
        for n in range(count)
        for arm in ("baseline", "variant")
    ]


def test_labels_name_the_arm_or_the_run(tmp_path):
    by_arm = Paired(gold=labels(tmp_path / "arms.jsonl", *both(12))).compare(*runs())
    named = [{**row, "run": f"run-{'old' if row['arm'] == 'baseline' else 'new'}"} for row in both(12)]
    by_run = Paired(
        gold=labels(tmp_path / "runs.jsonl", *[{k: v for k, v in row.items() if k != "arm"} for row in named])
    )
    figures = by_arm["criteria"]["a"]
    assert figures["corrected"] == by_run.compare(*runs())["criteria"]["a"]["corrected"]
    assert (figures["corrected"]["n_labelled"], figures["corrected"]["n_pairs"]) == (12, 30)
    assert "by 12 labeled pairs" in figures["words"]


def test_labels_of_one_arm_alone_are_refused(tmp_path):
    gold = labels(tmp_path / "gold.jsonl", *[row for row in both(20) if row["arm"] == "variant"])
    with pytest.raises(
        DataError, match="labels of the variant alone.*label the same subjects' outputs in the baseline"
    ):
        Paired(gold=gold).compare(*runs())


def test_a_label_that_names_no_arm_is_refused_with_its_line(tmp_path):
    gold = labels(
        tmp_path / "gold.jsonl",
        *both(2),
        {"subject_id": "9", "score": 1},
        {"subject_id": "8", "score": 1, "arm": "varient"},
    )
    with pytest.raises(DataError) as caught:
        Paired(gold=gold).compare(*runs())
    assert [problem.line for problem in caught.value.problems] == [5, 6]
    assert caught.value.problems[1].hint == "variant"


def test_two_labels_that_differ_are_refused(tmp_path):
    gold = labels(tmp_path / "gold.jsonl", *both(2), {"subject_id": "0", "score": 1, "arm": "variant"})
    with pytest.raises(DataError, match="two labels of '0' in variant differ: 0 and 1"):
        Paired(gold=gold).compare(*runs())


def test_labels_of_other_subjects_are_refused(tmp_path):
    gold = labels(tmp_path / "gold.jsonl", *[{**row, "subject_id": f"x{row['subject_id']}"} for row in both(2)])
    with pytest.raises(DataError, match="no label in .* is about a subject of both runs"):
        Paired(gold=gold).compare(*runs())


def test_a_missing_file_of_labels_is_found_before_the_run(tmp_path):
    with pytest.raises(ConfigError, match="there is no file of labels"):
        Paired(gold=tmp_path / "none.jsonl")


def test_p_values_are_adjusted_for_the_number_of_criteria(results):
    rng = np.random.default_rng(2)
    columns = [{name: list(rng.random(20)) for name in "abc"} for _ in range(2)]
    criteria = Paired().compare(*map(results, columns))["criteria"]
    least = min(criteria.values(), key=lambda entry: entry["p_value"])
    assert least["adjusted_p_value"] == pytest.approx(min(1, 3 * least["p_value"]))
    alone = Paired(adjustment="none").compare(*map(results, columns))["criteria"]
    assert all(entry["adjusted_p_value"] == entry["p_value"] for entry in alone.values())
