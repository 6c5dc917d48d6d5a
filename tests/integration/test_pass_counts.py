"""Every surface gives the same answer about two runs: compare, the run's own document, its Markdown, the report and the dashboard's reader."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import attrs
import pytest

import dicast
from dicast import Failure, Judgment, Subject
from dicast._kernel.cli import main
from dicast.reporting import pair_runs, run_markdown
from dicast_stats.compare.command import read_comparison

ROWS = 24
LEDGER = {"ledger/sqlite": {"path": "ledger.db"}}


@attrs.frozen
class Liking:
    """A judge whose score is in the row, and that fails where it is not."""

    name = "liking"
    judge_kind = "llm"

    def judge(self, subject, children):
        score = subject.context["liking"]
        return Failure("judge_output_invalid", "no reply") if score is None else Judgment(score, 0.9, "llm")


def run(name, scores, *, words, failing=(), gate=None, only=None, **options):
    ids = [str(number) for number in range(ROWS)] if only is None else only
    liking = {id_: {"liking": None if id_ in failing else scores[id_]} for id_ in ids}
    subjects = [Subject("row", id_, "q", " ".join("w" * words.get(id_, 3)), "w w w", liking[id_]) for id_ in ids]
    return dicast.run(
        {
            "name": name,
            "metrics": [{"proxy/length": {"as": "short", "max": 6}}, {"diff/similarity": {"as": "near", "weight": 3}}],
            "judges": [{"judge": {"as": "liked"}}],
            "define": {"judge": Liking()},
            "gate": gate or {"on": "liked", "min_score": 0.1},
            "ledger": LEDGER,
            **options,
        },
        subjects=subjects,
    )


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs of one name: the judge prefers the second, the metrics the first; one judgment failed, one row is new."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("two"))
        ids = [str(number) for number in range(ROWS)]
        run("nightly", dict.fromkeys(ids, 0.2) | {"0": 0.9, "1": 0.9}, words={})
        later = dict.fromkeys(ids, 0.8) | {"0": 0.1, "new": 0.8}
        done = run(
            "nightly",
            later,
            words=dict.fromkeys(ids[:5], 9),
            failing=("2",),
            only=[*ids[:-1], "new"],
            baseline={"run": "nightly", "compare": ["stats/paired"]},
        )
    return folder, done


@pytest.fixture
def folder(two, monkeypatch):
    monkeypatch.chdir(two[0])
    return two[0]


LIKED = {"a": 1, "b": 20, "both": 1, "neither": 0, "open": 1, "unpaired_a": 1, "unpaired_b": 1}


def numbers(counts):
    return {name: counts[name] for name in LIKED}


def test_counts_are_by_the_gates_label_and_add_up(folder, two):
    done = two[1]
    liked = done.baseline["passes"]["liked"]
    assert numbers(liked) == LIKED
    assert liked["known"] + liked["open"] + liked["unpaired_a"] == ROWS
    assert list(done.baseline["passes"])[0] == "liked"
    assert {"metrics", "short", "near"} <= done.baseline["passes"].keys()
    assert done.baseline["passes"]["short"]["a"] == 5


def test_every_surface_has_the_same_counts(folder, two, capfd):
    done = two[1]
    passes, a, b = done.baseline["passes"], done.baseline["run_id"], done.run_id
    assert main(["compare", a, b, "--ledger", "ledger.db", "--json"]) == 0
    compared = json.loads(capfd.readouterr().out)
    assert (compared["passes"], compared["label"]) == (passes, "liked")
    served = dicast.read_ledger(Path("ledger.db"), lambda live: read_comparison(live, a=a, b=b))
    assert served["passes"] == passes
    assert main(["report", b, "--ledger", "ledger.db", "--out", "report.html"]) == 0
    capfd.readouterr()
    page = json.loads(
        re.search(r'id="dicast-report"[^>]*>(.*?)</script>', Path("report.html").read_text(), re.DOTALL)[1]
    )
    assert (page["runs"][0]["flips"]["passes"], page["runs"][0]["flips"]["label"]) == (passes, "liked")
    paired = dicast.read_ledger(Path("ledger.db"), lambda live: pair_runs(live.read, a, b))
    assert {label: counts.json() for label, counts in paired.counted().items()} == passes
    assert main(["show", b, "--ledger", "ledger.db", "--json"]) == 0
    markdown = run_markdown(json.loads(capfd.readouterr().out))
    assert main(["show", b, "--full", "--ledger", "ledger.db"]) == 0
    output = " ".join(capfd.readouterr().out.split())
    for counts in passes.values():
        assert counts["words"] in output
        assert counts["words"] in markdown
    paired_test = compared["comparisons"]["stats/paired"]["criteria"]["liked"]
    assert (paired_test["passes_gained"], paired_test["passes_lost"]) == (LIKED["b"], LIKED["a"])


def test_every_sentence_about_a_difference_names_its_label(folder, two, capfd):
    done = two[1]
    assert main(["compare", done.baseline["run_id"], done.run_id, "--ledger", "ledger.db", "--full"]) == 0
    output = capfd.readouterr().out.splitlines()
    sentences = [line for line in output if re.search(r"no difference found|better|worse|cannot tell", line)]
    labels = [label for line in sentences for label in line.strip().partition(":")[0].split(", ")]
    assert {*labels} == {"liked", "metrics", "short", "near"}
    assert any(re.match(r"liked: better: B \(\w{6}\) is ahead, \+0\.5", line) for line in output)
    assert not any(line.startswith(("no difference", "better", "worse", "cannot tell")) for line in output)
    assert any(line.startswith("liked: 20 pass in B alone, 1 in A alone, of 22; 1 open") for line in output)
    assert max(map(len, output)) <= 120


def test_runs_under_different_lines_are_both_counted_by_the_newer_ones(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    ids = [str(number) for number in range(ROWS)]
    first = run("lines", dict.fromkeys(ids, 0.6), words={}).run_id
    judges = [{"judge": {"as": "liked", "pass_at": 0.9}}]
    second = run("lines", dict.fromkeys(ids, 0.6), words={}, judges=judges).run_id
    for pair in ((first, second), (second, first)):
        assert main(["compare", *pair, "--ledger", "ledger.db", "--allow-incomparable", "--json"]) == 0
        liked = json.loads(capfd.readouterr().out)["passes"]["liked"]
        assert (liked["neither"], liked["a"], liked["b"]) == (ROWS, 0, 0)


def test_a_check_that_is_broken_on_every_row_fails_on_every_surface(tmp_path, monkeypatch, capfd):
    """A subject passes all metrics together where each metric passes; document, JUnit, report and comparison agree."""
    monkeypatch.chdir(tmp_path)
    ids = [str(number) for number in range(ROWS)]
    sinks = [{"junit/xml": {"path": "run.xml"}}, {"report/html": {"path": "run.html"}}]
    metrics = [{"check/equals": {"as": "same", "value": "w w w"}}, {"diff/similarity": {"as": "near", "weight": 3}}]
    sections = {"judges": [], "define": {}, "metrics": metrics, "gate": {"min_pass_rate": 0.5}}
    first = run("checks", dict.fromkeys(ids, 0.5), words={}, **sections)
    broken = run("checks", dict.fromkeys(ids, 0.5), words=dict.fromkeys(ids, 4), sinks=sinks, **sections)
    assert (first.labels["metrics"]["pass_rate"], broken.labels["metrics"]["pass_rate"]) == (1.0, 0.0)
    assert broken.labels["metrics"]["mean"] > 0.5
    assert broken.exit_code == 1
    suites = {suite.get("name"): suite.get("failures") for suite in ET.parse("run.xml").getroot()}
    assert suites["metrics"] == suites["same"] == str(ROWS)
    assert suites["near"] == "0"
    page = json.loads(re.search(r'id="dicast-report"[^>]*>(.*?)</script>', Path("run.html").read_text(), re.DOTALL)[1])
    cards = {card["label"]: card["passed"] for card in page["runs"][0]["labels"]}
    assert (cards["metrics"], cards["same"], cards["near"]) == (0, 0, ROWS)
    assert (
        main(["compare", first.run_id, broken.run_id, "--ledger", "ledger.db", "--allow-incomparable", "--json"]) == 0
    )
    output = json.loads(capfd.readouterr().out)
    assert [output["passes"]["metrics"][side] for side in ("a", "b", "both")] == [ROWS, 0, 0]
    paired = output["comparisons"]["stats/paired"]["criteria"]
    assert (paired["metrics"]["passes_lost"], paired["near"]["passes_lost"]) == (ROWS, 0)


def test_the_only_metric_is_compared_once_and_under_its_name(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    ids = [str(number) for number in range(ROWS)]
    runs = [
        run("one", dict.fromkeys(ids, score), words={}, metrics=[{"proxy/length": {"as": "short", "max": 6}}]).run_id
        for score in (0.2, 0.4)
    ]
    assert main(["compare", *runs, "--ledger", "ledger.db", "--json"]) == 0
    output = json.loads(capfd.readouterr().out)
    assert set(output["passes"]) == set(output["comparisons"]["stats/paired"]["criteria"]) == {"liked", "short"}
