"""Statistics on the columns of rows, for runs whose records consist of verdicts."""

from __future__ import annotations

import json
import subprocess
import sys

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
    """Return a function that runs a pipeline of one metric over rows with further columns."""

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
    document = run.aggregates["stats/leaderboard"]
    assert (document["n"], document["without"]) == (24, 0)
    assert {name: (system["wins"], system["losses"]) for name, system in document["systems"].items()} == {
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
    assert {name: category["n_variant"] for name, category in categories.items()} == {"long": 12, "short": 12}
    assert "without" not in run.comparison["stats/category_effects"]
    referees = run.comparison["stats/referee_alignment"]
    assert (referees["baseline"]["n"], referees["variant"]["n"], referees["variant"]["mae"]) == (24, 24, 0.0)


def test_a_ledger_that_stores_no_content_has_no_columns(judged, tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "digests.db"), "content": "digest"}}
    judged("before", 3, ledger=ledger)
    run = judged("after", 4, ledger=ledger, baseline={"run": "before", "compare": ["stats/category_effects"]})
    assert run.comparison["stats/category_effects"]["categories"] == {}
    assert run.comparison["stats/category_effects"]["without"] == 48
    assert run.comparison["stats/category_effects"]["reason"].endswith(
        f"; the rows of baseline and variant {NONE_KEPT}"
    )


NONE_KEPT = "have no columns: a file of dicast baseline save and a ledger with content: digest store none"


def test_a_baseline_in_a_file_says_that_it_has_no_columns(judged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged("before", 3)
    save = [sys.executable, "-m", "dicast", "baseline", "save", "kept", "before"]
    subprocess.run([*save, "--file", "before.json", "--ledger", "ledger.db"], check=True, capture_output=True)
    compare = ["stats/category_effects", {"stats/referee_alignment": {"referee_fields": ["mark"]}}]
    run = judged("after", 4, baseline={"run": "before.json", "compare": compare})
    note = f"; the rows of baseline {NONE_KEPT}"
    assert run.comparison["stats/category_effects"]["reason"] == (
        f"no category is in both runs: the rows' column 'category' has the category{note}"
    )
    referees = run.comparison["stats/referee_alignment"]
    assert referees["words"] == f"no subject has a score and a referee's mark in both runs{note}"


def test_a_column_that_no_row_has_is_not_said_to_be_unkept(judged):
    judged("before", 3)
    run = judged("after", 4, baseline={"run": "before", "compare": ["stats/category_effects"]})
    assert run.comparison["stats/category_effects"]["reason"] == (
        "no category is in both runs: the rows' column 'category' has the category"
    )
