"""Systems ranked by pairwise comparisons."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError
from dicast_stats import Leaderboard
from dicast_stats.aggregates.leaderboard import fit_strengths

PAIRED = Leaderboard(first="a", second="b", resamples=200)


def games(*results):
    return [
        {"row": {"id": str(n), "a": first, "b": second}, "metrics": {"score": score}}
        for n, (first, second, score) in enumerate(results)
    ]


def drawn(count, seed, **true):
    from scipy.special import expit

    rng, names = np.random.default_rng(seed), list(true)
    results = []
    for _ in range(count):
        first, second = rng.choice(names, 2, replace=False)
        results.append((first, second, float(rng.random() < expit(true[first] - true[second]))))
    return games(*results)


@settings(max_examples=2 * settings.default.max_examples, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda k: st.lists(st.lists(st.integers(0, 30), min_size=k, max_size=k), min_size=k, max_size=k)
    )
)
def test_strengths_are_the_likeliest(wins):
    from scipy.optimize import minimize
    from scipy.special import expit, log_expit

    wins = np.array(wins, float)
    np.fill_diagonal(wins, 0)
    strengths = fit_strengths(wins)

    def unlikely(theta):
        return -(wins * log_expit(theta[:, None] - theta)).sum() - (log_expit(theta) + log_expit(-theta)).sum()

    slope = (wins - (wins + wins.T) * expit(strengths[:, None] - strengths)).sum(1) + 1 - 2 * expit(strengths)
    assert abs(slope).max() < 1e-7
    assert unlikely(strengths) <= minimize(unlikely, np.zeros(len(wins))).fun + 1e-9


def test_the_better_system_is_first(aggregated):
    document = aggregated(PAIRED, drawn(600, 1, weak=-1.0, fair=0.0, good=1.0))
    assert list(document["systems"]) == ["good", "fair", "weak"]
    assert [(system["rank"], system["rank_low"], system["rank_high"]) for system in document["systems"].values()] == [
        (1, 1, 1),
        (2, 2, 2),
        (3, 3, 3),
    ]
    assert document["words"] == "good is ahead of all others"
    assert (document["n"], document["without"]) == (600, 0)
    for system in document["systems"].values():
        assert system["ci_low"] < system["strength"] < system["ci_high"]
        assert system["wins"] + system["ties"] + system["losses"] == system["n"]


def test_what_is_not_decided_shares_ranks(aggregated):
    systems = aggregated(PAIRED, drawn(60, 2, one=0.0, other=0.1, third=-3.0))["systems"]
    assert {systems[name]["words"] for name in ("one", "other")} == {"rank 1 to 2"}
    assert systems["third"]["words"] == "rank 3"


def test_equal_wins_are_a_tie(aggregated):
    document = aggregated(PAIRED, games(("x", "y", 1.0), ("x", "y", 0.0), ("y", "x", 0.5)))
    assert [(system["rank"], system["strength"]) for system in document["systems"].values()] == [
        (1, pytest.approx(0)),
        (1, pytest.approx(0)),
    ]
    assert document["words"] == "not decided among x, y"


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_few_wins_decide_nothing(aggregated, count):
    document = aggregated(PAIRED, games(*[("x", "y", 1.0)] * count))
    assert {system["words"] for system in document["systems"].values()} == {"rank 1 to 2"}


def test_the_order_of_the_names_in_a_record_does_not_matter(aggregated):
    turned = [("y", "x", 0.0), ("x", "y", 1.0), ("y", "z", 0.5), ("z", "x", 0.2), ("x", "z", 0.8)]
    first = aggregated(PAIRED, games(*turned))["systems"]
    second = aggregated(PAIRED, games(*((b, a, 1 - score) for a, b, score in turned)))["systems"]
    assert {name: system["strength"] for name, system in first.items()} == pytest.approx(
        {name: system["strength"] for name, system in second.items()}
    )


def test_without_columns_the_criteria_are_the_systems(aggregated):
    rng = np.random.default_rng(3)
    records = [
        {"metrics": {"scores": {"low": rng.random(), "high": 1 + rng.random(), "none": None}}} for _ in range(40)
    ]
    document = aggregated(Leaderboard(resamples=200), records)
    assert [(name, system["words"], system["wins"]) for name, system in document["systems"].items()] == [
        ("high", "rank 1", 40),
        ("low", "rank 2", 0),
    ]


@pytest.mark.slow
def test_ranks_cover_the_true_ones():
    covered = 0
    from dicast_stats.aggregates.leaderboard import Games

    for seed in range(60):
        live = Games(PAIRED)
        for record in drawn(120, seed + 100, a=0.0, b=0.4, c=0.8, d=1.2):
            live.add(record)
        systems = live.finish()["systems"]
        covered += all(
            systems[name]["rank_low"] <= rank <= systems[name]["rank_high"]
            for name, rank in (("d", 1), ("c", 2), ("b", 3), ("a", 4))
        )
    assert covered >= 54  # 95 % of 60 are 57


def test_many_subjects_are_resampled_in_groups(aggregated):
    document = aggregated(PAIRED, drawn(3_000, 5, weak=0.0, good=0.5))
    assert list(document["systems"]) == ["good", "weak"]
    good, weak = document["systems"].values()
    assert 0.25 < good["strength"] - weak["strength"] < 0.75


@pytest.mark.parametrize(
    "records",
    [
        [],
        games(("x", "x", 1.0)),
        games(("x", None, 1.0)),
        games(("x", "y", None)),
        games(*((f"s{n}", "y", 1.0) for n in range(100))),
    ],
    ids=["none", "itself", "no name", "no score", "101 systems"],
)
def test_little_to_rank_is_no_error(aggregated, records):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        document = aggregated(PAIRED, records)
    json.dumps(document, allow_nan=False)
    assert document["systems"] == {}
    assert document["reason"]


def test_half_of_the_columns_is_refused():
    for wrong in ({"first": "a"}, {"second": "b"}, {"criterion": "c"}, {"resamples": 10}):
        with pytest.raises(ConfigError):
            Leaderboard(**wrong)
