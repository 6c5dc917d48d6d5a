"""The difference of two runs as labels of some pairs would have it: ``stats/paired`` with *gold*."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from dicast import ConfigError, DataError, Results
from dicast_stats import Paired
from dicast_stats.corrected_pairs import corrected


def by_hand(pairs):
    """The formula once more, in fractions: *pairs* are (truth or None, judged)."""
    known = [(Fraction(y), Fraction(f)) for y, f in pairs if y is not None]
    judged = [Fraction(f) for _, f in pairs]
    n, m = len(pairs), len(known)
    mean_y, mean_f = sum(y for y, _ in known) / m, sum(f for _, f in known) / m
    spread = sum((f - mean_f) ** 2 for _, f in known)
    slope = sum((y - mean_y) * (f - mean_f) for y, f in known) / spread if spread else Fraction(0)
    share = min(max(slope, Fraction(0)), Fraction(1))
    errors = [y - share * f for y, f in known]
    error = sum(errors) / m
    squares, freedom = sum((one - error) ** 2 for one in errors), m - 1 - (share > 0)
    pseudo = [share * f + error + (0 if y is None else (Fraction(y) - share * f - error) * n / m) for y, f in pairs]
    middle = sum(pseudo) / n
    held = squares / freedom / m
    rest = sum((one - middle) ** 2 for one in pseudo) / (n - 1) / n - squares / m**2
    df = (rest + held) ** 2 / (rest**2 / (n - 1) + held**2 / freedom)
    reach = t.ppf(0.975, float(df)) * sqrt(rest + held)
    mean = share * sum(judged) / n + error
    return float(mean), float(mean) - reach, float(mean) + reach, float(share)


eighths = st.integers(-8, 8).map(lambda n: n / 8)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(eighths, eighths), min_size=12, max_size=40), st.data())
def test_figures_are_those_of_the_formula(pairs, data):
    m = data.draw(st.integers(10, len(pairs)))
    given_pairs = [(y if place < m else None, f) for place, (y, f) in enumerate(pairs)]
    truth = np.array([np.nan if y is None else y for y, _ in given_pairs])
    found, reasons = corrected(truth, np.array([f for _, f in given_pairs]))
    if reasons:
        assert found["ci_low"] is None
        return
    assert (found["mean"], found["ci_low"], found["ci_high"], found["lambda"]) == pytest.approx(
        by_hand(given_pairs), rel=1e-9, abs=1e-12
    )


def test_fewer_than_ten_labelled_pairs_correct_nothing():
    truth = np.array([0.5] * 9 + [np.nan] * 20)
    found, reasons = corrected(truth, np.linspace(-1, 1, 29))
    assert (found["mean"], found["n_labelled"]) == (None, 9)
    assert "9 labelled pairs of the 10 needed" in reasons["corrected"]


@pytest.mark.slow
def test_a_judge_that_likes_length_is_corrected():
    """The judge gives the longer arm .2 more; labels of 40 of 400 pairs see that there is no difference."""
    rng, covered, plain, rounds = np.random.default_rng(20), 0, 0, 1_000
    for _ in range(rounds):
        truth = rng.normal(0, 0.3, 400)
        judged = 0.6 * truth + 0.2 + rng.normal(0, 0.2, 400)
        labelled = truth.copy()
        labelled[rng.permutation(400)[40:]] = np.nan
        found, _ = corrected(labelled, judged)
        covered += found["ci_low"] <= 0 <= found["ci_high"]
        reach = 1.96 * judged.std() / 20
        plain += abs(judged.mean()) <= reach
    assert 0.925 <= covered / rounds <= 0.975
    assert plain == 0


def runs(count=30):
    rng = np.random.default_rng(1)

    def made(name, scores):
        records = [
            (str(n), {"row": {"id": str(n)}, "metrics": {"scores": {"a": score}}}) for n, score in enumerate(scores)
        ]
        return Results(f"run-{name}", name, lambda: iter(records))

    return made("old", rng.random(count)), made("new", rng.random(count))


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
    found = by_arm["criteria"]["a"]
    assert found["corrected"] == by_run.compare(*runs())["criteria"]["a"]["corrected"]
    assert (found["corrected"]["n_labelled"], found["corrected"]["n_pairs"]) == (12, 30)
    assert "by 12 labelled pairs" in found["words"]


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
    found = Paired().compare(*map(results, columns))["criteria"]
    least = min(found.values(), key=lambda one: one["p_value"])
    assert least["adjusted_p_value"] == pytest.approx(min(1, 3 * least["p_value"]))
    alone = Paired(adjustment="none").compare(*map(results, columns))["criteria"]
    assert all(one["adjusted_p_value"] == one["p_value"] for one in alone.values())
