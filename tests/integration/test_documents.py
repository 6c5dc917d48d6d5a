"""The JSON documents of the commands, and that all of them tell the same."""

from __future__ import annotations

import csv
import json
import math
import statistics

import pytest

import dicast

RUN = {
    "run_id", "name", "subjects", "scored", "failed", "skipped", "failures", "score", "metrics", "judges", "cost",
    "spend_lost", "gate", "stopped", "aggregates", "comparison", "sinks", "ledger",
}  # fmt: skip
VERDICT = {
    "eval_id", "subject_kind", "subject_id", "score", "confidence", "judge_kind", "judge_model", "judge_cost_usd",
    "judge_pricing_version", "judge_latency_ms", "rubric_id", "rubric_version", "signals", "parent_eval_id",
    "created_at", "run_id", "judge", "fingerprint", "scores", "tier", "truth_reason", "skipped", "propensity",
}  # fmt: skip
TEXT = """
name: whole
metrics: [fake/act: {as: shape, weight: 3}, fake/truth: {value: 0.5, as: gold}, fake/paid: {as: costly}]
judges: [fake/opinion: {as: second}, fake/paid_judge: {as: costly-judge}]
sinks: [csv/rows: {path: out.csv}, jsonl/events: {path: out.jsonl}]
gate: {on: metrics, min_score: 0.1, min_coverage: 0.5}
budget: {run: 5 usd, session: 5 usd, day: 5 usd}
"""


@pytest.fixture
def ran(shop):
    """A run with every part: truth, proxies alone, a failure, money, two judges next to the metrics."""
    shop.rows(1, 0.75, 0.25, "raise", 0.5, sessions=2)
    done = shop.run(TEXT)
    assert done.code == 0
    assert done.err == ""
    return done.json


def test_a_run_has_every_field_of_the_contract(ran):
    assert ran.keys() >= RUN
    assert ran["name"] == "whole"
    assert (ran["subjects"], ran["scored"], ran["failed"], ran["skipped"]) == (5, 4, 1, 0)
    assert ran["failures"] == {"crashed": 1}
    assert set(ran["score"]) >= {"mean", "aggregate", "ci_low", "ci_high", "ci_method", "by_tier"}
    assert (ran["score"]["label"], ran["score"]["aggregation"]) == ("metrics", "median")
    assert ran["score"]["by_tier"] == {"truth": 3, "proxy": 1}
    assert set(ran["metrics"]) == {"shape", "gold", "costly"}
    assert all(set(tally) >= {"mean", "scored", "total"} for tally in ran["metrics"].values())
    assert list(ran["judges"]) == ["second", "costly-judge"]
    assert all(
        set(tally) == {"mean", "mean_confidence", "scored", "total", "escalated", "fallbacks"}
        for tally in ran["judges"].values()
    )
    assert ran["cost"] == {"usd": "0.07", "msat": "0"}  # 3 of the metric, 4 of the judge
    assert ran["spend_lost"] == {"usd": "0.01", "msat": "0"}  # the judge crashed on r3 and may have been paid
    assert (ran["gate"]["passed"], ran["gate"]["reasons"]) == (True, [])
    assert [clause["rule"] for clause in ran["gate"]["clauses"]] == ["min_coverage", "min_score"]
    assert ran["stopped"] is None
    assert ran["aggregates"] == {}
    assert ran["comparison"] is None
    assert ran["sinks"]["csv/rows"] == {"written": 5, "lost": 0}
    assert set(ran["ledger"]) == {"path", "head"}
    assert set(ran["ledger"]["head"]) == {"seq", "digest"}


def test_the_scores_are_those_of_the_contract_worked_by_hand(ran):
    """Weights 3, 1, 1: truth where the proxy is at least 0.5."""
    subjects = [(3 * 1 + 0.5 + 1) / 5, (3 * 0.75 + 0.5 + 0.75) / 5, 0.25, (3 * 0.5 + 0.5 + 0.5) / 5]
    score = ran["score"]
    assert score["mean"] == pytest.approx(statistics.fmean(subjects), abs=1e-12)
    assert score["aggregate"] == pytest.approx(statistics.median(subjects), abs=1e-12)
    assert ran["metrics"]["shape"]["mean"] == pytest.approx((1 + 0.75 + 0.25 + 0.5) / 4)
    assert (ran["metrics"]["gold"]["scored"], ran["metrics"]["gold"]["mean"]) == (3, 0.5)
    # Sessions s0: rows 0, 2, 4; s1: rows 1 (3 failed).
    mean = statistics.fmean(subjects)
    residuals = [subjects[0] + subjects[2] + subjects[3] - 3 * mean, subjects[1] - mean]
    error = math.sqrt(2 / 1 * sum(residual**2 for residual in residuals)) / 4
    assert score["ci_low"] == pytest.approx(max(0, mean - 1.959963984540054 * error))
    assert score["ci_high"] == pytest.approx(min(1, mean + 1.959963984540054 * error))
    assert score["ci_method"]


