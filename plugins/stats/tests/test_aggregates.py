"""Documents of the aggregates: the specified cases, missing values, other shapes."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from math import inf, ldexp, nan

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dicast import ConfigError
from dicast_stats import (
    Agreement,
    CostSummary,
    Distribution,
    LatencySummary,
    Leaderboard,
    PassRate,
    Power,
    Recommendation,
    ScoreStats,
    VariantRanking,
)


def scored(*rows, flags=()):
    return [
        {"metrics": {"scores": row, **({"score_flags": flag} if flag else {})}}
        for row, flag in zip(rows, flags or [None] * len(rows), strict=True)
    ]


THREE = scored({"a": 0.8}, {"a": 0.6}, {"a": "0.9"}, flags=({"a": True}, {"a": False}, {"a": True}))


def test_score_stats_has_the_settled_figures(aggregated):
    document = aggregated(ScoreStats(), THREE)
    figures = document["criteria"]["a"]
    assert figures == document["overall"]
    assert (figures["count"], figures["missing"], figures["passes"], figures["flagged"]) == (3, 0, 2, 3)
    assert figures["pass_rate"] == pytest.approx(0.666667, abs=5e-7)
    assert figures["mean"] == pytest.approx(0.766667, abs=5e-7)
    assert (figures["median"], figures["min"], figures["max"]) == (0.8, 0.6, 0.9)
    assert figures["std"] == pytest.approx(0.124722, abs=5e-7)


def test_ddof_divides_by_less(aggregated):
    assert aggregated(ScoreStats(ddof=1), scored({"a": 1}, {"a": 2}))["overall"]["std"] == pytest.approx(0.5**0.5)
    assert aggregated(ScoreStats(ddof=1), scored({"a": 1}))["overall"]["std"] == 0.0
    assert aggregated(ScoreStats(ddof=2), scored({"a": 1}, {"a": 2}))["overall"]["std"] is None
    with pytest.raises(ConfigError, match="ddof, .*got -1"):
        ScoreStats(ddof=-1)


@pytest.mark.parametrize("value", [None, nan, inf, "n/a", "nan", "", [1], {"x": 1}, 10**400])
def test_what_is_no_number_is_missing_and_never_zero(aggregated, value):
    records = scored({"a": value}, {"a": 0.5}, flags=({"a": None}, {"a": True}))
    figures = aggregated(ScoreStats(), records)["criteria"]["a"]
    assert (figures["count"], figures["missing"], figures["mean"]) == (1, 1, 0.5)
    assert (figures["passes"], figures["flagged"], figures["pass_rate"]) == (1, 1, 0.5)


def test_all_scores_are_put_together_over_all(aggregated):
    flags = ({"a": True, "b": False}, {"a": True}, {"b": None})
    overall = aggregated(ScoreStats(), scored({"a": 1, "b": 0}, {"a": 0.5}, {"b": None}, flags=flags))["overall"]
    assert (overall["count"], overall["missing"], overall["mean"], overall["median"]) == (3, 1, 0.5, 0.5)
    assert (overall["min"], overall["max"], overall["passes"], overall["pass_rate"]) == (0, 1, 2, 0.5)


def test_a_criterion_without_any_number_has_no_mean(aggregated):
    document = aggregated(ScoreStats(), scored({"a": None, "b": 1}))
    assert document["criteria"]["a"] == {"count": 0, "missing": 1, "flagged": 0, "passes": 0, "pass_rate": 0.0}
    assert document["overall"]["count"] == 1


@pytest.mark.parametrize("record", [{}, {"metrics": None}, {"metrics": {}}, {"metrics": {"scores": [1, 2]}}])
def test_records_without_scores_are_passed_over(aggregated, record):
    document = aggregated(ScoreStats(), [record])
    assert document["criteria"] == {}
    assert document["overall"] == {"count": 0, "missing": 0, "reason": document["overall"]["reason"]}
    assert aggregated(VariantRanking(), [record]) == {}
    assert aggregated(Agreement(), [record])["n"] == 0
    assert aggregated(CostSummary(), [record]) == {"total_requests": 0, "requests_with_cost": 0}


def test_a_field_that_no_record_has_is_reported_with_the_existing_fields(aggregated):
    records = [{"metrics": {"scores": {"a": 1, "b": {}}, "cost": 2}}] * 2
    reason = "no record has scores by criterion at metrics.scoers; a record has 'scores.a', 'scores.b', 'cost'"
    nothing = {"count": 0, "missing": 0, "reason": reason}
    assert aggregated(ScoreStats("scoers"), records) == {"criteria": {}, "overall": nothing}
    assert aggregated(Recommendation(source_field="scoers"), records)["summary"] == nothing
    assert "a record has 'scores'" in aggregated(ScoreStats(), [{"metrics": {"scores": 1}}])["overall"]["reason"]
    assert "a record has nothing" in aggregated(ScoreStats(), [{}])["overall"]["reason"]
    for fine in ([], [{"metrics": {}}, *scored({"a": None})]):
        assert "reason" not in aggregated(ScoreStats(), fine)["overall"]


def test_other_fields_can_be_read(aggregated):
    records = [{"metrics": {"deep": {"marks": {"a": 1}}, "good": {"a": True}}}]
    document = aggregated(ScoreStats(source_field="deep.marks", flag_field="good"), records)
    assert (document["overall"]["mean"], document["overall"]["passes"]) == (1.0, 1)


def test_the_leader_is_recommended(aggregated):
    records = scored(*[{"first": 0.69, "second": 0.45}] * 3)
    document = aggregated(Recommendation(), records)
    assert (
        document["recommendation"]
        == "first leads with mean score 0.69, pass rate 0%, which is 0.12 above overall average"
    )
    assert (document["best_criteria"], document["best_stats"]["count"], document["summary"]["count"]) == ("first", 3, 6)
    shorter = aggregated(Recommendation(improvement_margin=0.2), records)["recommendation"]
    assert shorter == "first leads with mean score 0.69, pass rate 0%"


def test_the_first_of_equal_criteria_leads(aggregated):
    assert aggregated(Recommendation(), scored(*[{"b": 0.5, "a": 0.5}] * 3))["best_criteria"] == "b"


def test_too_few_scores_recommend_nothing(aggregated):
    document = aggregated(Recommendation(), scored(*[{"a": 1, "b": 1}] * 2))
    assert document["recommendation"] == "Insufficient data for confident recommendation"
    assert "best_criteria" not in document
    enough = aggregated(Recommendation(min_samples=4), scored(*[{"a": 1, "b": 1}] * 2))
    assert enough["best_criteria"] == "a"
    five = aggregated(Recommendation(), scored(*[{"a": 1}] * 5))  # as many as it takes by default
    assert five["best_criteria"] == "a"
    nobody = aggregated(Recommendation(min_samples=0), [])["recommendation"]
    assert nobody == "No clear leader across criteria"


def test_ranking_has_the_settled_figures(aggregated):
    records = [*({"metrics": {"score": value}} for value in (0.5, 0.7, 0.9)), *scored({"a": 0.8, "b": 0.6})]
    document = aggregated(VariantRanking(threshold=0.6), records)
    assert (document["samples"], document["pass_rate"]) == (4, 0.75)
    assert (document["mean"], document["composite"]) == (pytest.approx(0.7), pytest.approx(1.45))
    weighted = aggregated(VariantRanking(threshold=0.6, weight_mean=2, weight_pass=0), records)
    assert weighted["composite"] == pytest.approx(1.4)


def test_a_value_at_the_threshold_passes(aggregated):
    records = [{"metrics": {"score": value}} for value in (0.6999, 0.7)]
    assert aggregated(VariantRanking(), records)["pass_rate"] == 0.5


def test_records_without_a_value_do_not_pass(aggregated):
    document = aggregated(VariantRanking(), [{"metrics": {"score": 0.9}}, {"metrics": {"score": None}}])
    assert (document["samples"], document["missing"], document["mean"], document["pass_rate"]) == (1, 1, 0.9, 0.5)


def replied(*metrics):
    return {
        "response": {"metrics": metrics[0]},
        "responses": {str(n): {"metrics": response} for n, response in enumerate(metrics)},
    }


def test_every_criterions_response_is_a_request(aggregated):
    metrics = {"prompt_tokens": 10, "completion_tokens": 4, "cost": 0.25, "latency_seconds": 0.5}
    two = {"prompt_tokens": 30, "completion_tokens": 6, "cost": None}
    records = [replied(metrics, two), {"response": {"metrics": {"cost": 0.75}}}]
    assert aggregated(CostSummary(), records) == {
        "total_requests": 3,
        "requests_with_cost": 2,
        "prompt_tokens": {"total": 40, "mean": 20.0, "median": 20.0, "min": 10, "max": 30},
        "completion_tokens": {"total": 10, "mean": 5.0, "median": 5.0, "min": 4, "max": 6},
        "cost": {"total": 1.0, "mean": 0.5, "median": 0.5, "min": 0.25, "max": 0.75},
    }
    document = aggregated(LatencySummary(), records)
    assert (document["total_requests"], document["requests_with_latency"]) == (3, 1)
    assert document["latency_seconds"]["std"] == 0.0


@pytest.mark.parametrize("odd", [None, "x", 10**400, Decimal(2), nan, -1, [1]])
def test_a_value_that_is_no_number_does_not_remove_its_neighbors(aggregated, odd):
    reported = [{"cost": number, "prompt_tokens": number} for number in range(1, 2_001)]
    reported += [{"cost": odd}, {"completion_tokens": "7"}, {"cost": True}]
    document = aggregated(
        CostSummary(), [replied(*reported[start : start + 3]) for start in range(0, len(reported), 3)]
    )
    assert (document["total_requests"], document["requests_with_cost"]) == (2_003, 2_001)
    assert document["cost"] == {
        "total": 2_001_001.0,
        "mean": pytest.approx(1000.0),
        "median": 1000.0,
        "min": 1.0,
        "max": 2000.0,
    }
    assert document["prompt_tokens"]["total"] == 2_001_000
    assert document["completion_tokens"] == {"total": 7, "mean": 7.0, "median": 7.0, "min": 7, "max": 7}


def test_latencies_have_the_settled_figures(aggregated):
    records = [{"response": {"metrics": {"latency_seconds": value}}} for value in (0.5, 1.2, 0.8, 2, 0.6, -1, nan)]
    document = aggregated(LatencySummary(), records)
    assert (document["total_requests"], document["requests_with_latency"]) == (7, 5)
    expected = {"mean": 1.02, "median": 0.8, "std": 0.609918, "p50": 0.8, "p95": 1.84, "p99": 1.968}
    figures = {name: document["latency_seconds"][name] for name in expected}
    assert figures == pytest.approx(expected, abs=5e-7)


def test_agreement_has_the_settled_figures(aggregated):
    document = aggregated(Agreement(), scored({"a": 0.6, "b": 0.65}, {"a": 0.7, "b": 0.75}, {"a": 0.8, "b": 0.78}))
    assert (document["n"], document["complete"], document["criteria"], "reasons" in document) == (
        3,
        3,
        ["a", "b"],
        False,
    )
    assert document["average_correlation"] == pytest.approx(0.954919, abs=5e-7)
    assert document["cronbach_alpha"] == pytest.approx(0.940893, abs=5e-7)


def test_krippendorffs_alpha_is_the_books(aggregated):
    """The interval metric on the four observers of K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), C."""
    observers = {
        "a": (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
        "b": (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
        "c": (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
        "d": (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
    }
    rows = [{name: column[row] for name, column in observers.items()} for row in range(12)]
    document = aggregated(Agreement(), scored(*rows))
    assert (document["n"], document["complete"]) == (11, 8)
    assert document["krippendorff_alpha"] == pytest.approx(0.849, abs=5e-4)


def test_missing_scores_do_not_shift_the_others(aggregated):
    complete = scored({"a": 1, "b": 2}, {"a": 2, "b": 4}, {"a": 3, "b": 5})
    holes = scored({"a": 1, "b": 2}, {"a": 9}, {"b": 0}, {"a": 2, "b": 4}, {"a": None, "b": 3}, {"a": 3, "b": 5})
    assert aggregated(Agreement(), complete) == aggregated(Agreement(), holes)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "fewer than two criteria"),
        ([{"a": 1, "b": 1}], "fewer than two criteria"),
        ([{"a": 0.1, "b": 0.1}] * 3, "vary"),
        ([{"a": 1}, {"a": 2}, {"b": 1}, {"b": 3}], "no two criteria vary"),
    ],
)
def test_agreement_says_why_it_is_not_defined(aggregated, rows, reason):
    document = aggregated(Agreement(), scored(*rows))
    assert document["average_correlation"] is None
    assert reason in document["reasons"]["average_correlation"]
    assert set(document["reasons"]) == {"average_correlation", "cronbach_alpha", "krippendorff_alpha"}


@pytest.mark.parametrize("power", [-1074, -700, -540, 500, 1013])
def test_the_size_of_scores_changes_no_aggregate(aggregated, power):
    def aggregate_scaled(component, power):
        rows = [(1, 3), (4, 5), (2, 900), (700, 1000)]
        scores = ({"a": ldexp(first, power), "b": ldexp(second, power)} for first, second in rows)
        return aggregated(component, [{"metrics": {"scores": row_scores}} for row_scores in scores])

    ordinary, agreement = aggregate_scaled(Agreement(), 0), aggregate_scaled(Agreement(), power)
    for name in ("average_correlation", "cronbach_alpha", "krippendorff_alpha"):
        assert agreement[name] == pytest.approx(ordinary[name], rel=1e-9)
    ordinary, stats = (aggregate_scaled(ScoreStats(), exponent)["criteria"]["b"] for exponent in (0, power))
    for name in ("mean", "median", "min", "max", "std"):
        assert stats[name] == pytest.approx(ldexp(ordinary[name], power), rel=1e-9, abs=1e-323)
    mean = aggregate_scaled(VariantRanking(), 0)["mean"]
    assert aggregate_scaled(VariantRanking(), power)["mean"] == pytest.approx(ldexp(mean, power), rel=1e-9, abs=1e-323)


def test_agreement_can_be_of_some_criteria(aggregated):
    rows = scored({"a": 1, "b": 2, "c": 0}, {"a": 2, "b": 3, "c": 9})
    assert aggregated(Agreement(criteria=["a", "b"]), rows)["criteria"] == ["a", "b"]
    assert "unseen" not in aggregated(Agreement(criteria=["a", "b"]), rows)
    assert aggregated(Agreement(criteria=["a", "bb", "b"]), rows)["unseen"] == ["bb"]
    with pytest.raises(ConfigError, match="min_items, .*got 1"):
        Agreement(min_items=1)


KEYS = ("metrics", "scores", "score_flags", "score", "a", "b", "cost", "latency_seconds", "prompt_tokens")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
ALL = (
    ScoreStats(),
    ScoreStats(ddof=1),
    Recommendation(),
    VariantRanking(),
    CostSummary(),
    LatencySummary(),
    Agreement(),
)
metrics = st.fixed_dictionaries(
    {}, optional={"scores": st.dictionaries(st.sampled_from("abc"), anything, max_size=3), "score": anything}
)


@pytest.mark.slow
@given(st.lists(st.fixed_dictionaries({"metrics": metrics}, optional={"response": anything}), max_size=5))
def test_whatever_records_hold_the_document_is_json_without_nan(aggregated, records):
    for component in ALL:
        json.dumps(aggregated(component, records), allow_nan=False)


@given(st.lists(st.tuples(*[st.none() | st.floats(0, 5)] * 3), min_size=1, max_size=30), st.randoms())
def test_the_order_of_records_changes_no_figure(aggregated, rows, random):
    records = scored(*(dict(zip("abc", row, strict=True)) for row in rows))
    mixed = random.sample(records, len(records))
    for component in (ScoreStats(), VariantRanking(), Agreement()):
        assert nearly(aggregated(component, records), aggregated(component, mixed))


def nearly(first, second):
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(nearly(first[key], second[key]) for key in first)
    return first == (pytest.approx(second, abs=1e-9, rel=1e-9) if isinstance(first, float) else second)


def test_rounding_decides_neither_who_passes_nor_who_leads(aggregated):
    mean = {"metrics": {"scores": {"a": 0.6, "b": 0.7, "c": 0.8}}}
    assert aggregated(VariantRanking(threshold=0.7), [mean])["pass_rate"] == 1
    level = [
        {"metrics": {"scores": {"first": first, "second": second}}}
        for first, second in ((0.3, 0.1 + 0.2), (0.3, 0.1 + 0.2))
    ]
    assert aggregated(Recommendation(min_samples=1), level)["best_criteria"] == "first"
    records = [{"metrics": {"scores": {"a": 0.85, "b": 0.75}}}]
    text = aggregated(Recommendation(min_samples=1, improvement_margin=0.05), records)["recommendation"]
    assert text.endswith("which is 0.05 above overall average")


score_values = st.sampled_from([0.25, 0.5, 1.0, 2, "0.75", None, "none", inf])
few = st.fixed_dictionaries({}, optional=dict.fromkeys("abc", score_values))
flagged = st.fixed_dictionaries({}, optional=dict.fromkeys("abcd", st.sampled_from([True, False, None])))


@given(st.lists(st.tuples(few, flagged, st.sampled_from([0, 1, 700])), min_size=1, max_size=5))
def test_among_thousands_of_records_each_counts_where_it_names_the_criterion(aggregated, drawn):
    rows = [(scores, flags) for scores, flags, often in drawn for _ in range(often)]
    records = scored(*(scores for scores, _ in rows), flags=[flags for _, flags in rows]) if rows else []
    criteria = {
        component.name: aggregated(component, records)["criteria"]
        for component in (ScoreStats(), PassRate(), Distribution())
    }
    for name in "abcd":
        known_scores = [scores[name] for scores, _ in rows if name in scores]
        numbers = [float(value) for value in known_scores if value not in (None, "none", inf)]
        flags = [row_flags[name] for _, row_flags in rows if row_flags.get(name) is not None]
        if known_scores:
            spread = criteria["distribution"][name]
            assert (spread["n"], spread["missing"]) == (len(numbers), len(known_scores) - len(numbers))
            assert spread["mean"] == (pytest.approx(sum(numbers) / len(numbers)) if numbers else None)
            stats = criteria["score_stats"][name]
            assert (stats["count"], stats["missing"]) == (len(numbers), len(known_scores) - len(numbers))
            assert (stats["flagged"], stats["passes"]) == (len(flags), sum(flags))
        if flags:
            assert criteria["pass_rate"][name]["passes"] == sum(flags)
            assert criteria["pass_rate"][name]["n"] == sum(name in scores or name in marks for scores, marks in rows)


@given(st.lists(st.tuples(few, st.sampled_from([0, 1, 700])), min_size=1, max_size=5))
def test_among_thousands_of_records_scores_stay_aligned_by_record(aggregated, drawn):
    rows = [scores for scores, often in drawn for _ in range(often)]
    numbers = [[value for name in "abc" if is_number(value := row.get(name))] for row in rows]
    systems = aggregated(Leaderboard(resamples=100), scored(*rows))["systems"]
    for name, system in systems.items():
        games = [
            (float(row[name]), float(row[other]))
            for row in rows
            for other in "abc"
            if other != name and is_number(row.get(name)) and is_number(row.get(other))
        ]
        expected = [sum(ours > theirs for ours, theirs in games), sum(ours < theirs for ours, theirs in games)]
        assert [system["wins"], system["losses"], system["n"]] == [*expected, len(games)]
    ranking = aggregated(VariantRanking(), scored(*rows))
    means = [sum(map(float, row)) / len(row) for row in numbers if row]
    assert ranking == (
        {}
        if not means
        else ranking
        | {"samples": len(means), "missing": len(rows) - len(means), "mean": pytest.approx(sum(means) / len(means))}
    )


def is_number(value):
    return value not in (None, "none", inf)


@given(st.lists(st.floats(-1e50, 1e50), min_size=1, max_size=40))
@example([0.0, 0.0, 0.0, 1.0, 9.353610478917779e49, 9.353610478917779e49, 9.382928716654072e49, -8.591343011531182e49])
@example([5e-324, 0.1, -0.1])
def test_a_mean_is_exact_and_rounded_once_as_a_runs_document_has_it(aggregated, values):
    expected = float(sum(map(Fraction, values)) / len(values))
    records = [{"metrics": {"scores": {"a": value}}} for value in values]
    for component in (ScoreStats(), Distribution(), Power()):
        assert aggregated(component, records)["criteria"]["a"]["mean"] == expected
    assert aggregated(VariantRanking(), records)["mean"] == expected
