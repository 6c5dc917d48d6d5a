"""Invalid input of experiments, through the command line: messages, exit codes, and the amount spent."""

from __future__ import annotations

import csv
import json
import math
import re
import socket
from collections import Counter
from decimal import Decimal

import pytest

from dicast_telemetry import Otel, collector

CALL = Decimal("0.00014")  # 100 tokens in at 1 usd a million, 20 out at 2
MODEL = (
    'define: {model: {openai/chat: {base_url: "${JUDGE_URL}", model: m-1, '
    "price: {input_per_mtok: 1, output_per_mtok: 2}, retries: 0}}}\n"
)
EXTRACTED = "extractors: [score_extractor/scores: {threshold: 0.7}]\naggregates: [stats/score_stats]\n"
ASKED = 'task: {prompt/chat: {model: model, user: "about {{ id }}", retries: 0}}\n'
SINKS = "sinks: [csv/rows: {path: rows.csv}, jsonl/rows: {path: rows.jsonl}, parquet/rows: {path: rows.parquet}]\n"
TWO = (
    "task: {prompt/chat: {model: model, criteria: "
    '{clarity: {user: "{{ id }} clarity"}, depth: {user: "{{ id }} depth"}}}}\n'
)


@pytest.fixture
def model(shop, chat_server, monkeypatch):
    """The chat server, which gives every row the score 0.5, with three rows to ask it about."""
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    chat_server.answer = '{"score": 0.5}'
    shop.rows(*["An output."] * 3)
    return chat_server


def asking(template, **options):
    """A pipeline whose task asks *template*, written as JSON, which YAML reads."""
    return MODEL + f"task: {json.dumps({'prompt/chat': {'model': 'model', 'user': template, **options}})}\n"


def spent(done):
    return Decimal(done.json["cost"]["usd"])


def rows_of(shop, name="rows.csv"):
    with (shop / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Templates


def test_name_that_no_row_has_is_refused_and_costs_nothing(shop, model):
    done = shop.run(asking("about {{ idd }}"))
    (error,) = done.json["error"]["errors"]
    assert (done.code, error["value"], error["hint"], model.count) == (2, "idd", "id", 0)
    assert error["message"] == "no row has a value for 'idd'; the rows have id, output"


def test_name_that_no_row_has_under_a_condition_fails_the_rows_and_costs_nothing(shop, model):
    done = shop.run(asking("about {% if id %}{{ idd }}{% endif %}"))
    assert (done.code, done.json["failures"], spent(done), model.count) == (3, {"missing_input": 3}, 0, 0)
    (message,) = {event["payload"]["error"] for event in shop.events("record.failed")}
    assert message == (
        "prompt/chat: template user: the row has no 'idd', did you mean 'id'? it has context, id, output"
    )
    assert "the row has no 'idd'" in " ".join(shop.dicast("show", "last").out.split())


def test_name_that_one_row_lacks_costs_that_row_alone(shop, model):
    shop.write("data.jsonl", [{"id": "r0", "hint": "a"}, {"id": "r1"}, {"id": "r2", "hint": None}])
    done = shop.run(asking("about {{ hint }}"))
    assert (done.code, done.json["scored"], done.json["failures"]) == (3, 1, {"missing_input": 2})
    assert (spent(done), model.count) == (CALL, 1)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ input.__class__ }}", "the attribute '__class__' is not accessible"),
        ("{{ ().__class__.__mro__ }}", "is not accessible"),
        ("{{ id | attr('__class__') }}", "No filter named 'attr'"),
        ("{% include 'data.jsonl' %}", "a template cannot include"),
        ("{% if %}", "line 1"),
    ],
)
def test_template_that_can_never_be_asked_is_refused_at_its_place(shop, model, template, message):
    for command in ("check", "run"):
        done = shop.dicast(command, shop.pipeline(asking(template)).name, "--json")
        assert (done.code, model.count) == (2, 0)
        (error,) = done.json["errors"] if command == "check" else done.json["error"]["errors"]
        assert (error["file"], error["line"], error["path"]) == ("p.yaml", 3, "task.user")
        assert message in error["message"]
    assert not (shop / ".dicast").exists() or shop.events() == []


@pytest.mark.parametrize(
    "template",
    ["{{ id['__class__'] }}", "{{ '{0.__class__}'.format(id) }}", "{{ [id] | map(attribute='__class__') | list }}"],
)
def test_trick_with_a_name_put_together_reaches_nothing_and_costs_nothing(shop, model, template):
    done = shop.run(asking(template))
    assert (done.code, done.json["failed"], spent(done), model.count) == (3, 3, 0, 0)
    assert set(done.json["failures"]) <= {"crashed", "missing_input"}
    assert "<class" not in json.dumps(shop.events())


