"""The layout of metrics in a row's record, and the readers of each place."""

from __future__ import annotations

import asyncio
import csv
import json
import re
from pathlib import Path

import attrs
import pytest

from dicast import Answered, ConfigError, Cost, Failure, Reply, Subject, Usage
from dicast.testing import FakeChatModel, Finished, MemoryLedger, run_pipeline
from dicast.toolkit.flat import flat

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


def test_record_without_criteria_and_levels_has_neither():
    alone = 'name: trial\ntask: {prompt/chat: {model: model, user: "analysis of {{ APPID }}"}}\n'
    done = run_pipeline(
        alone + "extractors: [score_extractor/scores: {threshold: 0.7}]\n",
        subjects=ROWS[:1],
        components={"model": FakeChatModel(reports)},
    )
    (record,) = records(done)
    assert set(record) == {"row", "response", "metrics"}
    assert record["response"]["content"] == "on analysis"
    assert (record["metrics"]["scores"], record["metrics"]["score_flags"]) == ({"default": 0.71}, {"default": True})


def test_record_has_scalar_and_nested_metrics():
    metrics = records(run())[0]["metrics"]
    assert metrics["score"] == SCORES["prioritization"]  # of the most recent response
    assert metrics["comment"] == "by prioritization"
    assert metrics["detail"] == {"a": [1]}  # whatever the model reports, verbatim
    assert metrics["scores"] == SCORES
    assert metrics["score_flags"] == {"analysis": False, "prioritization": True}


def test_keys_that_a_model_reports_are_copied_as_they_are():
    told = {
        "Some-Key": 1,
        "two words": [1, {"b": None}],
        "größe": "x",
        "scores_": True,
        "nothing": None,
        "model": "its own",
        "prompt_tokens": "many",
        "deep": {"A": {"B": 2}},
    }
    record = records(run(model=lambda request: Reply("x", "m-1", metrics=told)))[0]
    for metrics in (record["metrics"], *(response["metrics"] for response in record["responses"].values())):
        assert {key: metrics[key] for key in told} == told


def test_keys_of_a_json_reply_are_the_extractors_to_read():
    said = {"score": 0.9, "comment": "good", "cost": 5, "model": "other"}
    record = records(run(model=lambda request: Reply(json.dumps(said), "m-1")))[0]
    for response in record["responses"].values():
        assert json.loads(response["content"]) == said
        assert (response["metrics"]["cost"], response["metrics"]["model"]) == (0.0, "m-1")
        assert not {"score", "comment"} & response["metrics"].keys()
    assert not {"score", "comment"} & record["metrics"].keys()
    assert record["metrics"]["scores"] == {"analysis": 0.9, "prioritization": 0.9}


def test_failed_row_is_a_record_of_its_own_kind():
    def fails(request):
        return Failure("judge_call_failed", "HTTP 500") if "of a1" in request.messages[-1].content else reports(request)

    done = run(model=fails)
    assert [record["row"]["id"] for record in records(done)] == ["a0", "a2", "a3"]
    (failed,) = (event.payload for event in done.of("record.failed"))
    assert failed["row"] == {"id": "a1", "APPID": "a1", "title": "t"}
    assert failed["error"] == "prompt/chat: criterion analysis: HTTP 500"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", failed["timestamp"])
    assert failed["retry"] == {"attempts": 1, "max_attempts": 2, "history": [{"attempt": 1, "error": "HTTP 500"}]}
    assert done.document["failures"] == {"judge_call_failed": 1}


def troubled(request):
    """Empty replies about a1, and an error about a2."""
    asked = request.messages[-1].content
    if asked.endswith("a1"):
        return ""
    return Failure("judge_call_failed", "HTTP 500") if asked.endswith("a2") else reports(request)


def test_run_counts_its_rows_and_what_they_took():
    empty = iter([""])
    found = run("aggregates: [stats/score_stats]\n", model=lambda asked: next(empty, troubled(asked))).document
    assert (found["row_count"], found["failed"]) == (2, 2)
    # a0 came at the second try, a1 at none of two; what refused a2 was not asked again.
    assert found["retry_summary"] == {"total_requests": 4, "total_retries": 2, "exhausted": 1}
    assert (found["security_level"], found["determinism_level"]) == ("official", None)


def test_run_without_a_retry_has_no_summary_of_them():
    found = run().document
    assert (found["row_count"], found["retry_summary"]) == (4, None)
    judged = run_pipeline("metrics: [diff/match]\n", subjects=[Subject("row", "1", output="a", reference="a")]).document
    assert (judged["row_count"], judged["retry_summary"], judged["security_level"]) == (0, None, None)


