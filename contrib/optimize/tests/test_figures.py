"""Plateaus of a search, its summary, and intervals of means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast_optimize.interval import mean_interval
from dicast_optimize.reflect import proposed
from dicast_optimize.summary import (
    efficiency,
    failure_signal,
    flattened,
    score_summary,
    standstill,
    suggested_budget,
    top_diagnostics,
)


def test_a_plateau_needs_more_steps_than_the_window():
    assert [standstill([0.5] * n, 3, 0.001) for n in (1, 2, 3, 4)] == [False, False, False, True]
    assert not standstill([0.5, 0.5, 0.5, 0.502], 3, 0.001)
    assert standstill([0.5, 0.5, 0.5, 0.501], 3, 0.0011)


@given(st.lists(st.floats(0, 1), min_size=1), st.integers(1, 10))
def test_a_best_score_that_rises_at_each_step_never_stands_still(steps, window):
    history = [n + step / 2 for n, step in enumerate(steps)]
    assert not standstill(history, window, 0.4)


def test_the_summary_has_the_figures_of_the_protocols_tools():
    assert score_summary([0.2, 0.75, 0.6]) == {
        "initial": 0.2,
        "latest": 0.6,
        "best": 0.75,
        "delta_latest_vs_initial": 0.4,
        "delta_best_vs_initial": 0.55,
        "num_candidates": 3,
    }
    assert score_summary([])["delta_best_vs_initial"] is None
    assert top_diagnostics({"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.2}, 0.4)[0] == {"name": "b", "value": 0.9}
    assert len(top_diagnostics({"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.2}, 0.4)) == 3
    assert top_diagnostics({}, 0.4) == [{"name": "overall_score", "value": 0.4}]
    assert [flattened(scores) for scores in ([0.5, 0.5], [0.5] * 3, [0.5, 0.52, 0.5], [0.1, *[0.5] * 5])] == [
        False,
        True,
        False,
        False,
    ]
    assert failure_signal([{"x": 1.0}], [0.1] * 3) is None
    assert failure_signal([{}], [0.0] * 3) == {"kind": "repeated_zero_scores", "num_candidates": 3}
    assert failure_signal([{"parse_error": 0.5}, {"parse_error": 0.25}, {"ok": 1.0}], [0.0]) == {
        "kind": "failure_diagnostic_metrics",
        "metrics": [{"name": "parse_error", "latest": 0.0, "max": 0.5}],
    }
    assert (efficiency(4, 37), efficiency(1, 0)) == (0.1081, 1.0)
    assert [suggested_budget("x" * n) for n in (99, 100, 500, 2000)] == [50, 100, 200, 300]


def test_an_interval_needs_two_clusters_and_is_the_kernels_normal_one():
    assert mean_interval([], []) == {"score": None, "ci_low": None, "ci_high": None, "n": 0}
    assert mean_interval([0.5, 1.0], ["a", "a"]) == {"score": 0.75, "ci_low": None, "ci_high": None, "n": 2}
    interval = mean_interval([0.2, 0.4, 0.6, 0.8], range(4))
    assert interval["score"] == pytest.approx(0.5)
    assert interval["ci_high"] - 0.5 == pytest.approx(1.959963984540054 * (4 / 3 * 0.2) ** 0.5 / 4)
    assert mean_interval([0.0, 1.0], range(2))["ci_low"] == 0.0


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Here:\n```\nnew text\n```\nas you see", "new text"),
        ("```python\na\nb\n```", "a\nb"),
        ("```\nshort\n```\n```\nmuch longer\n```", "much longer"),
        ("````\nSay:\n```\ncode\n```\n````", "Say:\n```\ncode\n```"),
        ("plain text ", "plain text"),
        ("```\nnever ended", "never ended"),
        ("```\n```", ""),
    ],
)
def test_the_new_text_is_what_stands_between_the_fences(reply, text):
    assert proposed(reply) == text
