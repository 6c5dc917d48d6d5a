"""Passes of scores from verdicts, by the ``pass_at`` of each metric and judge, as in the run's document."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import dicast
from dicast import Judgment, Subject
from dicast.testing import run_pipeline
from dicast_stats import PassRate, ScoreStats
from dicast_stats.compare.command import compare

DICAST = Path(sys.executable).with_name("dicast")

WORDS = {"a": 2, "b": 4, "c": 6, "d": 8, "e": 9}
"""How many words each output has; of 10 it scores a tenth each."""

AGGREGATES = ["stats/pass_rate", "stats/score_stats", "stats/recommendation"]


def pipeline(name, words, pass_at, **options):
    rows = [{"id": id, "output": "x " * count, "session_id": id in "ab" and "one"} for id, count in words.items()]
    lines = [json.dumps({key: value for key, value in row.items() if value}) for row in rows]
    return {
        "name": name,
        "source": {"rows/jsonl": {"path": f"{name}.jsonl"}},
        "metrics": [{"proxy/length": {"as": "long", "min": 10, "unit": "words", "pass_at": pass_at}}],
        "scoring": {"pass_at": pass_at},
        **options,
    }, "\n".join(lines)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(name, words, pass_at=0.7, **options):
        document, lines = pipeline(name, words, pass_at, **options)
        (tmp_path / f"{name}.jsonl").write_text(lines)
        return dicast.run(document)

    return run


def run_compare(*arguments):
    return json.loads(CliRunner().invoke(compare, [*arguments, "--json"], catch_exceptions=False).output)


def test_a_rate_is_that_of_the_runs_document_to_the_last_digit(run):
    done = run("answers", WORDS, aggregates=AGGREGATES)
    passes, figures = done.score["passes"], done.aggregates["stats/pass_rate"]["criteria"]["long"]
    assert (
        (figures["passes"], figures["n"], figures["pass_rate"])
        == (2, 5, 0.4)
        == (passes["passed"], passes["n"], done.score["pass_rate"])
    )
    assert (figures["ci_low"], figures["ci_high"]) == (passes["ci_low"], passes["ci_high"])
    assert figures["words"].startswith("2 of 5 pass: not known to be at least 80%")
    stats = done.aggregates["stats/score_stats"]["criteria"]["long"]
    assert (stats["flagged"], stats["passes"], stats["pass_rate"]) == (5, 2, 0.4)
    assert "pass rate 40%" in done.aggregates["stats/recommendation"]["recommendation"]


def test_the_missing_of_a_label_are_those_that_the_run_counts(tmp_path, monkeypatch):
    """A metric that failed, a metric that the gate kept from judging, a judge that failed, and a subject without any verdict."""
    monkeypatch.chdir(tmp_path)
    subjects = [
        Subject("row", "right", output="one two", reference="one two", session_id="s"),
        Subject("row", "wrong", output="one", reference="two three", session_id="s"),
        Subject("row", "empty", output="", reference="two"),
        Subject("row", "noref", output="one two", session_id="t"),
        Subject("row", "nothing", output="broken", session_id="t"),
    ]

    @dicast.judge(accepts=["row"])
    def short(subject):
        if subject.output == "broken":
            raise ValueError("it is broken")
        return Judgment(1.0 if len(subject.output) < 5 else 0.0)

    file = {
        "metrics": ["proxy/format", {"diff/match": {"as": "same"}}],
        "judges": [{"s": {"as": "short"}}],
        "gate": [{"on": label, "min_pass_rate": 0.1} for label in ("same", "short")],
        "aggregates": ["stats/pass_rate", "stats/score_stats"],
    }
    done = run_pipeline(json.dumps(file), subjects=subjects, components={"s": short()}).document
    rates, stats = (done["aggregates"][f"stats/{name}"]["criteria"] for name in ("pass_rate", "score_stats"))
    assert {name: (rate["n"], rate["missing"], rate["passes"]) for name, rate in rates.items()} == {
        "metrics": (5, 2, 1),
        "proxy/format": (5, 2, 2),
        "same": (5, 3, 1),
        "short": (5, 1, 2),
    }
    for name, rate in rates.items():
        assert (stats[name]["missing"], stats[name]["pass_rate"]) == (rate["missing"], rate["pass_rate"])
    for metric in ("proxy/format", "same"):
        passes, rate = done["metrics"][metric]["passes"], rates[metric]
        # The aggregate is over all records; the run's rate leaves out the subjects whose judgment failed.
        assert (passes["passed"], passes["n"] + passes["open"]) == (rate["passes"], rate["n"])
    gate = {clause["on"]: clause["value"] for clause in done["gate"]["clauses"] if clause["rule"] == "min_pass_rate"}
    assert gate == {"same": 1 / 3, "short": 0.5}


@pytest.mark.parametrize("passing", [0, 5])
def test_where_all_pass_or_none_the_interval_ends_there_exactly(run, passing):
    done = run("answers", dict.fromkeys(WORDS, 10 if passing else 1), aggregates=AGGREGATES[:1])
    passes, figures = done.score["passes"], done.aggregates["stats/pass_rate"]["criteria"]["long"]
    assert (figures["ci_low"], figures["ci_high"]) == (passes["ci_low"], passes["ci_high"])
    assert (figures["ci_high"] == 1.0) if passing else (figures["ci_low"] == 0.0)


def test_scores_without_a_line_pass_or_fail_by_nothing(aggregated):
    records = [{"row": {"id": str(place)}, "metrics": {"scores": {"kind": 0.9}}} for place in range(5)]
    figures = aggregated(PassRate(), records)["criteria"]["kind"]
    assert (figures["n"], figures["passes"], figures["pass_rate"], figures["ci_low"]) == (5, None, None, None)
    assert figures["words"].startswith("not known for 5: there are scores but no flags")
    assert "threshold" in figures["reasons"]["pass_rate"]
    assert aggregated(PassRate(threshold=0.5), records)["criteria"]["kind"]["pass_rate"] == 1.0
    assert aggregated(ScoreStats(), records)["criteria"]["kind"]["flagged"] == 0


def test_the_line_of_each_run_decides_which_subjects_flip(run):
    run("before", WORDS)
    run("after", {**WORDS, "a": 6, "b": 7, "e": 5})
    document = run_compare("before", "after", "--allow-incomparable")
    assert [(flip["subject_id"], flip["a"], flip["b"]) for flip in document["flips"]] == [
        ("b", False, True),
        ("e", True, False),
    ]
    assert document["passes"]["long"]["known"] == 5
    paired = document["comparisons"]["stats/paired"]["criteria"]["long"]
    assert (paired["n_pass_pairs"], paired["passes_gained"], paired["passes_lost"], paired["mcnemar_p"]) == (
        5,
        1,
        1,
        1.0,
    )


def test_a_saved_baseline_says_who_passed(run, tmp_path):
    run("before", WORDS)
    done = subprocess.run([DICAST, "baseline", "save", "main", "--file", "main.json"], cwd=tmp_path, check=False)
    assert done.returncode == 0
    run("after", {**WORDS, "a": 6, "b": 7, "e": 5})
    document = run_compare("main.json", "after", "--allow-incomparable")
    assert [(flip["subject_id"], flip["a"], flip["b"]) for flip in document["flips"]] == [
        ("b", False, True),
        ("e", True, False),
    ]
    assert document["comparisons"]["stats/paired"]["criteria"]["long"]["n_pass_pairs"] == 5