def test_verdicts_have_every_field_and_no_more_money_than_the_run(shop, ran):
    verdicts = shop.dicast("verdicts", "--json").json["verdicts"]
    assert len(verdicts) == 4 * 3
    assert all(verdict.keys() >= VERDICT for verdict in verdicts)
    first = verdicts[0]
    assert (first["judge"], first["subject_id"], first["tier"]) == ("metrics", "r0", "truth")
    assert (first["rubric_id"], first["judge_kind"], first["truth_reason"]) == ("proxy-then-truth", "metrics", "gate")
    assert first["run_id"] == ran["run_id"]
    assert first["confidence"] == 1.0
    assert first["judge_cost_usd"] == "0.01"
    items = first["scores"]
    assert [item["metric"] for item in items] == ["shape", "gold", "costly"]
    expected = {"metric", "value", "confidence", "tier", "weight", "rollout", "details", "cost", "signals"}
    assert all(set(item) == expected for item in items)
    assert [item["weight"] for item in items] == [3, 1, 1]
    second = next(verdict for verdict in verdicts if verdict["judge"] == "costly-judge")
    assert (second["judge_kind"], second["judge_model"], second["judge_cost_usd"]) == ("llm", "m-1", "0.01")
    spent = sum(float(verdict["judge_cost_usd"]) for verdict in verdicts)
    assert spent == pytest.approx(float(ran["cost"]["usd"]))


def test_json_csv_events_ledger_and_verdicts_agree(shop, ran):
    verdicts = shop.dicast("verdicts", "--run", "last", "--json").json["verdicts"]
    ledger = shop.events()
    document = [json.loads(line) for line in (shop / "out.jsonl").read_text().splitlines()]
    with open(shop / "out.csv", newline="") as file:
        rows = {row["subject_id"]: row for row in csv.DictReader(file)}

    columns = ("id", "type", "time", "run_id", "session_id", "turn_id", "subject_kind", "subject_id", "sensitivity")
    assert [{key: event[key] for key in columns} for event in document] == [
        {key: event[key] for key in columns} for event in ledger
    ]
    assert [event["payload"] for event in document[:-1]] == [event["payload"] for event in ledger[:-1]]
    assert ran["sinks"]["jsonl/events"]["written"] == len(document) == len(ledger)

    combined = {verdict["subject_id"]: verdict for verdict in verdicts if verdict["judge"] == "metrics"}
    assert {id for id, row in rows.items() if row["score"]} == set(combined)
    for id, verdict in combined.items():
        row = rows[id]
        assert float(row["score"]) == verdict["score"]
        assert row["tier"] == verdict["tier"]
        assert row["session_id"] == f"s{int(id[1:]) % 2}"
        for item in verdict["scores"]:
            assert float(row[f"metric_{item['metric']}"]) == item["value"]
    assert rows["r3"]["failure"] == "crashed"
    assert rows["r3"]["metric_shape"] == ""
    assert float(rows["r0"]["judge_costly_judge_score"]) == 1
    assert rows["r0"]["judge_second_kind"] == "heuristic"
    assert sum(float(row["cost_usd"]) for row in rows.values()) == pytest.approx(float(ran["cost"]["usd"]))
    assert ran["score"]["mean"] == pytest.approx(
        statistics.fmean(float(row["score"]) for row in rows.values() if row["score"])
    )
    completed = [event["payload"]["score"] for event in ledger if event["type"] == "eval.completed"]
    assert completed == [verdict["score"] for verdict in verdicts]