# Replies


@pytest.mark.parametrize("empty", ["", " \n", None])
def test_model_that_says_nothing_is_paid_for_and_is_no_score(shop, model, empty):
    model.answer = model.reply(empty)
    done = shop.run(MODEL + ASKED.replace("retries: 0", "retries: 2") + EXTRACTED + SINKS)
    assert (done.code, done.json["scored"], done.json["failures"]) == (3, 0, {"judge_output_invalid": 3})
    assert (model.count, spent(done)) == (9, 9 * CALL)
    failed = [event["payload"] for event in shop.events("record.failed")]
    assert {item["retry"]["attempts"] for item in failed} == {3}
    assert {"row", "error", "timestamp"} <= set(failed[0])
    assert all(item["error"] == "prompt/chat: the model's reply is empty (stop reason 'stop')" for item in failed)
    assert [row["failure"] for row in rows_of(shop)] == ["judge_output_invalid"] * 3
    assert done.json["aggregates"]["stats/score_stats"]["criteria"] == {}


@pytest.mark.parametrize(
    "reply",
    [
        "[0.9]", "0.9", "NaN", '{"score": NaN}', '{"score": [0.9]}', '{"score": "3 or 4"}', '{"score": "0.9 0.8"}',
        '{"score": null}', '{"score": Infinity}', '{"score": "nan"}', '{"score": 1e999}', '{"rating": 0.9}', "I cannot say.",
    ],
)  # fmt: skip
def test_reply_without_one_number_is_a_missing_score_everywhere(shop, model, reply):
    model.script('{"score": 0.9}')
    model.answer = reply
    done = shop.run(MODEL + ASKED + EXTRACTED + SINKS + "executor: {dicast/async: {concurrency: 1}}\n")
    assert (done.code, done.json["scored"], model.count, spent(done)) == (0, 3, 3, 3 * CALL)
    figures = done.json["aggregates"]["stats/score_stats"]["criteria"]["default"]
    assert (figures["count"], figures["missing"], figures["passes"], figures["mean"]) == (1, 2, 1, 0.9)
    assert figures["pass_rate"] == pytest.approx(1 / 3)
    output = " ".join(shop.dicast("show", "last", "--full").out.partition("    default: ")[2].split())
    assert output.startswith("count 1, missing 2, ")
    assert " passes 1, pass_rate 0.3333 overall: " in output
    rows = rows_of(shop)
    assert [row["metric_scores_default"] for row in rows] == ["0.9", "", ""]
    assert [row["metric_score_flags_default"] for row in rows] == ["True", "", ""]
    lines = [json.loads(line, parse_constant=pytest.fail) for line in (shop / "rows.jsonl").read_text().splitlines()]
    assert [line["metrics"]["scores"] for line in lines] == [{"default": 0.9}, {"default": None}, {"default": None}]
    parquet = pytest.importorskip("pyarrow.parquet")
    table = parquet.read_table(shop / "rows.parquet")
    assert table["metric_scores_default"].to_pylist() == [0.9, None, None]


@pytest.mark.parametrize(
    ("reply", "score"), [('{"score": "85%"}', 85.0), ('{"score": true}', 1.0), ('{"score": 4}', 4.0)]
)
def test_percent_and_truth_are_the_numbers_that_they_are_documented_to_be(shop, model, reply, score):
    model.answer = reply
    done = shop.run(MODEL + ASKED + EXTRACTED + SINKS)
    assert done.json["aggregates"]["stats/score_stats"]["overall"]["mean"] == score
    assert {row["metric_scores_default"] for row in rows_of(shop)} == {str(score)}


# Criteria and extractors


def test_two_criteria_of_one_name_are_refused_at_the_second(shop, model):
    text = MODEL + "task:\n  prompt/chat:\n    model: model\n    criteria:\n      a: {user: x}\n      a: {user: y}\n"
    done = shop.run(text)
    assert (done.code, model.count) == (2, 0)
    (error,) = done.json["error"]["errors"]
    assert (error["line"], error["column"]) == (8, 7)
    assert "'a'" in error["message"]


def test_two_writers_of_one_leaf_are_refused_before_anything_is_asked(shop, model):
    text = MODEL + TWO + "extractors:\n  - score_extractor/scores\n  - extract/regex: {pattern: '[0-9]', as: digits}\n"
    for command in ("check", "run"):
        done = shop.dicast(command, shop.pipeline(text).name, "--json")
        assert (done.code, model.count) == (2, 0)
        (error,) = done.json["errors"] if command == "check" else done.json["error"]["errors"]
        assert (error["path"], error["line"]) == ("extractors[1]", 6)
        assert "digits and score_extractor/scores (extractors[0]) both write metrics.scores" in error["message"]


