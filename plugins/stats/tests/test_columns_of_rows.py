"""Statistics that look into a row's columns, of runs whose records verdicts alone make."""

from __future__ import annotations

import json

import pytest

import dicast

SYSTEMS = ("plain", "warm", "brief")


def rows(good):
    return [
        {
            "id": str(place),
            "input": "?",
            "output": "yes" if place % good else "no",
            "chat": f"c{place // 4}",
            "kind": "short" if place % 2 else "long",
            "mark": place % good and 1,
            "first": SYSTEMS[place % 3],
            "second": SYSTEMS[(place + 1) % 3],
        }
        for place in range(24)
    ]


@pytest.fixture
def judged(tmp_path):
    """Runs a pipeline of one metric over rows, whose other columns it does not name."""

    def judged(name, good, **sections):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows(good))))
        pipeline = {
            "name": name,
            "source": {"rows/jsonl": {"path": str(tmp_path / f"{name}.jsonl")}},
            "metrics": [{"check/equals": {"as": "right", "value": "yes"}}],
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
        }
        return dicast.run(pipeline | sections)

    return judged


def test_a_leaderboard_is_made_of_the_systems_that_rows_name(judged):
    run = judged("games", 3, aggregates=[{"stats/leaderboard": {"first": "first", "second": "second"}}])
    found = run.aggregates["stats/leaderboard"]
    assert (found["n"], found["without"]) == (24, 0)
    assert {name: (one["wins"], one["losses"]) for name, one in found["systems"].items()} == {
        "warm": (16, 0),
        "brief": (8, 8),
        "plain": (0, 16),
    }


def test_passes_are_clustered_by_any_column(judged):
    run = judged("passes", 3, aggregates=[{"stats/pass_rate": {"session_field": "chat"}}])
    assert run.aggregates["stats/pass_rate"]["criteria"]["right"]["sessions"] == 6


def test_two_runs_are_compared_by_category_and_with_referees(judged):
    judged("before", 3)
    compare = [
        {"stats/category_effects": {"category_field": "kind"}},
        {"stats/referee_alignment": {"referee_fields": ["mark"]}},
    ]
    run = judged("after", 4, baseline={"run": "before", "compare": compare})
    categories = run.comparison["stats/category_effects"]["categories"]
    assert {name: one["n_variant"] for name, one in categories.items()} == {"long": 12, "short": 12}
    assert "without" not in run.comparison["stats/category_effects"]
    referees = run.comparison["stats/referee_alignment"]
    assert (referees["baseline"]["n"], referees["variant"]["n"], referees["variant"]["mae"]) == (24, 24, 0.0)


def test_a_ledger_that_stores_no_content_has_no_columns(judged, tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "digests.db"), "content": "digest"}}
    judged("before", 3, ledger=ledger)
    run = judged("after", 4, ledger=ledger, baseline={"run": "before", "compare": ["stats/category_effects"]})
    assert run.comparison["stats/category_effects"]["categories"] == {}
    assert run.comparison["stats/category_effects"]["without"] == 48