def test_show_gives_the_run_again(shop, ran):
    output = shop.dicast("show", ran["run_id"], "--json")
    assert output.code == 0
    assert output.json == ran
    assert shop.dicast("show", "last", "--json").json == ran
    assert ran["run_id"] in shop.dicast("show", "last").out


def test_show_gives_an_older_run_as_it_was(shop, ran):
    shop.rows(1)
    shop.run(TEXT)
    output = shop.dicast("show", ran["run_id"], "--json").json
    assert {**output, "ledger": None} == {**ran, "ledger": None}


def test_show_gives_a_subject_with_its_verdicts_and_failures(shop, ran):
    output = shop.dicast("show", "r3", "--json")
    assert output.code == 0
    assert set(output.json) == {"subject", "verdicts", "failures"}
    assert (output.json["subject"]["kind"], output.json["subject"]["id"]) == ("row", "r3")
    assert output.json["subject"]["output"] == "raise"
    assert output.json["verdicts"] == []
    assert {failure["judge"] for failure in output.json["failures"]} == {"metrics", "second", "costly-judge"}
    fine = shop.dicast("show", "r0", "--json").json
    assert [verdict["judge"] for verdict in fine["verdicts"]] == ["metrics", "second", "costly-judge"]
    assert fine["verdicts"] == shop.dicast("verdicts", "--subject", "r0", "--json").json["verdicts"]


def test_show_of_nothing_known_is_2(shop, ran):
    done = shop.dicast("show", "no-such-thing", "--json")
    assert done.code == 2
    assert "no-such-thing" in done.json["error"]["message"]


def test_failed_verdicts_are_listed_with_the_fields_of_the_contract(shop, ran):
    failures = shop.dicast("verdicts", "--failed", "--json").json["failures"]
    assert len(failures) == 3
    assert all(
        set(failure)
        == {"eval_id", "subject_kind", "subject_id", "judge", "failure_mode", "error_message", "judge_latency_ms"}
        for failure in failures
    )


def test_python_and_the_command_line_give_the_same(shop, ran):
    run = dicast.run(shop / "p.yaml", overrides={"ledger": {"ledger/sqlite": {"path": "python.db"}}})
    equal = RUN - {"run_id", "ledger", "sinks"}
    assert json.loads(json.dumps({key: getattr(run, key) for key in equal})) == {key: ran[key] for key in equal}
    assert run.exit_code == 0
    verdicts = shop.dicast("verdicts", "--json").json["verdicts"]
    assert [(verdict.subject_id, verdict.judge, verdict.score) for verdict in run.verdicts] == [
        (verdict["subject_id"], verdict["judge"], verdict["score"]) for verdict in verdicts
    ]
    assert [verdict.fingerprint for verdict in run.verdicts] == [verdict["fingerprint"] for verdict in verdicts]


def test_the_documents_of_check(shop):
    shop.rows(1)
    shop.pipeline(TEXT)
    done = shop.dicast("check", "p.yaml", "--json")
    assert (done.code, done.json) == (0, {"ok": True, "errors": []})
    assert not (shop / ".dicast").exists()
    assert not (shop / "out.csv").exists()


def test_the_document_of_plugins(shop):
    done = shop.dicast("plugins", "--json")
    assert done.code == 0
    output = {plugin["name"]: plugin for plugin in done.json["plugins"]}
    assert set(output) >= {"csv", "diff", "dicast", "fake", "heuristic", "jsonl", "ledger", "proxy", "rows", "traces"}
    fields = {"name", "distribution", "version", "target", "status", "error", "components"}
    assert all(set(plugin) == fields for plugin in output.values())
    assert (output["fake"]["status"], output["fake"]["components"]) == ("not_loaded", None)
    loaded = {plugin["name"]: plugin for plugin in shop.dicast("plugins", "--load", "--json").json["plugins"]}
    components = {component["name"]: component for component in loaded["fake"]["components"]}
    assert loaded["fake"]["status"] == "ok"
    assert {"name", "kind", "tier", "summary"} <= set(components["fake/act"])
    assert (components["fake/act"]["kind"], components["fake/act"]["tier"]) == ("metric", "proxy")
    assert components["fake/act"]["summary"].startswith("Act on the output")
    assert components["fake/opinion"]["tier"] is None
    assert components["fake/leaky"]["kind"] == "sink"


