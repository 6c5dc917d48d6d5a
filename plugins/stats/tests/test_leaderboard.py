"""Systems ranked by comparisons of two at a time."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from dicast import ConfigError
from dicast_stats import Leaderboard
from dicast_stats.aggregates.leaderboard import fit_strengths

PAIRED = Leaderboard(first="a", second="b", resamples=200)


def games(*found):
    return [
        {"row": {"id": str(n), "a": one, "b": other}, "metrics": {"score": score}}
        for n, (one, other, score) in enumerate(found)
    ]


def drawn(count, seed, **true):
    rng, names = np.random.default_rng(seed), list(true)
    found = []
    for _ in range(count):
        one, other = rng.choice(names, 2, replace=False)
        found.append((one, other, float(rng.random() < expit(true[one] - true[other]))))
    return games(*found)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 30), min_size=k, max_size=k), min_size=k, max_size=k)
    )
)
def test_strengths_are_the_likeliest(wins):
    wins = np.array(wins, float)
    np.fill_diagonal(wins, 0)
    found = fit_strengths(wins)

    def unlikely(theta):
        return -(wins * log_expit(theta[:, None] - theta)).sum() - (log_expit(theta) + log_expit(-theta)).sum()

    slope = (wins - (wins + wins.T) * expit(found[:, None] - found)).sum(1) + 1 - 2 * expit(found)
    assert abs(slope).max() < 1e-7
    assert unlikely(found) <= minimize(unlikely, np.zeros(len(wins))).fun + 1e-9


def test_the_better_system_stands_first(aggregated):
    found = aggregated(PAIRED, drawn(600, 1, weak=-1.0, fair=0.0, good=1.0))
    assert list(found["systems"]) == ["good", "fair", "weak"]
    assert [(one["rank"], one["rank_low"], one["rank_high"]) for one in found["systems"].values()] == [
        (1, 1, 1),
        (2, 2, 2),
        (3, 3, 3),
    ]
    assert found["words"] == "good is ahead of all others"
    assert (found["n"], found["without"]) == (600, 0)
    for one in found["systems"].values():
        assert one["ci_low"] < one["strength"] < one["ci_high"]
        assert one["wins"] + one["ties"] + one["losses"] == one["n"]


def test_what_is_not_decided_shares_ranks(aggregated):
    found = aggregated(PAIRED, drawn(60, 2, one=0.0, other=0.1, third=-3.0))["systems"]
    assert {found[name]["words"] for name in ("one", "other")} == {"rank 1 to 2"}
    assert found["third"]["words"] == "rank 3"


def test_equal_wins_are_a_tie(aggregated):
    found = aggregated(PAIRED, games(("x", "y", 1.0), ("x", "y", 0.0), ("y", "x", 0.5)))
    assert [(one["rank"], one["strength"]) for one in found["systems"].values()] == [
        (1, pytest.approx(0)),
        (1, pytest.approx(0)),
    ]
    assert found["words"] == "not decided among x, y"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_wins_decide_nothing(aggregated, count):
    found = aggregated(PAIRED, games(*[("x", "y", 1.0)] * count))
    assert {one["words"] for one in found["systems"].values()} == {"rank 1 to 2"}


def test_the_order_of_the_names_in_a_record_does_not_matter(aggregated):
    turned = [("y", "x", 0.0), ("x", "y", 1.0), ("y", "z", 0.5), ("z", "x", 0.2), ("x", "z", 0.8)]
    one = aggregated(PAIRED, games(*turned))["systems"]
    other = aggregated(PAIRED, games(*((b, a, 1 - score) for a, b, score in turned)))["systems"]
    assert {name: found["strength"] for name, found in one.items()} == pytest.approx(
        {name: found["strength"] for name, found in other.items()}
    )


def test_without_columns_the_criteria_are_the_systems(aggregated):
    rng = np.random.default_rng(3)
    records = [
        {"metrics": {"scores": {"low": rng.random(), "high": 1 + rng.random(), "none": None}}} for _ in range(40)
    ]
    found = aggregated(Leaderboard(resamples=200), records)
    assert [(name, one["words"], one["wins"]) for name, one in found["systems"].items()] == [
        ("high", "rank 1", 40),
        ("low", "rank 2", 0),
    ]


def test_ranks_cover_the_true_ones():
    covered = 0
    from dicast_stats.aggregates.leaderboard import Games

    for seed in range(60):
        live = Games(PAIRED)
        for record in drawn(120, seed + 100, a=0.0, b=0.4, c=0.8, d=1.2):
            live.add(record)
        found = live.finish()["systems"]
        covered += all(
            found[name]["rank_low"] <= rank <= found[name]["rank_high"]
            for name, rank in (("d", 1), ("c", 2), ("b", 3), ("a", 4))
        )
    assert covered >= 54  # 95 % of 60 are 57


def test_many_subjects_are_resampled_in_groups(aggregated):
    found = aggregated(PAIRED, drawn(3_000, 5, weak=0.0, good=0.5))
    assert list(found["systems"]) == ["good", "weak"]
    good, weak = found["systems"].values()
    assert 0.25 < good["strength"] - weak["strength"] < 0.75


@pytest.mark.parametrize(
    "records",
    [
        [],
        games(("x", "x", 1.0)),
        games(("x", None, 1.0)),
        games(("x", "y", None)),
        games(*((f"s{n}", "y", 1.0) for n in range(101))),
    ],
    ids=["none", "itself", "no name", "no score", "too many"],
)
def test_little_to_rank_is_no_error(aggregated, records):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = aggregated(PAIRED, records)
    json.dumps(found, allow_nan=False)
    assert found["systems"] == {}
    assert found["reason"]


def test_half_of_the_columns_is_refused():
    for wrong in ({"first": "a"}, {"second": "b"}, {"criterion": "c"}, {"resamples": 10}):
        with pytest.raises(ConfigError):
            Leaderboard(**wrong)
