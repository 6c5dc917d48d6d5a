"""Each run records its kind; runs that a tool starts are passed over by ``last`` and by commands without a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dicast
from dicast import run_kind, started_runs

LEDGER = ".dicast/ledger.db"
TEXT = "name: nightly\nmetrics: [proxy/format]\n"
SUITE = "name: two\nmetrics: [proxy/format]\nexperiments: {a: {}, b: {}}\n"
LABEL = {"subject_id": "r0", "subject_kind": "row", "score": 1.0}


@pytest.fixture
def ran(shop):
    """A ledger with a run of a pipeline, and after it labels of a person."""
    shop.rows("x", "y")
    run_id = shop.run(TEXT).json["run_id"]
    (shop.folder / "labels.jsonl").write_text(json.dumps(LABEL) + "\n")
    done = shop.dicast("labels", "import", "labels.jsonl", "--labeller", "ada")
    assert done.code == 0, done.err
    assert len(kinds(shop)) == 2
    return run_id


def kinds(shop):
    return [run["kind"] for run in shop.dicast("runs", "--json").json["runs"]]


def test_runs_list_their_kind(shop, ran):
    assert kinds(shop) == ["tool", "pipeline"]
    table = shop.dicast("runs").out
    assert "kind" in table.splitlines()[0]
    assert "tool" in table
    dicast.evaluate([{"output": "x"}], ["proxy/format"], ledger={"ledger/sqlite": {"path": LEDGER}})
    assert kinds(shop)[0] == "evaluate"


def test_a_suites_runs_are_of_the_kind_suite(shop):
    shop.rows("x")
    assert shop.run(SUITE).code == 0
    assert set(kinds(shop)) == {"suite"}


@pytest.mark.parametrize(
    "command",
    [
        ("show", "last"),
        ("verdicts", "--run", "last"),
        ("report", "--json"),
        ("report", "last", "--json"),
        ("baseline", "save", "main"),
        ("cost", "--run", "last"),
        ("agreement", "--run", "last"),
        ("events", "--run", "last"),
    ],
    ids=" ".join,
)
def test_last_passes_over_runs_of_tools(shop, ran, command):
    labels = shop.dicast("runs", "--json").json["runs"][0]["run_id"]
    words = command if "--json" in command else (*command, "--json")
    done = shop.dicast(*words)
    assert labels not in done.out
    assert done.code != 0 or ran in done.out or command[0] in ("cost", "agreement"), done.err


def test_a_tools_run_is_shown_by_its_id(shop, ran):
    labels = shop.dicast("runs", "--json").json["runs"][0]["run_id"]
    assert shop.dicast("show", labels, "--json").json["run_id"] == labels


def test_a_subject_is_shown_in_the_newest_run_that_is_no_tools(shop, ran):
    assert shop.dicast("show", "r0", "--json").json["verdicts"][0]["judge"] == "metrics"
    assert len(shop.dicast("show", "r0", "--all", "--json").json["runs"]) == 2


def test_last_in_a_ledger_of_tools_alone_says_so(shop):
    shop.rows("x")
    dicast.run(
        {"metrics": ["proxy/format"], "ledger": {"ledger/sqlite": {"path": LEDGER}}},
        subjects=[dicast.Subject("row", "1", output="x")],
        kind="tool",
    )
    done = shop.dicast("verdicts", "--run", "last")
    assert done.code == 2
    assert "Name a run by its id" in done.err


def test_a_tools_run_of_the_same_file_is_neither_resumed_nor_meant_by_its_name(shop, ran):
    ledger = {"ledger/sqlite": {"path": LEDGER}}
    tool = dicast.run(shop.folder / "p.yaml", overrides={"ledger": ledger}, kind="tool").run_id
    result = shop.dicast("compare", "nightly", tool, "--json")
    assert result.json["a"]["run_id"] == ran
    assert shop.dicast("report", "nightly", "--json").json["runs"][0]["run_id"] == ran


@pytest.mark.parametrize(
    ("started", "kind"),
    [
        ({"name": "label", "metrics": [], "judges": ["human"]}, "tool"),
        ({"name": "labels", "file": "<mapping>", "metrics": [], "judges": ["ada"]}, "tool"),
        ({"name": "a (canaries)", "preview": True, "limit": None, "judges": ["m"]}, "tool"),
        ({"name": "a", "preview": True, "limit": 3, "judges": ["m"]}, "pipeline"),
        ({"name": "a/b", "suite": {"id": "1"}, "metrics": ["m"]}, "suite"),
        ({"name": "a", "live": True, "metrics": ["m"]}, "watch"),
        ({"name": "a", "metrics": ["m"], "judges": ["human"]}, "pipeline"),
    ],
)
def test_older_ledgers_have_kinds_too(started, kind):
    assert run_kind(started) == kind


def test_started_runs_leave_tools_out_unless_asked(shop, ran):
    result = dicast.read_ledger(
        Path(LEDGER), lambda live: [len(list(started_runs(live.read, tools=t))) for t in (False, True)]
    )
    assert result == [1, 2]


def test_a_baseline_of_last_is_no_tools_run_of_the_same_pipeline(shop, ran):
    text = TEXT + "baseline: {run: last, compare: [stats/paired]}\n"
    shop.pipeline(text)
    ledger = {"ledger/sqlite": {"path": LEDGER}}
    tool = dicast.run(shop.folder / "p.yaml", overrides={"ledger": ledger}, kind="tool")
    assert tool.baseline["run_id"] == ran
    assert shop.run(text).json["baseline"]["run_id"] == ran


def test_a_tools_run_that_broke_off_is_not_resumed_without_its_id(shop, ran):
    started = [event["payload"] for event in shop.events("run.started")]
    assert {payload["kind"] for payload in started} == {"pipeline", "tool"}
    refused = shop.run(TEXT, "--resume")
    assert refused.code == 2
    assert ran in refused.out + refused.err


def test_compare_without_runs_takes_the_two_newest_of_a_pipeline_and_no_tools(shop, ran):
    second = shop.run(TEXT).json["run_id"]
    assert shop.dicast("labels", "import", "labels.jsonl", "--labeller", "bob").code == 0
    for words in ((), (ran,)):
        output = shop.dicast("compare", *words, "--json").json
        assert (output["a"]["run_id"], output["b"]["run_id"]) == (ran, second)
    first = shop.run("name: other\nmetrics: [proxy/format]\n")
    assert first.code == 0
    refused = shop.dicast("compare")
    assert (refused.code, "no run of 'other' has ended before" in refused.err) == (2, True)