@pytest.mark.parametrize("command", [["run", "gone.yaml"], ["show", "last"], ["verdicts"], ["ledger", "verify"]])
def test_every_error_is_one_document(shop, command):
    done = shop.dicast(*command, "--json")
    assert done.code == 2
    assert set(done.json) == {"error"}
    assert set(done.json["error"]) == {"kind", "message", "errors"}
    assert not (shop / ".dicast").exists()


@pytest.mark.slow
def test_standard_output_holds_the_document_alone(shop, install):
    """Also where a component prints."""
    source = """
    from dicast import Score, hookimpl, metric

    print("imported")

    @metric(tier="proxy")
    def loud(subject):
        print("scored")
        return Score(1.0)

    @hookimpl
    def dicast_metrics():
        return [loud]
    """
    install("dicast-loud", "1.0", {"dicast": {"loud": "dicast_loud"}}, dicast_loud=source)
    shop.rows(1)
    shop.pipeline("metrics: [loud/loud]\n")
    done = shop.process("run", "p.yaml", "--json")
    assert done.json["scored"] == 1
    assert done.err == "imported\nscored\n"
    assert shop.process("check", "p.yaml", "--json").json["ok"] is True
    assert shop.process("plugins", "--load", "--json").json["plugins"]


def test_without_json_the_summary_is_on_standard_output(shop, ran):
    done = shop.dicast("run", "p.yaml")
    assert done.err == ""
    for text in ("whole", "4 scored of 5", "coverage 80", "gold", "truth", "crashed", "r3", "0.07"):
        assert text in done.out


def test_a_cost_that_is_not_known_is_null_and_never_zero(shop, install):
    source = """
    from dicast import Cost, Score, hookimpl, metric

    @metric(tier="truth")
    def unpriced(subject):
        return Score(1.0, cost=Cost.unknown())

    @hookimpl
    def dicast_metrics():
        return [unpriced]
    """
    install("dicast-costly", "1.0", {"dicast": {"costly": "dicast_costly"}}, dicast_costly=source)
    shop.rows(1, 1)
    done = shop.run("metrics: [costly/unpriced]\nsinks: [csv/rows: {path: out.csv}]\n")
    assert done.json["cost"]["usd"] is None
    assert shop.dicast("verdicts", "--json").json["verdicts"][0]["judge_cost_usd"] is None
    with open(shop / "out.csv", newline="") as file:
        assert [row["cost_usd"] for row in csv.DictReader(file)] == ["", ""]


def test_several_judges_without_a_gate_have_no_score_of_their_own(shop):
    shop.rows(0.2, 0.8, "x")
    done = shop.run("judges: [fake/opinion: {as: a}, fake/opinion: {as: b}]\nsinks: [csv/rows: {path: out.csv}]\n")
    assert done.json["score"] is None
    assert (done.json["scored"], done.json["failed"]) == (2, 1)
    assert done.json["judges"]["a"]["mean"] == done.json["judges"]["b"]["mean"] == 0.5
    done = shop.run("judges: [fake/opinion: {as: a}, fake/opinion: {as: b}]\ngate: {on: b, min_score: 0.6}\n")
    assert done.json["score"]["mean"] == 0.5
    assert done.code == 3


def test_a_subject_that_nothing_judges_is_skipped_and_counts_against_nothing(shop):
    shop.rows(1, 1)
    done = shop.run("metrics: [fake/act]\njudges: [fake/turns_only]\n")
    assert (done.code, done.json["scored"], done.json["skipped"]) == (0, 2, 0)
    assert done.json["judges"]["fake/turns_only"] == {
        "mean": None, "mean_confidence": None, "scored": 0, "total": 0, "escalated": 0, "fallbacks": {}
    }  # fmt: skip
    done = shop.run("metrics: [fake/act: {on: turn}]\njudges: [fake/opinion: {on: [row]}]\ngate: {on: fake/opinion}\n")
    assert (done.code, done.json["scored"]) == (0, 2)


def test_limit_leaves_the_rest_unread(shop):
    shop.rows(*[1] * 5)
    done = shop.run("metrics: [fake/act]\nsinks: [csv/rows: {path: out.csv}]\n", "--limit", "2")
    assert (done.code, done.json["subjects"], done.json["scored"], done.json["skipped"]) == (0, 2, 2, 0)
    assert len((shop / "out.csv").read_text().splitlines()) == 3
    assert len(shop.events("subject.read")) == 2