def test_aggregates_name_the_rows_that_they_could_not_see():
    done = run("aggregates: [stats/score_stats]\n", model=troubled)
    found = done.document["aggregates"]["stats/score_stats"]
    assert found["failures"] == [
        {"subject_kind": "row", "subject_id": name, "failure_mode": kind}
        for name, kind in [("a1", "judge_output_invalid"), ("a2", "judge_call_failed")]
    ]
    assert [event.payload["result"] for event in done.of("aggregate.completed")] == [found]
    assert run("aggregates: [stats/score_stats]\n").document["aggregates"]["stats/score_stats"]["failures"] == []


def test_aggregates_name_the_first_rows_that_failed_however_many_did():
    rows = [Subject("row", f"b{number}", context={"APPID": f"b{number}"}) for number in range(12)]
    done = run("aggregates: [stats/score_stats]\n", model=lambda _: Failure("judge_call_failed", "HTTP 500"), rows=rows)
    named = [one["subject_id"] for one in done.document["aggregates"]["stats/score_stats"]["failures"]]
    assert (named, done.document["failed"]) == ([f"b{number}" for number in range(10)], 12)


def test_aggregate_that_has_failures_of_its_own_keeps_them():
    @attrs.frozen
    class Own:
        name = "own"

        def add(self, record):
            pass

        def finish(self):
            return {"failures": 3}

    done = run("aggregates: [own]\n", model=troubled, own=Own())
    assert done.document["aggregates"] == {"own": {"failures": 3}}


def test_aggregates_of_verdicts_have_no_rows_that_failed():
    done = run_pipeline(
        "metrics: [diff/match]\naggregates: [stats/score_stats]\n",
        subjects=[Subject("row", "1", output="a", reference="a"), Subject("row", "2", output="a")],
    )
    assert "failures" not in done.document["aggregates"]["stats/score_stats"]


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


@pytest.mark.parametrize(("metric", "row"), [("score_flags.prioritization", 0), ("score_flags.analysis", 3)])
def test_early_stops_read_flags_as_numbers(metric, row):
    pipeline = PIPELINE.replace("threshold: 0.75", "threshold: 0.74")
    stop = f"early_stop: [stats/threshold: {{metric: {metric}, threshold: 1, label: enough}}]\nexecutor: {{dicast/async: {{concurrency: 1}}}}\n"
    done = run_pipeline(pipeline + stop, subjects=ROWS, components={"model": FakeChatModel(reports)})
    told = {
        "metric": metric,
        "comparison": "gte",
        "threshold": 1,
        "value": 1,
        "rows_observed": row + 1,
        "label": "enough",
    }
    assert done.document["stopped"] == {"reason": "early_stop", "plugin": "stats/threshold", "row_index": row, **told}


@pytest.mark.parametrize(("metric", "row"), [("scores.analysis", 2), ("scores.prioritization", 0)])
def test_early_stops_resolve_nested_paths(metric, row):
    stop = f"early_stop: [stats/threshold: {{metric: {metric}, threshold: 0.725}}]\nexecutor: {{dicast/async: {{concurrency: 1}}}}\n"
    stopped = run(stop).document["stopped"]
    assert (stopped["reason"], stopped["row_index"], stopped["metric"]) == ("early_stop", row, metric)
    criterion = metric.partition(".")[2]
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


def test_scores_that_are_read_and_flagged_have_the_settled_figures():
    """0.8, 0.6 and the text 0.9, of which 0.7 passes: through the model, the extractor and the aggregate."""
    said = iter([0.8, 0.6, "0.9"])
    done = run_pipeline(
        """
task: {prompt/chat: {model: model, user: "{{ APPID }}"}}
extractors: [score_extractor/scores: {threshold: 0.7}]
aggregates: [stats/score_stats]
executor: {dicast/async: {concurrency: 1}}
""",
        subjects=ROWS[:3],
        components={"model": FakeChatModel(lambda request: json.dumps({"score": next(said)}))},
    )
    figures = done.document["aggregates"]["stats/score_stats"]["criteria"]["default"]
    expected = {"count": 3, "missing": 0, "passes": 2, "pass_rate": 0.666667, "mean": 0.766667, "median": 0.8, "min": 0.6,
                "max": 0.9, "std": 0.124722}  # fmt: skip
    assert {name: figures[name] for name in expected} == pytest.approx(expected, abs=5e-7)


