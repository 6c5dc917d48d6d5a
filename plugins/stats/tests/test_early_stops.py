"""Early stops of a run."""

from __future__ import annotations

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Subject
from dicast.testing import run_pipeline
from dicast_stats import Plateau, Threshold


def rows(*values, path="score"):
    first, *rest = reversed(path.split("."))
    records = []
    for value in values:
        metrics = {first: value}
        for name in rest:
            metrics = {name: metrics}
        records.append({"row": {}, "metrics": metrics})
    return records


def test_the_threshold_fires_at_the_settled_row_and_stays(observed):
    stop = Threshold("outer.inner.value", 15, min_rows=3, label="enough")
    reasons = observed(stop, rows(15, 16, 17, 99, 1, None, path="outer.inner.value"))
    reason = {
        "metric": "outer.inner.value",
        "comparison": "gte",
        "threshold": 15,
        "value": 17.0,
        "rows_observed": 3,
        "label": "enough",
    }
    assert reasons == [None, None, reason, reason, reason, reason]
    assert "label" not in observed(Threshold("score", 0), rows(1))[0]


@pytest.mark.parametrize(
    ("comparison", "fires"),
    [
        ("gte", [False, True, True]),
        ("gt", [False, False, True]),
        ("lte", [True, True, False]),
        ("lt", [True, False, False]),
    ],
)
def test_each_comparison_fires_where_it_says(observed, comparison, fires):
    stop = Threshold("score", 0.5, comparison)
    assert [observed(stop, rows(value))[0] is not None for value in (0.4, 0.5, 0.6)] == fires


def test_only_records_with_a_number_count(observed):
    reasons = observed(
        Threshold("scores.a", 0, min_rows=2),
        [{}, {"metrics": {"scores": {"b": 1}}}, *rows(None, "x", [1], {}, "2", True, path="scores.a")],
    )
    assert [reason and reason["rows_observed"] for reason in reasons] == [None] * 7 + [2]


def test_what_is_not_finite_counts_and_reaches_nothing(observed):
    reasons = observed(Threshold("score", 0, min_rows=3), rows(nan, inf, 1))
    assert [reason and reason["rows_observed"] for reason in reasons] == [None, None, 3]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ("{threshold: 1}", "metric"),
        ("{metric: '', threshold: 1}", "metric is empty"),
        ("{metric: score, threshold: high}", "threshold"),
        ("{metric: score, threshold: '0.8'}", "threshold"),
        ("{metric: score, threshold: true}", "threshold"),
        ("{metric: score, threshold: .nan}", "not a finite number"),
        ("{metric: score, threshold: 1, comparison: equals}", "comparison"),
        ("{metric: score, threshold: 1, min_rows: 0}", "min_rows, .*got 0"),
    ],
)
def test_wrong_options_of_the_threshold_are_refused(options, wrong):
    with pytest.raises(ConfigError, match=wrong):
        run_pipeline(f"metrics: [proxy/length]\nearly_stop: [{{stats/threshold: {options}}}]")


def test_all_wrong_options_are_reported_together():
    with pytest.raises(ConfigError) as caught:
        run_pipeline(
            "metrics: [proxy/length]\nearly_stop: [{stats/plateau: {metric: '', window: 0, threshold: -1}},"
            " {stats/threshold: {metric: score, threshold: high, min_rows: 0}}]"
        )
    for message in ("metric is empty", "value for window", "got -1", "'high'", "value for min_rows"):
        assert message in str(caught.value)


def test_the_plateau_stops_at_the_settled_row(observed):
    reasons = observed(Plateau("score", 3, 0.001), rows(0.5, 0.5, 0.5, 0.5, 0.9))
    reason = {"metric": "score", "window": 3, "threshold": 0.001, "value": 0.5, "rows_observed": 4}
    assert reasons == [None, None, None, reason, reason]


def test_growth_up_to_the_threshold_is_none(observed):
    assert observed(Plateau("score", 1, 0.001), rows(0.5, 0.501))[-1] is not None
    assert observed(Plateau("score", 1, 0.001), rows(0.5, 0.502, 0.504))[-1] is None
    assert observed(Plateau("score", 2), rows(0.5, 0.1, None, 0.2))[-1]["value"] == 0.5


@pytest.mark.parametrize("options", ["{metric: score, window: 0}", "{metric: score, window: 1, threshold: -1}"])
def test_wrong_options_of_the_plateau_are_refused(options):
    with pytest.raises(ConfigError, match="from [01]"):
        run_pipeline(f"metrics: [proxy/length]\nearly_stop: [{{stats/plateau: {options}}}]")


def grown_little(before, now, threshold):
    return before + threshold >= now - 1e-12 * abs(now)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.integers(1, 5), st.floats(0, 10))
def test_a_plateau_is_where_the_best_has_not_grown_for_a_window(observed, values, window, threshold):
    reasons = observed(Plateau("score", window, threshold), rows(*values))
    best = [max(values[: row + 1]) for row in range(len(values))]
    flat = [row for row in range(window, len(values)) if grown_little(best[row - window], best[row], threshold)]
    fired = [row for row, reason in enumerate(reasons) if reason is not None]
    assert fired == (list(range(flat[0], len(values))) if flat else [])


@pytest.mark.parametrize(
    "stop", [Threshold("scores.clairty", 1), Plateau("scores.clairty", 1)], ids=lambda component: component.name
)
def test_a_metric_that_no_record_has_is_warned_of(observed, caplog, stop):
    observed(stop, [{}, *rows(1, path="scores.clarity")])
    [warning] = caplog.messages
    message = "could not stop the run: no record has a number at metrics.scores.clairty; a record has 'scores.clarity'"
    assert warning == f"stats/{stop.name} {message}"
    caplog.clear()
    observed(type(stop)("clarity", 1), rows(1, path="scores.clarity"))
    assert caplog.messages[0].endswith("a record has 'scores.clarity', did you mean 'scores.clarity'?")
    caplog.clear()
    observed(stop, [{}, *rows(0.5, path="scores.clairty"), {}])
    observed(stop, [])
    assert caplog.messages == []


def test_a_run_stops_and_says_why():
    text = (
        "metrics: [proxy/length: {max: 4}]\nexecutor: {dicast/async: {concurrency: 1}}\n"
        "early_stop: [stats/threshold: {metric: scores.proxy/length, threshold: 1, min_rows: 2}]"
    )
    subjects = [Subject("row", str(number), output="word") for number in range(50)]
    done = run_pipeline(text, subjects=subjects)
    stopped = done.document["stopped"]
    assert stopped["reason"] == "early_stop"
    assert (stopped["plugin"], stopped["rows_observed"], stopped["value"]) == ("stats/threshold", 2, 1.0)
    assert done.document["scored"] < 50


@pytest.mark.parametrize("size", [1e-15, 1.0, 1000.0])
def test_a_plateau_is_the_same_on_every_scale(observed, size):
    growth = rows(*(size * value for value in (0.5, 0.501, 0.502, 0.503, 0.504)))
    assert [reason is not None for reason in observed(Plateau("score", 2, 0.002 * size), growth)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert observed(Plateau("score", 2, 0.0019 * size), growth)[-1] is None
