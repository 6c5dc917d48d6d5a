"""Comparisons of two runs over the same subjects: practical, outliers, flips, referee_alignment."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dicast import ConfigError, Results
from dicast_stats import Flips, Outliers, Practical, RefereeAlignment

CLOSE = {"rel": 1e-9, "abs": 1e-12}
GRADES = st.lists(st.tuples(st.integers(1, 5).map(float), st.integers(1, 5).map(float)), min_size=2, max_size=40)


def only(found):
    (figures,) = found["criteria"].values()
    return figures


def runs(pairs):
    def made(scores):
        records = [
            (str(n), {"row": {"id": str(n)}, "metrics": {"scores": {"a": score}}}) for n, score in enumerate(scores)
        ]
        return Results("run", "name", lambda: iter(records))

    return made([before for before, _ in pairs]), made([after for _, after in pairs])


def test_practical_has_the_settled_figures(results):
    found = only(Practical().compare(results({"a": [3, 4, 3]}), results({"a": [4, 5, 5]})))
    expected = {
        "n": 3,
        "mean_difference": 4 / 3,
        "baseline_success_rate": 1 / 3,
        "variant_success_rate": 1.0,
        "nnt": 1.5,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert (found["meaningful_change_rate"], found["success_delta"]) == pytest.approx((1.0, 2 / 3))


@settings(max_examples=200, deadline=None)
@given(GRADES, st.sampled_from([0.5, 1.0, 2.0]), st.integers(1, 5))
def test_practical_counts_changes_and_successes(pairs, threshold, success):
    found = only(Practical(threshold=threshold, success_threshold=success).compare(*runs(pairs)))
    before, after = np.array(pairs).T
    gained = (after >= success).sum() - (before >= success).sum()
    assert found["meaningful_change_rate"] == pytest.approx((abs(after - before) >= threshold).mean(), **CLOSE)
    assert found["success_delta"] == pytest.approx(gained / len(pairs), **CLOSE)
    assert found["nnt"] == (None if gained == 0 else pytest.approx(len(pairs) / gained, **CLOSE))
    if np.ptp(after - before) > 0:
        test = stats.ttest_rel(after, before).confidence_interval(0.95)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx(tuple(test), **CLOSE)


@settings(max_examples=200, deadline=None)
@given(GRADES, st.integers(1, 6))
def test_outliers_are_the_largest_changes(pairs, top):
    found = only(Outliers(top_n=top).compare(*runs(pairs)))["outliers"]
    changes = sorted((abs(after - before) for before, after in pairs if after != before), reverse=True)
    assert [abs(one["difference"]) for one in found] == pytest.approx(changes[:top])
    for one in found:
        assert (one["baseline"], one["variant"]) == pairs[int(one["subject_id"])]
        assert one["difference"] == pytest.approx(one["variant"] - one["baseline"])


@settings(max_examples=200, deadline=None)
@given(GRADES)
def test_flips_are_counted_on_the_scale(pairs):
    found = only(Flips().compare(*runs(pairs)))
    up = [n for n, (before, after) in enumerate(pairs) if before <= 2 and after >= 3]
    down = [n for n, (before, after) in enumerate(pairs) if before >= 3 and after <= 2]
    assert (found["fail_to_pass"], found["pass_to_fail"]) == (len(up), len(down))
    assert found["major_gains"] == sum(after - before >= 2 for before, after in pairs)
    assert found["major_drops"] == sum(before - after >= 2 for before, after in pairs)
    assert [one["subject_id"] for one in found["subjects"]["fail_to_pass"]] == [str(n) for n in up][:20]
    expected = stats.binomtest(len(up), len(up) + len(down)).pvalue if up or down else 1.0
    assert found["p_value"] == pytest.approx(expected, **CLOSE)
    assert found["ci_low"] - 1e-12 <= found["effect_size"] <= found["ci_high"] + 1e-12


def judged(rows):
    records = [
        (str(n), {"row": {"id": str(n), "one": one, "two": two}, "metrics": {"scores": {"a": score}}})
        for n, (score, one, two) in enumerate(rows)
    ]
    return Results("run", "name", lambda: iter(records))


def test_referees_marks_are_read_as_they_are_written():
    rows = [(5, "Yes", 5), (1, "no", "n/a"), (3, "Partially", "3"), (2, "", None), (4, "what?", True)]
    found = RefereeAlignment(referee_fields=("one", "two")).compare(judged(rows), judged(rows))
    assert found["baseline"]["n"] == 4  # the fourth has no mark; True counts as 1
    assert found["baseline"]["mae"] == pytest.approx((0 + 0 + 0 + 3) / 4)
    assert found["baseline"]["agreement_rate_within_1"] == 0.75


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(1, 5), st.floats(1, 5), st.integers(1, 5)), min_size=3, max_size=40))
def test_alignment_is_the_error_against_the_mean_mark(rows):
    before, after = (
        judged([(was, mark, None) for was, _, mark in rows]),
        judged([(now, mark, None) for _, now, mark in rows]),
    )
    found = RefereeAlignment(referee_fields=("one", "two")).compare(before, after)
    was, now, marks = np.array(rows).T
    for side, scores in (("baseline", was), ("variant", now)):
        errors = abs(scores - marks)
        assert found[side]["mae"] == pytest.approx(errors.mean(), **CLOSE)
        assert found[side]["rmse"] == pytest.approx(np.sqrt((errors**2).mean()), **CLOSE)
        if np.ptp(scores) > 1e-6 and np.ptp(marks) > 0:
            assert found[side]["correlation"] == pytest.approx(
                stats.pearsonr(scores, marks).statistic, rel=1e-7, abs=1e-7
            )
    assert found["mean_difference"] == pytest.approx((abs(now - marks) - abs(was - marks)).mean(), **CLOSE)
    assert found["comparison"]["mae_improved"] is (found["variant"]["mae"] < found["baseline"]["mae"])


LITTLE = [[], [0.5], [None, None], [0.5, 0.5, 0.5], [0.5, None, 0.5], [1e308, -1e308, 1e308], [1e-320, 2e-320, 0.0]]


@pytest.mark.parametrize("component", [Practical(), Outliers(), Flips()], ids=lambda one: one.name)
@pytest.mark.parametrize("before", LITTLE, ids=str)
@pytest.mark.parametrize("after", LITTLE, ids=str)
def test_little_to_compare_is_no_error_and_what_is_not_defined_is_null(component, before, after, results):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = component.compare(results({"a": before}), results({"a": after}))
    json.dumps(found, allow_nan=False)
    for figures in found["criteria"].values():
        assert isinstance(figures["words"], str)
        assert {"n", "effect_size", "ci_low", "ci_high"} <= figures.keys()


@pytest.mark.parametrize("scores", LITTLE, ids=str)
def test_alignment_without_marks_or_scores_is_null(scores):
    rows = [(score, "yes" if n else "n/a", None) for n, score in enumerate(scores)]
    found = RefereeAlignment(referee_fields=("one",)).compare(judged(rows), judged(rows))
    json.dumps(found, allow_nan=False)
    marked = [score for score in scores[1:] if score is not None]  # the first row has no mark, the others have 1
    for side in ("baseline", "variant"):
        assert found[side]["n"] == found["n"] == len(marked)
        assert (found[side]["mae"] is None) == (not marked)
        assert found[side]["correlation"] is None


def test_options_that_contradict_each_other_are_refused():
    for wrong in (
        lambda: Flips(pass_at=2, fail_at=2),
        lambda: RefereeAlignment(referee_fields=()),
        lambda: Practical(threshold=0),
    ):
        with pytest.raises(ConfigError):
            wrong()