def test_wrong_options_of_all_sections_are_told_together(shop, model):
    done = shop.run(
        MODEL
        + ASKED
        + "extractors: [score_extractor/scores: {threshold_mode: above}]\n"
        + "aggregates: [stats/score_stats: {ddof: -1}]\n"
        + "early_stop: [stats/threshold: {metric: score, threshold: '0.8', comparison: equals, min_rows: 0}]\n"
        + "baseline: {run: last, compare: [stats/significance: {adjustment: fdrr, min_samples: 1}]}\n"
    )
    assert (done.code, model.count) == (2, 0)
    document = " ".join(error["message"] for error in done.json["error"]["errors"])
    for message in (
        "threshold_mode",
        "value for ddof",
        "comparison",
        "value for min_rows",
        "'fdrr'",
        "value for min_samples",
        "'0.8'",
    ):
        assert message in document
    assert all(error["line"] for error in done.json["error"]["errors"])
    assert "fdr" in {error["hint"] for error in done.json["error"]["errors"]}


# Baselines

COMPARED = "baseline: {run: last, compare: [stats/score_delta, stats/paired, stats/significance]}\n"


def test_baseline_with_other_criteria_compares_those_that_both_have(shop, model):
    assert shop.run("name: x\n" + MODEL + TWO + EXTRACTED).code == 0
    model.answer = '{"score": 0.75}'
    other = TWO.replace("depth", "tone")
    done = shop.run("name: x\n" + MODEL + other + EXTRACTED + COMPARED)
    assert done.code == 0
    assert done.json["comparison"]["stats/score_delta"]["criteria"] == {"clarity": 0.25}
    for output in done.json["comparison"].values():
        assert list(output["criteria"]) == ["clarity"]
        assert (output["only_in_baseline"], output["only_in_variant"]) == (["depth"], ["tone"])


def test_baseline_with_fewer_rows_is_paired_where_subjects_match(shop, model):
    text = "name: x\n" + MODEL + TWO + EXTRACTED
    shop.rows(*["An output."] * 2)
    assert shop.run(text).code == 0
    shop.rows(*["An output."] * 5)
    model.answer = lambda request: '{"score": 0.75}' if "r0" in request.prompt else '{"score": 0.5}'
    done = shop.run(text + COMPARED)
    assert done.code == 0
    paired = done.json["comparison"]["stats/paired"]["criteria"]["clarity"]
    assert (paired["n_pairs"], paired["mean_difference"]) == (2, 0.125)
    apart = done.json["comparison"]["stats/significance"]["criteria"]["clarity"]
    assert (apart["n_baseline"], apart["n_variant"]) == (2, 5)
    assert apart["mean_difference"] == pytest.approx(0.05)


def test_baseline_file_of_a_run_with_a_failed_row_has_its_other_rows(shop, model):
    text = "name: x\n" + MODEL + TWO + EXTRACTED
    model.answer = lambda request: 500 if "r1" in request.prompt else '{"score": 0.25}'
    first = shop.run(text + "sinks: [jsonl/rows: {path: base.jsonl}]\n")
    assert (first.code, first.json["scored"]) == (3, 2)
    assert len((shop / "base.jsonl").read_text().splitlines()) == 3
    model.answer = '{"score": 0.75}'
    done = shop.run(text + COMPARED.replace("last", "base.jsonl"))
    paired = done.json["comparison"]["stats/paired"]["criteria"]["clarity"]
    assert (done.code, paired["n_pairs"], paired["mean_difference"]) == (0, 2, 0.5)


def test_baseline_with_no_row_in_common_says_so_and_is_no_fault(shop, model):
    text = "name: x\n" + MODEL + TWO + EXTRACTED
    assert shop.run(text).code == 0
    shop.write("data.jsonl", [{"id": f"s{number}", "output": "x"} for number in range(3)])
    paired = shop.run(text + COMPARED).json["comparison"]["stats/paired"]["criteria"]["depth"]
    assert (paired["n_pairs"], paired["mean_difference"], paired["p_value"]) == (0, None, None)
    assert paired["reasons"]["n_pairs"] == "0 of the 2 needed"


def test_runs_that_differ_in_more_than_the_task_are_compared_only_when_told(shop, model):
    text = MODEL + TWO + EXTRACTED
    assert shop.run("name: one\n" + text).code == 0
    assert shop.run("name: two\n" + text.replace("threshold: 0.7", "threshold: 0.4")).code == 0
    calls = model.count
    refused = shop.dicast("compare", "one", "two", "--json")
    assert refused.code == 2
    assert (
        "extractors[score_extractor/scores] (threshold: 0.4, not 0.7); --allow-incomparable"
        in refused.json["error"]["message"]
    )
    done = shop.dicast("compare", "one", "two", "--json", "--allow-incomparable")
    assert (done.code, done.json["comparable"]) == (0, False)
    assert done.json["differs"] == ["extractors[score_extractor/scores]"]
    assert Counter(flip["b"] for flip in done.json["flips"]) == {True: 6}
    assert shop.dicast("compare", "one", "nobody", "--json").code == 2
    assert model.count == calls


