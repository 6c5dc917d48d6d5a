"""Runs that stop once their mean is decided."""

from __future__ import annotations

import json
import random

import attrs
import pytest

from dicast import ConfigError, Score, component
from dicast.testing import run_pipeline


@attrs.frozen
class NumberMetric:
    """Metric that returns the number in the output; fails without a number."""

    tier = "truth"

    def score(self, subject):
        return Score(float(subject.output))


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Write a file of rows with these outputs, and sessions, into the current directory."""
    monkeypatch.chdir(tmp_path)

    def rows(outputs, sessions=None, name="rows.jsonl"):
        sessions = sessions or [None] * len(outputs)
        lines = [
            {"id": f"r{at}", "output": str(output), "session_id": session}
            for at, (output, session) in enumerate(zip(outputs, sessions, strict=True))
        ]
        (tmp_path / name).write_text("".join(json.dumps(line) + "\n" for line in lines))

    return rows


PIPELINE = """
source: {rows/jsonl: {path: rows.jsonl, shuffle: 5}}
metrics: [number: {on_failure: fail}]
executor: {dicast/async: {concurrency: 1}}
"""


def judged(text, stop="{at: 0.6}", extra=""):
    text = text.replace("- number", "").replace("[number: {on_failure: fail}]", "[number]")
    return run_pipeline(
        f"{text}\nearly_stop: [{{trust/anytime: {stop}}}]\n{extra}", components={"number": NumberMetric()}
    )


def coins(count, rate, seed=1):
    drawn = random.Random(seed)
    return [int(drawn.random() < rate) for _ in range(count)]


def test_a_run_stops_once_its_mean_is_decided(rows):
    rows(coins(2000, 0.9))
    document = judged(PIPELINE).document
    stopped = document["stopped"]
    assert {key: stopped[key] for key in ("reason", "on", "at", "target", "decision", "of", "alpha")} == {
        "reason": "early_stop",
        "on": "metrics",
        "at": 0.6,
        "target": "file",
        "decision": "above",
        "of": 2000,
        "alpha": 0.05,
    }
    assert stopped["n"] == document["subjects"] < 100
    assert (document["score"]["ci_low"], document["score"]["ci_high"]) == (stopped["low"], stopped["high"])
    assert document["score"]["ci_method"].startswith("betting")


def test_without_a_decision_the_run_has_its_usual_interval(rows):
    rows(coins(60, 0.6))
    document = judged(PIPELINE, "{at: 0.6, target: population}").document
    assert (document["stopped"], document["subjects"]) == (None, 60)
    assert document["score"]["ci_method"].startswith("normal")


def test_a_source_without_a_shuffle_is_refused_with_the_file(rows):
    rows([1])
    with pytest.raises(
        ConfigError, match=r"trust/anytime needs rows in random order; add shuffle: SEED .*early_stop\[0\]"
    ):
        judged(PIPELINE.replace(", shuffle: 5", ""))


@pytest.mark.parametrize(
    ("stop", "wrong"),
    [
        ("{}", "trust/anytime needs a line; add at: LINE, or a gate on metrics with min_score or max_score"),
        ("{at: 1.0}", "invalid value for at, expected a number between 0 and 1"),
        ("{at: 0}", "invalid value for at"),
        ("{at: 2, paired: true}", "between -1 and 1"),
        ("{at: 0.5, alpha: 0}", "alpha"),
        ("{at: 0.5, alpha: 1.5}", "alpha"),
        ("{at: 0.5, target: rows}", "target"),
        ("{paired: true}", "paired needs a run to compare with"),
    ],
)
def test_wrong_options_are_refused(rows, stop, wrong):
    rows([1])
    with pytest.raises(ConfigError, match=wrong):
        judged(PIPELINE, stop)


def test_failed_subjects_count_against_both_decisions(rows):
    rows([1] * 40)
    assert judged(PIPELINE, "{at: 0.6, target: population}").document["stopped"]["decision"] == "above"
    rows([1 if at % 2 else "none" for at in range(400)])
    document = judged(PIPELINE, "{at: 0.6, target: population}").document
    assert (document["stopped"], document["failed"]) == (None, 200)


def test_a_session_is_one_observation(rows):
    sessions = [f"s{at // 4}" for at in range(400)]
    rows([1] * 400, sessions)
    document = judged(PIPELINE, "{at: 0.6}").document["stopped"]
    assert document["of"] == 100
    assert document["decision"] == "above"
    rows([1, 1, 1, 0], ["a", "a", "b", "b"])
    assert judged(PIPELINE, "{at: 0.75, alpha: 0.001}").document["stopped"]["decision"] == "above"  # the last one, too


def test_pairs_are_made_with_the_baseline(rows):
    rows([0] * 50)
    ledger = "ledger: {ledger/sqlite: {path: ledger.db}}\nname: pair\n"
    plain = PIPELINE.replace("[number: {on_failure: fail}]", "[number]") + ledger
    run_pipeline(plain, components={"number": NumberMetric()})
    rows([1] * 50)
    stop = "early_stop: [{trust/anytime: {paired: true, at: 0.2}}]\nbaseline: {run: last, compare: [stats/paired]}\n"
    document = run_pipeline(plain + stop, components={"number": NumberMetric()}).document
    assert (document["stopped"]["decision"], document["stopped"]["at"]) == ("above", 0.2)


def test_the_interval_of_a_difference_is_not_the_interval_of_the_mean(rows):
    rows([0] * 60)
    ledger = "ledger: {ledger/sqlite: {path: ledger.db}}\nname: pair\n"
    plain = PIPELINE.replace("[number: {on_failure: fail}]", "[number]") + ledger
    run_pipeline(plain, components={"number": NumberMetric()})
    rows([1, 1, 0] * 20)
    stop = "early_stop: [{trust/anytime: {paired: true}}]\nbaseline: {run: last, compare: [stats/paired]}\n"
    document = run_pipeline(plain + stop, components={"number": NumberMetric()}).document
    assert document["stopped"]["decision"] == "above"
    assert document["score"]["ci_method"].startswith("normal")
    assert [warning["kind"] for warning in document["warnings"]] == ["stopped_early"]


def test_after_a_stop_the_metric_that_was_watched_has_no_other_interval_and_the_score_is_warned_of(rows):
    rows(coins(2000, 0.75))
    text = PIPELINE.replace("[number: {on_failure: fail}]", "[number, proxy/format]")
    stop = "early_stop: [{trust/anytime: {at: 0.6, on: number}}]"
    document = run_pipeline(f"{text}\n{stop}\n", components={"number": NumberMetric()}).document
    assert (document["stopped"]["on"], document["stopped"]["decision"]) == ("number", "above")
    assert (
        document["metrics"]["number"]["passes"]["ci_low"]
        is document["metrics"]["number"]["passes"]["ci_method"]
        is None
    )
    assert document["metrics"]["proxy/format"]["passes"]["ci_low"] is not None
    (warning,) = document["warnings"]
    assert (warning["kind"], warning["label"]) == ("stopped_early", "metrics")
    assert "number" in warning["message"]


def test_the_gate_goes_by_the_decision(rows):
    rows(coins(2000, 0.9))
    gate = "gate: {on: metrics, min_score: 0.6, bound: anytime}"
    result = judged(PIPELINE, "{at: 0.6}", gate)
    clause = result.document["gate"]["clauses"][1]
    assert (result.exit_code, clause["low"], clause["high"]) == (
        0,
        result.document["stopped"]["low"],
        result.document["stopped"]["high"],
    )
    assert judged(PIPELINE, "{at: 0.95}", gate.replace("0.6", "0.95")).exit_code == 1
    rows(coins(60, 0.6))
    assert judged(PIPELINE, "{at: 0.6, target: population}", gate).exit_code == 3


@pytest.mark.parametrize(
    ("gate", "wrong"),
    [
        ("{on: metrics, min_pass_rate: 0.6, bound: anytime}", "bound: anytime needs min_score or max_score"),
        ("{on: number, min_score: 0.6, bound: anytime}", r"needs an early stop .*trust/anytime: \{on: number, at: …\}"),
    ],
)
def test_a_gate_that_no_stop_makes_an_interval_for_is_refused(rows, gate, wrong):
    rows([1])
    with pytest.raises(ConfigError, match=wrong):
        judged(PIPELINE, "{at: 0.6}", f"gate: {gate}")


def test_after_a_stop_no_interval_for_a_fixed_number_is_shown_or_gated_on(rows):
    rows(coins(2000, 0.75))
    gate = "gate: [{on: metrics, min_score: 0.6, bound: interval}, {on: metrics, min_pass_rate: 0.6, bound: interval}]"
    result = judged(PIPELINE, "{at: 0.6}", gate)
    stopped, score = result.document["stopped"], result.document["score"]
    assert (score["ci_low"], score["ci_high"]) == (stopped["low"], stopped["high"])
    assert score["passes"]["ci_low"] is score["passes"]["ci_high"] is score["passes"]["ci_method"] is None
    clauses = {clause["rule"]: clause for clause in result.document["gate"]["clauses"]}
    assert (clauses["min_score"]["low"], clauses["min_score"]["high"]) == (stopped["low"], stopped["high"])
    assert clauses["min_pass_rate"]["passed"] is None
    assert result.exit_code == 3
    assert any("has no interval, because the run stopped" in reason for reason in result.document["gate"]["reasons"])


@pytest.mark.parametrize(("gate", "at"), [("min_score: 0.6", 0.6), ("max_score: 0.7", 0.7)])
def test_without_a_line_of_its_own_it_goes_by_the_gates(rows, gate, at):
    rows(coins(2000, 0.95))
    result = judged(PIPELINE, "{}", f"gate: {{{gate}, bound: anytime}}")
    assert (result.document["stopped"]["at"], result.document["stopped"]["decision"]) == (at, "above")
    assert result.exit_code == (0 if "min" in gate else 1)


def test_the_gate_of_another_label_is_no_line(rows):
    rows([1])
    with pytest.raises(ConfigError, match="a gate on metrics with min_score"):
        judged(PIPELINE, "{}", "gate: {on: number, min_score: 0.6}")


def test_another_plugin_reaches_the_test_by_its_name():
    test = component("early_stop", {"trust/anytime": {"at": 0.9, "target": "population"}}).test()
    assert [test.observe(1.0) for _ in range(60)][-1] == "above"
    assert test.document()["of"] is None
    with pytest.raises(ConfigError, match="at is missing"):
        component("early_stop", {"trust/anytime": {}}).test()
    with pytest.raises(ConfigError, match="did you mean 'at'"):
        component("early_stop", {"trust/anytime": {"att": 0.9}})


def test_a_label_that_the_pipeline_does_not_have_is_refused(rows):
    rows([1, 1])
    with pytest.raises(ConfigError, match=r"'numbr' is none .*did you mean 'number'\? \(early_stop\[0\]\.on\)"):
        judged(PIPELINE, "{at: 0.6, on: numbr}")


def test_a_criterion_that_no_record_has_is_warned_of(rows, caplog):
    rows([1, 1])
    judged(f"{PIPELINE}extractors: [extract/json_path: {{into: other, path: $.output}}]\n", "{at: 0.6, on: other}")
    assert "no record has a score of other" in caplog.text
