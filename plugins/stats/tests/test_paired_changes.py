"""Comparisons of two runs over the same subjects: practical, outliers, flips, referee_alignment."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, Results
from dicast_stats import Flips, Outliers, Practical, RefereeAlignment

CLOSE = {"rel": 1e-9, "abs": 1e-12}
GRADES = st.lists(st.tuples(st.integers(1, 5).map(float), st.integers(1, 5).map(float)), min_size=2, max_size=40)


def only(comparison):
    (figures,) = comparison["criteria"].values()
    return figures


def runs(pairs):
    def make_run(scores):
        records = [
            (str(n), {"row": {"id": str(n)}, "metrics": {"scores": {"a": score}}}) for n, score in enumerate(scores)
        ]
        return Results("run", "name", lambda: iter(records))

    return make_run([before for before, _ in pairs]), make_run([after for _, after in pairs])


def test_practical_has_the_settled_figures(results):
    figures = only(Practical().compare(results({"a": [3, 4, 3]}), results({"a": [4, 5, 5]})))
    expected = {
        "n": 3,
        "mean_difference": 4 / 3,
        "baseline_success_rate": 1 / 3,
        "variant_success_rate": 1.0,
        "nnt": 1.5,
    }
    assert {name: figures[name] for name in expected} == pytest.approx(expected)
    assert (figures["meaningful_change_rate"], figures["success_delta"]) == pytest.approx((1.0, 2 / 3))


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(GRADES, st.sampled_from([0.5, 1.0, 2.0]), st.integers(1, 5))
def test_practical_counts_changes_and_successes(pairs, threshold, success):
    from scipy import stats

    figures = only(Practical(threshold=threshold, success_threshold=success).compare(*runs(pairs)))
    before, after = np.array(pairs).T
    gained = (after >= success).sum() - (before >= success).sum()
    assert figures["meaningful_change_rate"] == pytest.approx((abs(after - before) >= threshold).mean(), **CLOSE)
    assert figures["success_delta"] == pytest.approx(gained / len(pairs), **CLOSE)
    assert figures["nnt"] == (None if gained == 0 else pytest.approx(len(pairs) / gained, **CLOSE))
    if np.ptp(after - before) > 0:
        test = stats.ttest_rel(after, before).confidence_interval(0.95)
        assert (figures["ci_low"], figures["ci_high"]) == pytest.approx(tuple(test), **CLOSE)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(GRADES, st.integers(1, 6))
def test_outliers_are_the_largest_changes(pairs, top):
    outliers = only(Outliers(top_n=top).compare(*runs(pairs)))["outliers"]
    changes = sorted((abs(after - before) for before, after in pairs if after != before), reverse=True)
    assert [abs(outlier["difference"]) for outlier in outliers] == pytest.approx(changes[:top])
    for outlier in outliers:
        assert (outlier["baseline"], outlier["variant"]) == pairs[int(outlier["subject_id"])]
        assert outlier["difference"] == pytest.approx(outlier["variant"] - outlier["baseline"])


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(GRADES)
def test_flips_are_counted_on_the_scale(pairs):
    from scipy import stats

    figures = only(Flips().compare(*runs(pairs)))
    up = [n for n, (before, after) in enumerate(pairs) if before <= 2 and after >= 3]
    down = [n for n, (before, after) in enumerate(pairs) if before >= 3 and after <= 2]
    assert (figures["fail_to_pass"], figures["pass_to_fail"]) == (len(up), len(down))
    assert figures["major_gains"] == sum(after - before >= 2 for before, after in pairs)
    assert figures["major_drops"] == sum(before - after >= 2 for before, after in pairs)
    assert [subject["subject_id"] for subject in figures["subjects"]["fail_to_pass"]] == [str(n) for n in up][:20]
    expected = stats.binomtest(len(up), len(up) + len(down)).pvalue if up or down else 1.0
    assert figures["p_value"] == pytest.approx(expected, **CLOSE)
    assert figures["ci_low"] - 1e-12 <= figures["effect_size"] <= figures["ci_high"] + 1e-12


def judged(rows):
    records = [
        (str(n), {"row": {"id": str(n), "one": first, "two": second}, "metrics": {"scores": {"a": score}}})
        for n, (score, first, second) in enumerate(rows)
    ]
    return Results("run", "name", lambda: iter(records))


def test_referees_marks_are_read_as_they_are_written():
    rows = [(5, "Yes", 5), (1, "no", "n/a"), (3, "Partially", "3"), (2, "", None), (4, "what?", True)]
    comparison = RefereeAlignment(referee_fields=("one", "two")).compare(judged(rows), judged(rows))
    assert comparison["baseline"]["n"] == 4  # the fourth has no mark; True counts as 1
    assert comparison["baseline"]["mae"] == pytest.approx((0 + 0 + 0 + 3) / 4)
    assert comparison["baseline"]["agreement_rate_within_1"] == 0.75


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 5), st.floats(1, 5), st.integers(1, 5)), min_size=3, max_size=40))
def test_alignment_is_the_error_against_the_mean_mark(rows):
    from scipy import stats

    before, after = (
        judged([(was, mark, None) for was, _, mark in rows]),
        judged([(now, mark, None) for _, now, mark in rows]),
    )
    comparison = RefereeAlignment(referee_fields=("one", "two")).compare(before, after)
    was, now, marks = np.array(rows).T
    for side, scores in (("baseline", was), ("variant", now)):
        errors = abs(scores - marks)
        assert comparison[side]["mae"] == pytest.approx(errors.mean(), **CLOSE)
        assert comparison[side]["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), **CLOSE)
        if np.ptp(scores) > 1e-6 and np.ptp(marks) > 0:
            assert comparison[side]["correlation"] == pytest.approx(
                stats.pearsonr(scores, marks).statistic, rel=1e-7, abs=1e-7
            )
    assert comparison["mean_difference"] == pytest.approx((abs(now - marks) - abs(was - marks)).mean(), **CLOSE)
    assert comparison["comparison"]["mae_improved"] is (comparison["variant"]["mae"] < comparison["baseline"]["mae"])


def test_a_figure_that_stays_equal_is_not_improved():
    rows = [(5, 4, None), (1, 2, None), (3, 3, None), (2, 5, None)]
    better = RefereeAlignment(referee_fields=("one",)).compare(judged(rows), judged(rows))["comparison"]
    assert better == dict.fromkeys(
        ("mae_improved", "rmse_improved", "correlation_improved", "agreement_improved"), False
    )
    nearer = [(4, 4, None), (2, 2, None), (3, 3, None), (4, 5, None)]
    better = RefereeAlignment(referee_fields=("one",)).compare(judged(rows), judged(nearer))["comparison"]
    assert better == dict.fromkeys(better, True)
    worse = RefereeAlignment(referee_fields=("one",)).compare(judged(nearer), judged(rows))["comparison"]
    assert worse == dict.fromkeys(better, False)


def test_rows_without_columns_are_named_where_nothing_is_paired():
    bare = Results("run", "name", lambda: iter([("1", {"row": {"id": "1"}, "metrics": {"scores": {"a": 5}}})]))
    full = judged([(5, 4, None)])
    none = "no subject has a score and a referee's mark in both runs"
    cause = "have no columns: a file of dicast baseline save and a ledger with content: digest store none"
    referees = RefereeAlignment(referee_fields=("one",))
    assert referees.compare(bare, bare)["words"] == f"{none}; the rows of baseline and variant {cause}"
    assert referees.compare(full, bare)["words"] == f"{none}; the rows of variant {cause}"
    assert referees.compare(full, judged([(5, None, None)]))["words"] == none
    assert cause not in referees.compare(full, full)["words"]


LITTLE = [[], [0.5], [None, None], [0.5, 0.5, 0.5], [0.5, None, 0.5], [1e308, -1e308, 1e308], [1e-320, 2e-320, 0.0]]


@pytest.mark.parametrize("component", [Practical(), Outliers(), Flips()], ids=lambda component: component.name)
@pytest.mark.parametrize("before", LITTLE, ids=str)
@pytest.mark.parametrize("after", LITTLE, ids=str)
def test_little_to_compare_is_no_error_and_what_is_not_defined_is_null(component, before, after, results):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparison = component.compare(results({"a": before}), results({"a": after}))
    json.dumps(comparison, allow_nan=False)
    for figures in comparison["criteria"].values():
        assert isinstance(figures["words"], str)
        assert {"n", "effect_size", "ci_low", "ci_high"} <= figures.keys()


@pytest.mark.parametrize("scores", LITTLE, ids=str)
def test_alignment_without_marks_or_scores_is_null(scores):
    rows = [(score, "yes" if n else "n/a", None) for n, score in enumerate(scores)]
    comparison = RefereeAlignment(referee_fields=("one",)).compare(judged(rows), judged(rows))
    json.dumps(comparison, allow_nan=False)
    marked = [score for score in scores[1:] if score is not None]  # the first row has no mark, the others have 1
    for side in ("baseline", "variant"):
        assert comparison[side]["n"] == comparison["n"] == len(marked)
        assert (comparison[side]["mae"] is None) == (not marked)
        assert comparison[side]["correlation"] is None


def test_options_that_contradict_each_other_are_refused():
    for wrong in (
        lambda: Flips(pass_at=2, fail_at=2),
        lambda: RefereeAlignment(referee_fields=()),
        lambda: Practical(threshold=0),
    ):
        with pytest.raises(ConfigError):
            wrong()