# Sinks


def test_collector_that_cannot_be_reached_stops_nothing(shop, model, monkeypatch):
    monkeypatch.setattr(collector, "SLOW_SECONDS", math.inf)  # else a slow machine delays the next request
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and never listens
        otel = f"telemetry/otel: {{endpoint: 'http://127.0.0.1:{bound.getsockname()[1]}/v1/traces'}}"
        done = shop.run(MODEL + ASKED + EXTRACTED + f"sinks: [{otel}, csv/rows: {{path: rows.csv}}]\n")
        shown = shop.dicast("show", "last", "--json").json
        events = shop.events(*Otel.wants)
        printed = re.search(r"sink telemetry/otel LOST (\d+) events?: ", shop.dicast("run", "p.yaml").out)
    assert (done.code, done.json["scored"], spent(done)) == (4, 3, 3 * CALL)
    status = done.json["sinks"]["telemetry/otel"]
    assert status["written"] == 0
    assert 3 < status["lost"] <= len(events)  # a batch without a whole span needs no request
    assert "could not be reached" in status["error"]
    assert done.json["sinks"]["csv/rows"] == {"written": 3, "lost": 0}
    assert shown["sinks"] == done.json["sinks"]
    newest = shop.events("run.completed")[-1]["payload"]["sinks"]["telemetry/otel"]
    assert (newest["written"], newest["lost"]) == (0, int(printed[1]))
    assert shop.verified()


@pytest.mark.parametrize("sink", ["csv/rows", "jsonl/rows", "parquet/rows"])
@pytest.mark.parametrize("path", ["../rows.out", "out/../rows.out", "{tmp}/rows.out", "out/link/rows.out"])
def test_file_outside_base_path_is_refused_before_anything_is_asked(shop, model, tmp_path, sink, path):
    (shop / "out").mkdir()
    (shop / "out" / "link").symlink_to(shop.folder)
    options = {"path": path.format(tmp=tmp_path), "base_path": "out"}
    done = shop.run(MODEL + ASKED + f"sinks: [{json.dumps({sink: options})}]\n")
    assert (done.code, model.count) == (2, 0)
    assert "leads out of base_path" in done.json["error"]["message"]
    assert not list(tmp_path.rglob("rows.out"))
    options["path"] = "out/rows.out"
    assert shop.run(MODEL + ASKED + f"sinks: [{json.dumps({sink: options})}]\n").code == 0
    assert (shop / "out" / "rows.out").exists()


def test_a_suite_that_ends_at_an_experiment_names_the_others_in_every_report(shop, chat_server):
    shop.rows("good", "bad")
    model = f"{{openai/chat: {{model: m, base_url: '{chat_server.url}', api_key: null, price: free, retries: 0}}}}"
    judge = "judges: [llm/judge: {as: helpful, model: grader, criteria: [It helps.]}]\n"
    names = "experiments: {plain: {}, warm: {set: {define.grader.openai/chat.temperature: 1}}, free: {set: {judges: [], metrics: [proxy/format]}}}\n"
    shop.pipeline(f"name: asked\ndefine: {{grader: {model}}}\n{judge}{names}")
    chat_server.answer = lambda asked: 401
    log = shop.dicast("ci", "p.yaml", "--comment", "c.md", "--junit", "j.xml")
    assert log.code == 2
    assert "\nexperiments not started, as the suite ended before them: warm, free\n" in log.out
    assert "- experiments not started, as the suite ended before them: `warm`, `free`\n" in (shop / "c.md").read_text()
    report = (shop / "j.xml").read_text()
    assert re.findall(r'<testcase name="experiment (\w+)"', report) == ["warm", "free"]
    assert report.count('<skipped message="not started, as the suite ended at asked/plain"') == 2
    assert shop.dicast("run", "p.yaml", "--json").json["not_started"] == ["warm", "free"]


def test_a_suite_without_an_early_end_has_no_experiment_left(shop):
    shop.rows("good", "bad")
    shop.pipeline("name: fine\nmetrics: [proxy/format]\nexperiments: {a: {}, b: {}}\n")
    log = shop.dicast("ci", "p.yaml", "--comment", "c.md", "--junit", "j.xml")
    assert "not started" not in log.out + (shop / "c.md").read_text() + (shop / "j.xml").read_text()
    assert "not_started" not in shop.dicast("run", "p.yaml", "--json").json