def test_rows_stay_in_their_order_however_long_each_takes():
    """The first rows take longest, so the last rows are answered before them.

    The first row goes alone, because the task has no estimate.
    """

    @attrs.frozen
    class Slow:
        name = "slow"
        answered: list[str] = attrs.field(factory=list, eq=False)

        async def produce(self, subject):
            number = int(subject.id)
            await asyncio.sleep((40 - number) / 400)
            self.answered.append(subject.id)
            return Answered.of(subject, {"a": {"content": "", "metrics": {"score": number}}})

    slow, ids = Slow(), [str(number) for number in range(40)]
    stop = "early_stop: [stats/threshold: {metric: scores.a, threshold: 11, min_rows: 3}]\n"
    done = run_pipeline(
        "task: slow\nextractors: [score_extractor/scores]\nexecutor: {dicast/async: {concurrency: 40}}\n" + stop,
        subjects=[Subject("row", number) for number in ids],
        components={"slow": slow},
    )
    assert slow.answered[0] == "0"
    assert slow.answered[1] != "1"
    assert [record["row"]["id"] for record in records(done)] == ids
    assert (done.document["stopped"]["row_index"], done.document["stopped"]["rows_observed"]) == (11, 12)


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


AGGREGATES = {
    "stats/score_stats": {"criteria", "overall"},
    "stats/recommendation": {"recommendation", "summary", "best_criteria", "best_stats"},
    "stats/variant_ranking": {"samples", "mean", "pass_rate", "composite"},
    "stats/cost_summary": {"prompt_tokens", "completion_tokens", "cost", "total_requests", "requests_with_cost"},
    "stats/latency_summary": {"latency_seconds"},
    "stats/agreement": {"n", "criteria", "average_correlation", "cronbach_alpha", "krippendorff_alpha"},
}
STATS = {"count", "missing", "mean", "median", "min", "max", "std", "passes", "pass_rate"}


def test_aggregates_have_the_fields_that_are_agreed_on():
    found = run(
        f"aggregates: [{', '.join(AGGREGATES)}]\n",
    ).document["aggregates"]
    assert list(found) == list(AGGREGATES)
    for name, fields in AGGREGATES.items():
        assert found[name].keys() >= fields
    stats = found["stats/score_stats"]
    assert all(one.keys() >= STATS for one in (stats["overall"], *stats["criteria"].values()))
    assert found["stats/latency_summary"]["latency_seconds"].keys() >= {"mean", "median", "std", "p50", "p95", "p99"}
    assert found["stats/cost_summary"]["total_requests"] == 8
    assert found["stats/cost_summary"]["cost"]["total"] == pytest.approx(0.0)


def test_what_is_made_of_records_stands_under_its_label(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ledger = MemoryLedger()
    labelled = (
        "ledger: kept\naggregates: [stats/score_stats: {as: all}, stats/score_stats: {as: sample, ddof: 1}]\n"
        "early_stop: [stats/threshold: {as: enough, metric: scores.prioritization, threshold: 0.85}]\n"
        "baseline: {run: last, compare: [stats/score_delta: {as: means}, stats/score_delta: {as: medians, metric: median}]}\n"
        "sinks: [jsonl/rows: {as: kept, path: rows.jsonl}]\n"
    )
    run(labelled, kept=ledger)
    document = run(labelled, kept=ledger).document
    assert list(document["aggregates"]) == ["all", "sample"]
    assert document["aggregates"]["all"]["overall"]["std"] < document["aggregates"]["sample"]["overall"]["std"]
    assert list(document["comparison"]) == ["means", "medians"]
    assert document["stopped"]["plugin"] == "enough"
    assert document["sinks"] == {"kept": {"written": 4, "lost": 0}}


def test_tables_are_records_made_flat(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(
        "sinks: [csv/rows: {path: rows.csv}, csv/rows: {as: few, path: few.csv, include_metrics: false},"
        " jsonl/rows: {path: rows.jsonl}]\n"
    )
    columns = list(flat(json.loads(Path("rows.jsonl").read_text("utf-8").partition("\n")[0])))
    whole, few = (Path(name).read_text("utf-8").partition("\n")[0].split(",") for name in ("rows.csv", "few.csv"))
    assert whole[: len(columns)] == columns
    assert few == [name for name in whole if not name.startswith("metric_")]
    assert "llm_analysis_metric_score" in few


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
