"""The contract of document 002: how metrics are laid out in a row's record, and who reads them where."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import attrs
import pytest

from dicast import ConfigError, Cost, Reply, Subject, Usage
from dicast.testing import FakeChatModel, Finished, MemoryLedger, run_pipeline

SCORES = {"analysis": 0.71, "prioritization": 0.82}
ROWS = [Subject("row", f"a{number}", context={"APPID": f"a{number}", "title": "t"}) for number in range(4)]
PIPELINE = """
name: trial
task:
  prompt/chat:
    model: model
    criteria: {analysis: {user: "analysis of {{ APPID }}"}, prioritization: {user: "prioritization of {{ APPID }}"}}
    security_level: official
extractors:
  - score_extractor/scores: {threshold: 0.75}
"""


def reports(request):
    """A model that reports a score with its reply, and whatever else it likes: 0.01 more for each row."""
    criterion, number = re.fullmatch(r"(\w+) of a(\d)", request.messages[-1].content).groups()
    score = round(SCORES[criterion] + int(number) / 100, 2)
    return Reply(
        f"on {criterion}",
        usage=Usage(10, 5),
        metrics={"score": score, "comment": f"by {criterion}", "detail": {"a": [1]}},
    )


def run(more: str = "", *, model=reports, rows=ROWS, **components) -> Finished:
    fakes = {"model": FakeChatModel(model, cost=Cost("0.001")), **components}
    return run_pipeline(PIPELINE + more, subjects=rows, components=fakes)


def records(done: Finished) -> list[dict]:
    return [event.payload for event in done.of("record.completed")]


def test_record_has_the_shape_of_the_document():
    record = records(run())[0]
    assert set(record) == {"row", "response", "responses", "metrics", "security_level"}
    assert record["row"] == {"id": "a0", "APPID": "a0", "title": "t"}
    assert record["response"] == record["responses"]["analysis"]
    assert list(record["responses"]) == ["analysis", "prioritization"]
    for criterion, response in record["responses"].items():
        assert response["content"] == f"on {criterion}"
        assert response["metrics"]["score"] == SCORES[criterion]
        assert response["metrics"]["comment"] == f"by {criterion}"
        assert "retry" not in response
    assert record["security_level"] == "official"
    assert json.loads(json.dumps(record)) == record


def test_record_has_scalar_and_nested_metrics():
    metrics = records(run())[0]["metrics"]
    assert metrics["score"] == SCORES["prioritization"]  # of the most recent response
    assert metrics["comment"] == "by prioritization"
    assert metrics["detail"] == {"a": [1]}  # whatever the model reports, verbatim
    assert metrics["scores"] == SCORES
    assert metrics["score_flags"] == {"analysis": False, "prioritization": True}


def test_response_that_took_several_tries_says_so_in_both_places():
    replies = iter(["", *["2"] * 7])
    record = records(run(model=lambda request: next(replies), rows=ROWS[:1]))[0]
    assert record["responses"]["analysis"]["retry"]["attempts"] == 2
    assert record["retry"] == record["responses"]["analysis"]["retry"]


def test_metric_names_are_in_snake_case_and_values_are_json():
    @attrs.frozen
    class Shouting:
        name = "shouting"
        writes = ("Scores",)

        def extract(self, record):
            return {"Scores": 1}

    done = run("  - shouting\n", shouting=Shouting())
    assert done.document["failures"] == {"crashed": 4}
    for event in done.of("record.failed"):
        assert event.payload["error"].startswith("shouting: ")
        assert "'Scores'" in event.payload["error"]


@pytest.mark.parametrize(("metric", "row"), [("scores.analysis", 2), ("scores.prioritization", 0), ("score", 0)])
def test_early_stops_resolve_nested_paths(metric, row):
    stop = f"early_stop: [stats/threshold: {{metric: {metric}, threshold: 0.725}}]\nexecutor: {{dicast/async: {{concurrency: 1}}}}\n"
    stopped = run(stop).document["stopped"]
    assert (stopped["reason"], stopped["row_index"], stopped["metric"]) == ("early_stop", row, metric)
    criterion = metric.partition(".")[2] or "prioritization"
    assert stopped["value"] == records(run())[row]["metrics"]["scores"][criterion]


def test_early_stops_pass_over_paths_to_nothing():
    stop = "early_stop: [stats/threshold: {metric: scores.nobody, threshold: 0}, stats/plateau: {metric: score_flags.analysis.x, window: 1}]\n"
    assert run(stop).document["stopped"] is None


def test_aggregates_read_the_scores_of_each_criterion():
    found = run("aggregates: [stats/score_stats, stats/agreement]\n").document["aggregates"]
    criteria = found["stats/score_stats"]["criteria"]
    assert {name: one["mean"] for name, one in criteria.items()} == pytest.approx(
        {"analysis": 0.725, "prioritization": 0.835}
    )
    assert {name: one["pass_rate"] for name, one in criteria.items()} == {"analysis": 0, "prioritization": 1}
    assert found["stats/agreement"]["criteria"] == ["analysis", "prioritization"]


def test_aggregates_read_another_field_where_they_are_told_to():
    labels = "  - extract/label: {labels: {on analysis: 11, on prioritization: 17}, into: lengths}\n"
    stats = "aggregates: [stats/score_stats: {source_field: lengths}]\n"
    criteria = run(labels + stats).document["aggregates"]["stats/score_stats"]["criteria"]
    assert {name: one["mean"] for name, one in criteria.items()} == {"analysis": 11, "prioritization": 17}


def test_baselines_read_the_scores_of_each_criterion():
    def better(request):
        reply = reports(request)
        return attrs.evolve(reply, metrics={**reply.metrics, "score": reply.metrics["score"] + 0.1})

    ledger = MemoryLedger()
    compared = "ledger: kept\nbaseline: {run: last, compare: [stats/score_delta, stats/cliffs_delta, stats/significance, stats/paired]}\n"
    assert run(compared, kept=ledger).document["comparison"] is None
    found = run(compared, kept=ledger, model=better).document["comparison"]
    assert found["stats/score_delta"]["criteria"] == pytest.approx({"analysis": 0.1, "prioritization": 0.1})
    for name in ("stats/cliffs_delta", "stats/significance", "stats/paired"):
        assert set(found[name]["criteria"]) == set(SCORES)
    assert found["stats/paired"]["criteria"]["analysis"]["mean_difference"] == pytest.approx(0.1)


def test_tables_prefix_all_metrics_and_join_nested_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("sinks: [csv/rows: {path: rows.csv}]\n")
    with Path("rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first = rows[0]
    assert [row["id"] for row in rows] == ["a0", "a1", "a2", "a3"]
    assert float(first["metric_scores_analysis"]) == 0.71
    assert float(first["metric_scores_prioritization"]) == float(first["metric_score"]) == 0.82
    assert (first["metric_score_flags_analysis"], first["metric_score_flags_prioritization"]) == ("False", "True")
    assert (first["metric_detail_a"], first["metric_comment"]) == ("[1]", "by prioritization")
    assert float(first["llm_analysis_metric_score"]) == float(first["llm_content_metric_score"]) == 0.71
    assert (first["llm_content"], first["llm_prioritization"]) == ("on analysis", "on prioritization")
    assert first["security_level"] == "official"


def test_two_writers_of_one_leaf_are_refused_by_name():
    again = "  - extract/regex: {pattern: '([0-9])', criterion: analysis, into: scores.analysis, as: digits}\n"
    with pytest.raises(ConfigError, match=r"digits and score_extractor/scores .* both write metrics\.scores"):
        run(again)
