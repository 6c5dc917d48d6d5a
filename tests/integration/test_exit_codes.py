"""Exit codes, and how each failure of a component is counted."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys

import pytest

SUMMARY_OF_A_DEFECT = "this is a defect in dicast"


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("raise", "crashed"),
        ("exit", "crashed"),
        ("interrupted", "crashed"),
        ("text", "invalid_score"),
        ("none", "invalid_score"),
        ("bare", "invalid_score"),
        ("high", "invalid_score"),
        ("nan", "invalid_score"),
        ("odd", "invalid_score"),
        ("busy", "timeout"),
        ("stubborn", "timeout"),
        ("regex", "timeout"),
        ("fail:refused", "refused"),
        ("fail:missing_input", "missing_input"),
        ("fail:judge_call_failed", "judge_call_failed"),
        ("fail:no_such_kind", "crashed"),
    ],
)
def test_every_way_to_fail_is_counted_under_its_kind(shop, said, kind):
    shop.rows(1, said, 0.5)
    done = shop.run("metrics: [fake/act: {timeout: 0.2}]\nsinks: [csv/rows: {path: out.csv}]\n")

    assert done.code == 3  # coverage 2/3
    document = done.json
    assert (document["scored"], document["failed"], document["failures"]) == (2, 1, {kind: 1})
    assert document["score"]["mean"] == 0.75
    assert document["metrics"]["fake/act"]["scored"] == 2
    failed = shop.dicast("verdicts", "--failed", "--json").json["failures"]
    assert [(failure["subject_id"], failure["failure_mode"]) for failure in failed] == [("r1", kind)]
    with open(shop / "out.csv", newline="") as file:
        row = list(csv.DictReader(file))[1]
    assert (row["subject_id"], row["score"], row["failure"]) == ("r1", "", kind)


def test_an_async_metric_that_never_ends_is_a_timeout(shop):
    shop.rows(1, "hang", "raise")
    done = shop.run("metrics: [fake/wait: {timeout: 0.1}]\n")
    assert done.json["failures"] == {"timeout": 1, "crashed": 1}
    assert done.json["scored"] == 1


def test_a_timeout_holds_for_each_call_and_not_for_the_run(shop):
    shop.rows(*[1] * 5)
    done = shop.run("metrics: [fake/spin: {timeout: 1, seconds: 0.25}]\n")
    assert (done.code, done.json["scored"]) == (0, 5)


@pytest.mark.parametrize(
    ("bad", "gate", "code", "passed"),
    [
        (0, "", 0, True),
        (5, "", 0, True),  # 95 of 100: exactly the default
        (6, "", 3, None),
        (6, "gate: {min_coverage: 0.9}", 0, True),
        (0, "gate: {min_score: 0.99}", 0, True),
        (0, "gate: {min_score: 0.99}\nscoring: {threshold: 0}", 0, True),
        (5, "gate: {min_score: 1, min_coverage: 1}", 3, None),
    ],
)
def test_coverage_and_gate_decide_the_code(shop, bad, gate, code, passed):
    shop.rows(*["raise"] * bad, *[1] * (100 - bad))
    done = shop.run(f"metrics: [fake/act]\n{gate}\n")
    output = done.json["gate"]
    assert (done.code, bool(done.json["undecided"])) == (code, passed is None)
    assert output is None if not gate.startswith("gate") else output["passed"] is passed


def test_a_failed_gate_is_1_and_says_why(shop):
    shop.rows(0.5, 0.7)
    done = shop.run("metrics: [fake/act]\ngate: {min_score: 0.8}\n")
    assert done.code == 1
    assert done.json["gate"]["passed"] is False
    assert "0.6" in done.json["gate"]["reasons"][0]
    assert "0.8" in done.json["gate"]["reasons"][0]


def test_nothing_scored_is_3(shop):
    shop.rows("raise", "raise")
    done = shop.run("metrics: [fake/act]\ngate: {min_coverage: 0}\n")
    assert done.code == 3
    assert done.json["score"] == {
        "label": "metrics",
        "mean": None,
        "pass_rate": None,
        "passes": {"passed": 0, "n": 0, "open": 2, "ci_low": None, "ci_high": None, "ci_method": None},
        "aggregation": "median",
        "aggregate": None,
        "ci_low": None,
        "ci_high": None,
        "ci_method": None,
        "by_tier": {"truth": 0, "proxy": 0},
        "by_basis": {},
    }


@pytest.mark.parametrize("at", ["write", "close"])
def test_a_sink_that_fails_costs_no_verdict_and_is_4(shop, at):
    shop.rows(*[1] * 20)
    done = shop.run(f"metrics: [fake/act]\nsinks: [fake/leaky: {{at: {at}}}, csv/rows: {{path: out.csv}}]\n")
    assert done.code == 4
    document = done.json
    assert (document["scored"], document["subjects"]) == (20, 20)
    assert document["sinks"]["fake/leaky"]["lost"] == (20 if at == "write" else 1)
    assert "OSError" in document["sinks"]["fake/leaky"]["error"]
    assert document["sinks"]["csv/rows"] == {"written": 20, "lost": 0}
    assert len((shop / "out.csv").read_text().splitlines()) == 21
    assert len(shop.events("eval.completed")) == 20
    assert shop.verified()


def test_a_lost_sink_comes_before_coverage_and_gate(shop):
    shop.rows("raise", 0.1)
    done = shop.run("metrics: [fake/act]\ngate: {min_score: 0.9}\nsinks: [fake/leaky]\n")
    assert done.code == 4
    assert done.json["gate"]["passed"] is None


def test_low_coverage_comes_before_the_gate(shop):
    shop.rows("raise", 0.1)
    done = shop.run("metrics: [fake/act]\ngate: {min_score: 0.9}\n")
    assert done.code == 3
    assert len(done.json["gate"]["reasons"]) == 2


@pytest.mark.parametrize(("line", "code", "passed"), [(0.8, 1, False), (0.7, 3, None), (0.3, 3, None)])
def test_a_pass_rate_that_no_open_row_can_lift_fails_in_spite_of_low_coverage(shop, line, code, passed):
    shop.rows(*["raise"] * 3, *[1] * 4, *[0] * 3)  # 0.4 to 0.7 pass
    done = shop.run(f"metrics: [fake/act]\ngate: {{min_pass_rate: {line}}}\n")
    assert (done.code, done.json["gate"]["passed"]) == (code, passed)
    reasons = done.json["gate"]["reasons"]
    assert ("pass rate" in reasons[0]) is (passed is False)
    assert any("coverage 0.7 is below min_coverage 0.95" in reason for reason in reasons)


def test_no_budget_for_any_judge_is_5(shop):
    shop.rows(1, 1)
    done = shop.run("judges: [fake/paid_judge: {journal: calls}]\nbudget: {run: 0 usd}\n")
    assert done.code == 5
    assert done.json["failures"] == {"throttled_no_heuristic": 2}
    assert done.json["cost"]["usd"] == "0"
    assert not (shop / "calls").exists()


def test_no_budget_for_any_judge_is_5_also_beside_a_free_metric(shop):
    shop.rows(1, 1)
    text = "metrics: [fake/act]\njudges: [fake/paid_judge: {journal: calls}]\nbudget: {run: 0 usd}\n"
    done = shop.run(text)
    assert (done.code, done.json["metrics"]["fake/act"]["scored"]) == (5, 2)
    assert not (shop / "calls").exists()
    assert shop.run(text.replace("0 usd", "0.01 usd")).code == 3, "the budget allows one judgment"


def test_no_budget_comes_before_a_lost_sink(shop):
    shop.rows(1)
    done = shop.run("judges: [fake/paid_judge]\nbudget: {run: 0 usd}\nsinks: [fake/leaky: {at: close}]\n")
    assert done.code == 5


def test_a_budget_for_some_is_3(shop):
    shop.rows(*[1] * 4)
    done = shop.run("judges: [fake/paid_judge: {journal: calls}]\nbudget: {run: 0.02 usd}\n")
    assert done.code == 3
    assert (done.json["scored"], done.json["failures"]) == (2, {"throttled_no_heuristic": 2})
    assert len((shop / "calls").read_text().splitlines()) == 2
    assert done.json["cost"]["usd"] == "0.02"


def test_a_truth_metric_that_does_not_fit_is_skipped_and_the_proxies_stand(shop):
    shop.rows(*[0.8] * 3)
    done = shop.run("metrics: [fake/act, fake/paid]\nbudget: {run: 0.02 usd}\n")
    assert done.code == 0
    assert done.json["score"]["by_tier"] == {"truth": 2, "proxy": 1}
    assert done.json["metrics"]["fake/paid"]["skipped"] == 1
    skipped = [verdict["skipped"] for verdict in shop.dicast("verdicts", "--json").json["verdicts"]]
    assert sum(skipped, []) == [{"metric": "fake/paid", "reason": "run_cap"}]


@pytest.mark.parametrize("traceback", [False, True])
def test_a_defect_is_70_and_asks_for_a_report(shop, monkeypatch, traceback):
    shop.rows(1)
    monkeypatch.setattr("dicast._kernel.run.run.make_plan", lambda *inputs: 1 / 0)
    done = shop.dicast("run", shop.pipeline("metrics: [fake/act]\n"), *["--traceback"] * traceback)
    assert done.code == 70
    assert done.out == ""
    assert SUMMARY_OF_A_DEFECT in done.err
    assert "ZeroDivisionError" in done.err
    assert "dicast " in done.err
    assert "Python " in done.err
    assert ("Traceback" in done.err) is traceback


def test_a_defect_in_json_is_one_document(shop, monkeypatch):
    shop.rows(1)
    monkeypatch.setattr("dicast._kernel.run.run.make_plan", lambda *inputs: 1 / 0)
    done = shop.run("metrics: [fake/act]\n", "--traceback")
    assert done.code == 70
    assert done.json["error"]["kind"] == "defect"
    assert SUMMARY_OF_A_DEFECT in done.json["error"]["message"]
    assert done.json["error"]["errors"] == []
    assert "Traceback" in done.err


def test_a_defect_while_judging_keeps_what_was_judged(shop, monkeypatch):
    """The events of earlier subjects reach the ledger, so that the run can be taken up."""
    from dicast._kernel.asking.call import Caller

    shop.rows(*[1] * 5)
    call_quick = Caller.call_quick

    def defective(self, calls, subject, answers):
        return call_quick(self, calls, subject, answers) if subject.id != "r3" else 1 / 0

    with monkeypatch.context() as patch:
        patch.setattr(Caller, "call_quick", defective)
        done = shop.run("metrics: [fake/act: {journal: calls}]\n")
    assert done.code == 70
    assert len(shop.events("eval.completed")) == 3
    assert shop.verified()
    done = shop.run("metrics: [fake/act: {journal: calls}]\n", "--resume")
    assert (done.code, done.json["scored"]) == (0, 5)
    calls = (shop / "calls").read_text().split()
    assert [calls.count(f"r{n}") for n in range(4)] == [1, 1, 1, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["run"],
        ["run", "a.yaml", "b.yaml"],
        ["run", "p.yaml", "--no-such-option"],
        ["run", "p.yaml", "--limit", "many"],
        ["run", "p.yaml", "--limit", "-1"],
        ["show"],
        ["ledger", "frobnicate"],
        ["verdicts", "--as-of", "yesterday"],
        ["verdicts", "--limit", "x"],
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_wrong_usage_is_2_with_a_message(shop, arguments, as_json):
    shop.rows(1)
    shop.pipeline("metrics: [fake/act]\n")
    done = shop.dicast(*arguments, *["--json"] * as_json)
    assert done.code == 2
    if as_json:
        assert set(done.json) == {"error"}
        assert set(done.json["error"]) == {"kind", "message", "errors"}
        assert done.json["error"]["message"]
    else:
        assert done.out == ""
        assert done.err
    assert "Traceback" not in done.err


def test_a_mistyped_command_names_the_nearest(shop):
    assert "'verdicts'" in shop.dicast("verdict").err


def test_the_script_and_the_module_exit_alike(shop):
    shop.rows(0.1)
    shop.pipeline("metrics: [fake/act]\ngate: {min_score: 0.9}\n")
    done = shop.process("run", "p.yaml", "--json")
    assert done.code == 1
    assert json.loads(done.out)["gate"]["passed"] is False


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "p.yaml"],
        ["run", "p.yaml", "--json"],
        ["run", "gone.yaml", "--json"],
        ["ledger", "export"],
        ["ledger", "--help"],
        ["--help"],
    ],
    ids=" ".join,
)
def test_a_reader_that_went_away_is_141_and_no_failed_gate(shop, arguments):
    shop.rows(1)
    assert shop.run("metrics: [fake/act]\n").code == 0
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "dicast", *arguments],
            stdout=closed,
            stderr=subprocess.PIPE,
            timeout=200,
            check=False,
        )
    assert (done.returncode, done.stderr) == (141, b"")
    assert len(shop.events("run.completed")) == (2 if arguments[:2] == ["run", "p.yaml"] else 1)


def test_a_command_of_a_plugin_that_exits_by_itself_keeps_its_code(shop, install):
    source = "import click, sys\n@click.command()\ndef leave():\n    sys.exit(1)\n"
    install("dicast-leave", "1.0", {"dicast.commands": {"leave": "dicast_leave:leave"}}, dicast_leave=source)
    assert shop.process("leave").code == 1
