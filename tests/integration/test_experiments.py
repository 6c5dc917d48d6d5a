"""Experiments through the command line: paid calls, resumed runs, comparisons, refusals."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import signal
from collections import Counter
from decimal import Decimal

import pytest

import dicast
from dicast import read_ledger, results

from .conftest import finish, settled, wait_for

CALL = Decimal("0.00014")  # 100 tokens in at 1 usd a million, 20 out at 2
TASK = """\
name: shop
define:
  model: {openai/chat: {base_url: "${JUDGE_URL}", model: m-1, price: {input_per_mtok: 1, output_per_mtok: 2}, retries: 0}}
task:
  prompt/chat:
    model: model
    criteria: {clarity: {user: "${PROMPT:-about} {{ id }} clarity"}, depth: {user: "${PROMPT:-about} {{ id }} depth"}}
extractors: [score_extractor/scores: {threshold: 3}]
aggregates: [stats/score_stats]
"""
ALONE = "executor: {dicast/async: {concurrency: 1}}\n"
RECORDS = "sinks: [csv/rows: {path: rows.csv}]\n"
COMPARED = "baseline: {run: last, compare: [stats/score_delta, stats/paired]}\n"


def rated(request):
    """Row r0 gets 0 for clarity, r1 gets 1 …, and one more for depth; a prompt that says ``better`` gets another."""
    text = request.prompt
    score = int(re.search(r"r(\d+)", text)[1]) + ("depth" in text) + ("better" in text)
    return json.dumps({"score": score})


@pytest.fixture
def model(shop, chat_server, monkeypatch):
    """The chat server, which rates, with six rows to ask it about."""
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    chat_server.answer = rated
    shop.rows(*["An output."] * 6)
    return chat_server


def questions(model):
    """How often each question was asked."""
    return Counter(request.prompt.removeprefix("about ") for request in model.requests)


def unanswered(done):
    """The rows that the aggregate has no record of."""
    return [failure["subject_id"] for failure in done.json["aggregates"]["stats/score_stats"]["failures"]]


def but(answer, *texts):
    """Return an answer function: *answer* for questions with one of *texts*, else the usual answer."""
    return lambda request: answer if any(text in request.prompt for text in texts) else rated(request)


def scores(document):
    result = document["aggregates"]["stats/score_stats"]["criteria"]
    return {criterion: (item["count"], item.get("mean")) for criterion, item in result.items()}


WHOLE = {"clarity": (6, 2.5), "depth": (6, 3.5)}
EVERY = {f"r{row} {criterion}" for row in range(6) for criterion in ("clarity", "depth")}


# Taken up again


def test_run_that_broke_off_inside_a_row_asks_for_no_reply_twice(shop, model):
    model.answer = but(401, "r2 depth")
    broken = shop.run(TASK + ALONE + RECORDS)
    assert (broken.code, broken.json["stopped"]["reason"]) == (3, "refused_by_provider")
    assert broken.json["scored"] == 2
    model.answer = rated
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert (resumed.code, resumed.json["scored"]) == (0, 6)
    assert resumed.json["run_id"] == broken.json["run_id"]
    assert questions(model) == Counter(dict.fromkeys(EVERY, 1) | {"r2 depth": 2})
    assert Decimal(resumed.json["cost"]["usd"]) == 12 * CALL
    assert scores(resumed.json) == WHOLE
    with (shop / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["metric_scores_depth"] for row in rows] == [f"{number}.0" for number in range(1, 7)]
    assert len(shop.events("task.replied")) == 12
    assert shop.verified()


def test_resumed_run_comes_to_what_an_undisturbed_one_does(shop, model):
    text = TASK + ALONE + "metrics: [proxy/length: {max: 12}]\n"
    text += "early_stop: [stats/plateau: {metric: scores.depth, window: 9}]\n"
    model.answer = speechless = but("", "r1 depth")
    undisturbed = shop.run(text + "ledger: {ledger/sqlite: {path: other.db}}\n")
    model.answer = lambda asked: 403 if "r4 clarity" in asked.prompt else speechless(asked)
    assert shop.run(text).code == 3
    model.answer = speechless
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert settled(resumed.json) == settled(undisturbed.json)
    assert (resumed.json["row_count"], unanswered(resumed)) == (5, ["r1"])
    assert resumed.json["retry_summary"] == {"total_requests": 6, "total_retries": 1, "exhausted": 1}
    assert shop.dicast("show", "last", "--json").json["row_count"] == 5
    assert "failures" not in shop.dicast("show", "last").out


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_run_asks_again_for_what_was_under_way_alone(shop, model, how):
    at_once = 3
    model.answer = lambda asked: rated if asked.number <= 4 else model.Answer(fault="hang")
    name = shop.pipeline(TASK + f"executor: {{dicast/async: {{concurrency: {at_once}}}}}\n").name
    process = shop.start("run", name, "--json")
    wait_for(lambda: model.count >= 6)
    process.send_signal(how)
    assert finish(process).code == (130 if how == signal.SIGINT else -how)
    model.answer = rated
    resumed = shop.dicast("run", name, "--json", "--resume")
    assert (resumed.code, resumed.json["scored"]) == (0, 6)
    again = {question: count for question, count in questions(model).items() if count > 1}
    assert set(again.values()) <= {2}
    assert len({question.split()[0] for question in again}) == len(again) <= at_once  # one a row that was under way
    assert questions(model).keys() == EVERY
    assert scores(resumed.json) == WHOLE
    assert shop.verified()


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_command_is_run_again_for_the_row_that_was_under_way_alone(shop):
    shop.rows(*"abcd")
    shop.write(
        "answer.sh",
        "cat >> journal; echo >> journal\nwhile [ ! -e quick ] && grep -q r2 journal; do sleep 0.05; done\necho 4\n",
    )
    name = shop.pipeline(f"task: {{task/command: {{command: sh answer.sh}}}}\n{ALONE}").name

    def journal():
        return (shop / "journal").read_text().splitlines() if (shop / "journal").exists() else []

    process = shop.start("run", name, "--json")
    wait_for(lambda: len(journal()) == 3)
    wait_for(lambda: len(shop.events("record.completed")) == 2)
    process.kill()
    finish(process)
    shop.write("quick", "")
    done = shop.dicast("run", name, "--resume", "--json")
    assert (done.code, done.json["scored"]) == (0, 4)
    assert Counter(json.loads(line)["id"] for line in journal()) == {"r0": 1, "r1": 1, "r2": 2, "r3": 1}


def test_retry_failed_asks_about_what_failed_alone(shop, model):
    model.answer = but(500, "r1 depth", "r4 clarity")
    first = shop.run(TASK + RECORDS)
    assert (first.code, first.json["scored"], first.json["failures"]) == (3, 4, {"judge_call_failed": 2})
    assert (first.json["row_count"], unanswered(first)) == (4, ["r1", "r4"])
    model.answer, before = rated, questions(model)
    again = shop.dicast("run", "p.yaml", "--json", "--resume", first.json["run_id"], "--retry-failed")
    assert (again.code, again.json["scored"], again.json["failed"]) == (0, 6, 0)
    assert (again.json["row_count"], unanswered(again)) == (6, [])
    assert questions(model) - before == Counter({"r1 depth": 1, "r4 clarity": 1, "r4 depth": 1})
    assert scores(again.json) == WHOLE
    with (shop / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["subject_id"], row["failure"]) for row in rows} == {(f"r{number}", "") for number in range(6)}
    output = shop.dicast("show", "r1", "--json").json
    assert output["subject"]["record"]["metrics"]["scores"] == {"clarity": 1, "depth": 2}


@pytest.mark.parametrize("message", ["", " \n"])
def test_reply_that_said_nothing_is_asked_for_again_where_its_failure_is_retried(shop, model, message):
    model.answer = but(message, "r1 depth")
    text = TASK.replace("    model: model\n", "    model: model\n    retries: 0\n")
    first = shop.run(text)
    assert first.json["failures"] == {"judge_output_invalid": 1}
    model.answer, before = rated, questions(model)
    again = shop.dicast("run", "p.yaml", "--json", "--resume", first.json["run_id"], "--retry-failed")
    assert (again.json["scored"], scores(again.json)) == (6, WHOLE)
    assert questions(model) - before == Counter({"r1 depth": 1})


def test_failures_of_a_task_are_listed_and_shown(shop, model):
    model.answer = but(500, *(f"r{row} depth" for row in range(1, 4)))
    run = shop.run(TASK)
    listed = shop.dicast("verdicts", "--failed", "--run", "last", "--json").json["failures"]
    assert [(item["subject_id"], item["judge"], item["failure_mode"]) for item in listed] == [
        (f"r{row}", "record", "judge_call_failed") for row in range(1, 4)
    ]
    assert [item["error_message"] for item in listed] == [item["error_message"] for item in run.json["failed_subjects"]]
    (output,) = shop.dicast("show", "r2", "--json").json["failures"]
    assert (output["judge"], output["failure_mode"], output["row"]["id"]) == ("record", "judge_call_failed", "r2")
    assert "\nrecord: no verdict, call failed\n  " in shop.dicast("show", "r2").out


def test_failure_of_a_task_is_printed_once_for_all_labels_in_words_about_the_task(shop, model):
    model.answer = lambda request: 500 if "r1 depth" in request.prompt else "no verdict"
    judge = "judges: [llm/judge: {model: model, criteria: [fair]}]\n"
    shop.run(TASK + "metrics: [proxy/format]\n" + judge)
    listed = shop.dicast("verdicts", "--failed", "--json").json["failures"]
    assert [item["judge"] for item in listed if item["subject_id"] == "r1"] == ["metrics", "llm/judge"]
    text = " ".join(shop.dicast("verdicts", "--failed").out.split())
    assert text.count("row r1 task: call failed: ") == text.count("row r1 ") == 1
    assert "judge_call_failed" not in text
    summary = " ".join(shop.dicast("show", "last").out.split())
    assert "failed: 5 invalid_score (a score is missing, or outside [0, 1]), 1 task: call failed" in summary
    assert " task: call failed: row r1: prompt/chat: " in summary
    assert shop.dicast("show", "r1").out.count("\ntask: no verdict, call failed\n") == 1


def test_failure_of_a_task_is_listed_once_where_its_verdicts_failed_too(shop, model):
    model.answer = but(500, "r1 depth")
    assert shop.run(TASK + "metrics: [proxy/format]\n").json["failed"] == 1
    listed = shop.dicast("verdicts", "--failed", "--json").json["failures"]
    assert [(failure["subject_id"], failure["judge"]) for failure in listed] == [("r1", "metrics")]


def test_task_that_counts_as_zero_where_it_fails_is_shown_to_have_failed(shop, model):
    model.answer = but(500, "r1 depth")
    text = TASK.replace("  prompt/chat:\n", "  prompt/chat:\n    on_failure: zero\n")
    done = shop.run(text + "metrics: [proxy/format]\n").json
    assert (done["labels"]["metrics"]["failed"], done["labels"]["depth"]["failed"]) == (0, 1)
    output = shop.dicast("show", "r1", "--json").json
    assert [verdict["score"] for verdict in output["verdicts"]] == [0.0]
    assert [failure["failure_mode"] for failure in output["failures"]] == ["judge_call_failed"]


def test_retry_failed_needs_a_run_to_take_up(shop, model):
    done = shop.run(TASK, "--retry-failed")
    assert (done.code, model.count) == (2, 0)


def test_run_at_its_cap_goes_on_with_a_higher_one(shop, model):
    capped = shop.run(TASK, "--set", "budget.run=0.003 usd")
    assert capped.code in (3, 5)  # which rows are whole is a matter of who comes first
    paid = model.count
    assert Decimal(capped.json["cost"]["usd"]) == paid * CALL > 0
    assert capped.json["throttled"] == {"run_cap": capped.json["failed"]}
    again = ("--resume", capped.json["run_id"], "--retry-failed")
    for file in ("show", "last"), ("run", "p.yaml", "--set", "budget.run=0.003 usd", *again):
        lines = shop.dicast(*file).out.splitlines()
        at = lines.index("to judge the subjects left out, raise the cap: budget.run is 0.003 usd; then:")
        assert lines[at + 1] == f"next: dicast run p.yaml --resume {capped.json['run_id']} --retry-failed"
    done = shop.dicast(*shlex.split(lines[at + 1].removeprefix("next: dicast ")), "--json")
    assert (done.code, done.json["scored"]) == (0, 6)
    assert questions(model) == Counter(dict.fromkeys(EVERY, 1))
    assert Decimal(done.json["cost"]["usd"]) == 12 * CALL


def test_run_that_stopped_early_is_not_gone_on_with(shop, model):
    text = TASK + ALONE + "early_stop: [stats/threshold: {metric: scores.clarity, threshold: 2, as: enough}]\n"
    stopped = shop.run(text + "gate: {on: clarity, max_score: 4}\n")
    assert (stopped.code, stopped.json["gate"]["passed"]) == (0, True)
    assert stopped.json["stopped"] == {
        "reason": "early_stop",
        "plugin": "enough",
        "row_index": 2,
        "metric": "scores.clarity",
        "comparison": "gte",
        "threshold": 2,
        "value": 2,
        "rows_observed": 3,
    }
    calls = model.count
    assert calls <= 8
    assert stopped.json["coverage"] == 1
    assert shop.dicast("run", "p.yaml", "--json", "--resume").code == 2  # nothing is unfinished
    again = shop.dicast("run", "p.yaml", "--json", "--resume", stopped.json["run_id"], "--retry-failed")
    assert again.json["stopped"] == stopped.json["stopped"]
    assert (again.json["scored"], model.count) == (stopped.json["scored"], calls)


def test_failure_of_a_run_that_stopped_early_is_retried_and_nothing_else(shop, model):
    text = TASK + ALONE + "early_stop: [stats/threshold: {metric: scores.clarity, threshold: 3}]\n"
    model.answer = but(500, "r1 depth")
    stopped = shop.run(text)
    assert (stopped.json["failed"], stopped.json["stopped"]["row_index"]) == (1, 3)
    model.answer, before = rated, questions(model)
    again = shop.dicast("run", "p.yaml", "--json", "--resume", stopped.json["run_id"], "--retry-failed")
    assert questions(model) - before == Counter({"r1 depth": 1})
    assert (again.json["scored"], again.json["failed"]) == (stopped.json["scored"] + 1, 0)
    # the row that had failed is told last now, so that it is no longer among those before the stop
    assert again.json["stopped"] == {**stopped.json["stopped"], "row_index": 2}


def test_what_could_change_a_number_cannot_change_in_between(shop, model):
    model.answer = but(401, "r2 depth")
    assert shop.run(TASK + ALONE).code == 3
    paid = model.count
    for change in ("task.prompt/chat.criteria.depth.user=how deep", "aggregates=[]", "extractors=[]"):
        done = shop.dicast("run", "p.yaml", "--json", "--resume", "--set", change)
        assert done.code == 2
        assert "cannot be resumed" in done.json["error"]["message"]
    assert model.count == paid


# Records


def test_show_tells_what_was_made_of_a_row(shop, model):
    run = shop.run(TASK + "metrics: [proxy/format]\n")
    output = shop.dicast("show", "r3", "--json").json
    assert output["subject"]["record"]["metrics"]["scores"] == {"clarity": 3, "depth": 4}
    assert [verdict.get("score") for verdict in output["verdicts"]] == [1.0]
    text = shop.dicast("show", "r3").out
    assert "clarity:" in text
    assert '{"score": 4}' in text
    assert "\n  scores: clarity 3, depth 4\n" in text
    document = shop.dicast("show", run.json["run_id"], "--json").json
    assert scores(document) == WHOLE
    assert document["comparison"] is None
    assert "stats/score_stats" in shop.dicast("show", "last").out


def test_metrics_and_judges_see_the_first_criterions_reply(shop, model):
    done = shop.run(TASK + "metrics: [proxy/keywords: {required: [score]}]\n", "--limit", "2")
    assert done.json["labels"]["metrics"]["mean"] == 1.0
    assert done.json["subjects"] == 2


def test_each_rollout_asks_again_and_the_record_is_the_first_ones(shop, model):
    done = shop.run(TASK + "metrics: [proxy/format]\nscoring: {rollouts: 2}\n")
    assert done.json["scored"] == 6
    assert questions(model) == Counter(dict.fromkeys(EVERY, 2))
    assert Counter(event["payload"]["rollout"] for event in shop.events("task.replied")) == {0: 12, 1: 12}
    assert len(shop.events("record.completed")) == 6
    assert scores(done.json) == WHOLE


@pytest.mark.parametrize(("option", "failed", "mean"), [("", 1, 1.0), (", on_failure: zero", 0, pytest.approx(5 / 6))])
def test_row_that_the_task_fails_on_counts_as_told(shop, model, option, failed, mean):
    model.answer = but(500, "r5 clarity")
    text = TASK.replace("    model: model\n", f"    model: model{option.replace(', ', chr(10) + '    ')}\n")
    done = shop.run(text + "metrics: [proxy/format]\n")
    assert done.json["failed"] == 1  # the criteria have no score of that row
    assert (done.json["labels"]["metrics"]["failed"], done.json["labels"]["metrics"]["mean"]) == (failed, mean)
    assert len(shop.events("record.failed")) == 1
    assert scores(done.json)["clarity"][0] == 5


def test_no_room_at_all_is_5_and_asks_nothing(shop, model):
    done = shop.run(TASK + "budget: {run: 0 usd}\n")
    assert (done.code, model.count) == (5, 0)
    assert done.json["failures"] == {"throttled_no_heuristic": 6}


def test_ledger_of_digests_keeps_numbers_that_runs_are_compared_with(shop, model):
    text = TASK + COMPARED + "ledger: {ledger/sqlite: {path: d.db, content: digest}}\n"
    model.answer = but(500, "r5 depth")
    first = shop.run(text)
    assert first.json["scored"] == 5
    model.answer = rated
    second = shop.run(text, "--set", "task.prompt/chat.criteria.clarity.user=better {{ id }} clarity")
    assert second.json["comparison"]["stats/paired"]["criteria"]["clarity"]["mean_difference"] == 1
    assert second.json["comparison"]["stats/score_delta"]["criteria"]["clarity"] == 1.5  # of 6 rows, and of 5
    again = shop.dicast("run", "p.yaml", "--json", "--resume", first.json["run_id"], "--retry-failed")
    assert (again.code, again.json["scored"]) == (0, 6)
    assert scores(again.json) == WHOLE
    assert b'score\\"' not in (shop / "d.db").read_bytes()
    assert b"about r1" not in (shop / "d.db").read_bytes()


def test_broken_off_row_of_a_ledger_of_digests_is_asked_about_anew(shop, model):
    text = TASK + ALONE + "ledger: {ledger/sqlite: {path: d.db, content: digest}}\n"
    model.answer = lambda request: but(500, "r1 depth")(request) if "r2 depth" not in request.prompt else 401
    assert shop.run(text).code == 3
    model.answer = rated
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert (resumed.code, resumed.json["scored"], resumed.json["failed"]) == (3, 5, 1)
    assert resumed.json["failed_subjects"][0]["failure_mode"] == "judge_call_failed"
    assert questions(model) == Counter(dict.fromkeys(EVERY, 1) | {"r2 depth": 2, "r2 clarity": 2})


def test_head_asks_about_no_more_rows_and_shows_them_flat(shop, model):
    done = shop.run(TASK + RECORDS + COMPARED, "--head", "2")
    assert done.code == 0
    assert questions(model) == Counter({f"r{row} {name}": 1 for row in (0, 1) for name in ("clarity", "depth")})
    assert [row["metric_scores_depth"] for row in done.json["head"]] == [1, 2]
    assert done.json["head"][0]["id"] == "r0"
    assert done.json["head"][1]["llm_clarity"] == '{"score": 1}'
    assert not (shop / "rows.csv").exists()
    full_run = shop.dicast("run", "p.yaml", "--json")
    assert full_run.json["baseline"] == {"run": "last", "run_id": None, "name": None}  # never what was limited
    with (shop / "rows.csv").open(newline="") as file:
        columns = next(csv.reader(file))
    assert columns[: len(done.json["head"][0])] == list(done.json["head"][0])  # one flattening for both
    text = shop.dicast("run", "p.yaml", "--head", "1").out.partition("\n\n")[2]
    assert text.startswith("id  output      output clarity  output depth")
    assert '\nr0  An output.  {"score": 0}    {"score": 1}' in text
    assert "metric_scores_depth" in text
    assert "  more columns with --json: " in text
    assert "llm_content  " not in text
    assert max(map(len, text.splitlines())) <= 80
    for extra in (["--limit", "1"], ["--resume"]):
        assert shop.dicast("run", "p.yaml", "--head", "1", *extra).code == 2


def test_head_prints_a_table_of_what_was_judged_and_why(shop):
    shop.write(
        "data.jsonl", [{"id": "1", "input": "a\nquestion", "output": "long answer"}, {"id": "2", "output": {"a": 1}}]
    )
    shop.pipeline("metrics: [proxy/length: {max: 4}]\n")
    lines = shop.dicast("run", "p.yaml", "--head", "2").out.partition("\n\n")[2].splitlines()
    assert lines == [
        "id  proxy_length  input        output       reason: proxy_length",
        "1         0.0000  a\\nquestion  long answer  11 chars, more than 4",
        '2         1.0000  -            {"a":1}      -',
        "  more columns with --json: subject_kind, tier, cost_usd",
    ]


# Baselines


def test_first_run_is_compared_with_nothing_and_says_so(shop, model):
    done = shop.run(TASK + COMPARED)
    assert (done.code, done.json["comparison"]) == (0, None)
    assert "not compared: shop has no earlier completed run" in shop.dicast("show", "last").out


def test_last_run_is_never_another_pipelines_and_never_the_run_itself(shop, model):
    assert shop.run(TASK.replace("name: shop", "name: other")).code == 0
    model.answer = but(500, "r1 depth")
    first = shop.run(TASK + COMPARED)
    nothing = {"run": "last", "run_id": None, "name": None}
    assert (first.code, first.json["baseline"], first.json["comparison"]) == (3, nothing, None)
    model.answer = rated
    again = shop.dicast("run", "p.yaml", "--json", "--resume", first.json["run_id"], "--retry-failed")
    assert (again.code, again.json["baseline"], again.json["comparison"]) == (0, nothing, None)
    assert shop.dicast("run", "p.yaml", "--json").json["baseline"]["run_id"] == first.json["run_id"]


def test_what_metrics_say_of_a_tasks_answers_is_aggregated_and_compared(shop, model):
    """Without an extractor for the scores."""
    model.answer = lambda request: "yes" if "better" in request.prompt or "r1 " in request.prompt else "no"
    text = TASK.replace("extractors: [score_extractor/scores: {threshold: 3}]\n", "")
    text += "metrics: [proxy/keywords: {required: ['yes'], as: right}]\n" + COMPARED
    first = shop.run(text)
    assert (first.code, scores(first.json)) == (0, {"right": (6, 1 / 6)})
    second = shop.dicast("run", "p.yaml", "--json", "--set", "task.prompt/chat.criteria.clarity.user=better {{ id }}")
    assert scores(second.json) == {"right": (6, 1.0)}
    assert second.json["comparison"]["stats/score_delta"]["criteria"] == {"right": pytest.approx(5 / 6)}
    assert second.json["comparison"]["stats/paired"]["criteria"]["right"]["n_pairs"] == 6
    output = json.loads(shop.dicast("compare", first.json["run_id"], second.json["run_id"], "--json").out)
    assert (output["comparable"], output["differs"]) == (True, ["task"])
    assert output["comparisons"]["stats/score_delta"]["criteria"] == {"right": pytest.approx(5 / 6)}


def test_verdict_of_a_retried_failure_joins_those_that_its_subject_had(shop):
    shop.rows(0.1, 0.9, 0.2)
    shop.write("mood", "bad")
    failed = shop.run("metrics: [fake/act: {as: said}]\njudges: [fake/opinion: {moody: mood, as: opinion}]\n")
    (shop / "mood").unlink()
    run_id = failed.json["run_id"]
    assert shop.dicast("run", "p.yaml", "--resume", run_id, "--retry-failed").code == 0
    scores = read_ledger(None, lambda ledger: list(results(ledger, run_id).records()))
    assert sorted((id_, record["metrics"]["scores"]) for id_, record in scores) == [
        ("r0", {"said": 0.1, "opinion": 0.1, "metrics": 0.1}),
        ("r1", {"said": 0.9, "opinion": 0.9, "metrics": 0.9}),
        ("r2", {"said": 0.2, "opinion": 0.2, "metrics": 0.2}),
    ]


def test_run_that_differs_in_more_than_its_task_from_its_baseline_says_in_what(shop, model):
    first = shop.run(TASK + COMPARED)
    alike = shop.dicast(
        "run", "p.yaml", "--json", "--set", "task.prompt/chat.criteria.depth.user=better {{ id }} depth"
    )
    assert alike.json["baseline"]["run_id"] == first.json["run_id"]
    assert alike.json["baseline"]["differs"] == ["task"]
    assert "NOT COMPARABLE" not in shop.dicast("show", "last").out
    shop.rows(*["An output."] * 5)
    other = shop.dicast("run", "p.yaml", "--json", "--set", "extractors.0.threshold=4")
    assert other.json["baseline"]["differs"] == ["data", "extractors[score_extractor/scores]", "task"]
    assert other.json["baseline"]["faults"] == ["extractors[score_extractor/scores] (threshold: 4.0, not 3.0)"]
    shown = shop.dicast("show", "last").out
    assert "NOT COMPARABLE: the runs differ in extractors[score_extractor/scores]\n" in shown


def test_whether_a_run_is_like_a_file_of_records_is_not_known(shop, model):
    shop.run(TASK + "sinks: [jsonl/rows: {path: kept.jsonl}]\n")
    text = TASK + COMPARED.replace("run: last", "run: kept.jsonl")
    assert shop.run(text).json["baseline"]["differs"] == ["fingerprints"]
    output = shop.dicast("show", "last").out
    assert "unknown whether the runs are comparable: a file of records does not state" in output
    assert "NOT COMPARABLE" not in output


def test_last_run_is_never_one_that_scored_nothing(shop, model):
    first = shop.run(TASK + COMPARED)
    model.answer = but(500, "r")
    assert shop.dicast("run", "p.yaml", "--json").json["scored"] == 0
    model.answer = rated
    assert shop.dicast("run", "p.yaml", "--json").json["baseline"]["run_id"] == first.json["run_id"]


@pytest.mark.parametrize("by", ["last", "shop", "id", "kept/rows.jsonl"])
def test_baseline_is_found_by_what_names_it(shop, model, by):
    first = shop.run(TASK + "sinks: [jsonl/rows: {path: 'kept/rows.jsonl'}]\n")
    named = first.json["run_id"] if by == "id" else by
    text = TASK.replace("name: shop", "name: shop" if by == "last" else "name: other")
    compared = f"baseline: {{run: {named}, compare: [stats/score_delta]}}\n"
    done = shop.run(text + compared, "--set", "task.prompt/chat.criteria.depth.user=better {{ id }} depth")
    assert done.code == 0
    assert done.json["comparison"]["stats/score_delta"]["criteria"] == {"clarity": 0, "depth": 1}
    wanted = "kept/rows.jsonl" if "/" in by else first.json["run_id"]
    output = done.json["baseline"]["run_id"]
    assert output == wanted or output.endswith(wanted)
    (reports,) = shop.events("comparison.completed")
    assert reports["payload"]["result"] == done.json["comparison"]["stats/score_delta"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"subject_id": "r0"}\n', "is no record"),
        ("not JSON\n", "not JSON"),
        ('{"subject_id": "r0", "metrics": {"scores": 3}}\n[1]\n', "line"),
    ],
)
def test_broken_baseline_is_refused_before_anything_is_asked(shop, model, content, message):
    shop.write("base.jsonl", content)
    done = shop.run(TASK + "baseline: {run: base.jsonl}\n")
    assert (done.code, model.count) == (2, 0)
    assert "base.jsonl" in done.out
    assert message in done.json["error"]["message"] or message == "line"


def test_missing_baseline_is_refused_and_the_nearest_named(shop, model):
    assert shop.run(TASK, "--limit", "1").code == 0
    calls = model.count
    done = shop.run(TASK + "baseline: {run: shpo}\n")
    assert (done.code, model.count) == (2, calls)
    assert "'shop'" in done.json["error"]["message"]
    (error,) = done.json["error"]["errors"]
    assert (error["file"], error["path"]) == ("p.yaml", "baseline.run")


def test_unfinished_run_is_no_baseline(shop, model):
    model.answer = but(401, "r2 depth")
    broken = shop.run(TASK + ALONE)
    calls = model.count
    done = shop.run(TASK + f"baseline: {{run: {broken.json['run_id']}}}\n")
    assert (done.code, model.count) == (2, calls)
    assert "is not completed" in done.json["error"]["message"]


def test_watched_source_takes_no_section_of_an_experiment(shop):
    shop.write("trace.jsonl", "")
    text = "source: {traces/events: {path: trace.jsonl}}\njudges: [heuristic/turn]\n" + COMPARED
    text += "task: {task/command: {command: [cat]}}\naggregates: [stats/score_stats]\n"
    text += "early_stop: [stats/threshold: {metric: score, threshold: 1}]\n"
    done = shop.dicast("watch", shop.pipeline(text).name, "--once", "--json")
    assert done.code == 2
    named = {error["path"] for error in done.json["error"]["errors"]}
    assert named == {"task", "aggregates", "early_stop", "baseline"}


# Suites

SUITE = TASK.replace("name: shop\n", "name: trial\n") + (
    "sinks: [csv/rows: {path: 'out/${experiment}.csv'}]\n"
    "experiments:\n"
    "  strict: {variables: {PROMPT: better}}\n"
    "  plain: {}\n"
    "  brief: {set: {task.prompt/chat.criteria.depth.user: 'better {{ id }} depth'}}\n"
)
AGAINST_PLAIN = "baseline: {run: plain, compare: [stats/score_delta]}\n"


def order(shop):
    return [event["payload"]["name"] for event in shop.events("run.started")]


def test_suite_runs_the_baseline_first_and_compares_the_others_with_it(shop, model):
    done = shop.run(SUITE + AGAINST_PLAIN)
    assert (done.code, done.json["suite"], done.json["baseline"]) == (0, "p.yaml", "plain")
    assert order(shop) == ["trial/plain", "trial/strict", "trial/brief"]
    output = done.json["experiments"]
    assert list(output) == ["plain", "strict", "brief"]
    assert output["plain"]["comparison"] is None
    deltas = {
        name: item["comparison"] and item["comparison"]["stats/score_delta"]["criteria"]
        for name, item in output.items()
    }
    assert deltas == {"plain": None, "strict": {"clarity": 1, "depth": 1}, "brief": {"clarity": 0, "depth": 1}}
    assert {item["baseline"]["run_id"] for name, item in output.items() if name != "plain"} == {
        output["plain"]["run_id"]
    }
    assert sorted(file.name for file in (shop / "out").iterdir()) == ["brief.csv", "plain.csv", "strict.csv"]
    assert model.count == 36


@pytest.mark.slow
def test_suite_runs_from_python_as_from_the_command_line(shop, model):
    text = SUITE + AGAINST_PLAIN + "metrics: [proxy/length]\ngate: {on: metrics, min_score: 0.9}\n"
    command = shop.run(text)
    done = dicast.run("p.yaml")
    assert done.exit_code == command.code == 0
    assert list(done.experiments) == list(command.json["experiments"])
    for name, entry in done.experiments.items():
        message = command.json["experiments"][name]
        assert (entry.score["mean"], entry.aggregates, entry.cost) == (
            message["score"]["mean"],
            message["aggregates"],
            message["cost"],
        )
        assert (entry.comparison is None) == (name == "plain")
    assert (done.subjects, done.scored, done.failed, done.coverage) == (18, 18, 0, 1.0)
    with pytest.raises(dicast.ConfigError, match=r"a suite has no score. Read run.experiments\['plain'\].score"):
        _ = done.score
    assert (
        Decimal(done.cost["usd"]) == sum(Decimal(entry.cost["usd"]) for entry in done.experiments.values()) == 36 * CALL
    )
    assert (done.gate["passed"], done.baseline["run"], len(done.verdicts)) == (True, "plain", 18)
    assert order(shop) == ["trial/plain", "trial/strict", "trial/brief"] * 2
    failed = dicast.run("p.yaml", overrides={"metrics": [{"proxy/keywords": {"required": ["nothing"]}}]})
    assert (failed.exit_code, failed.gate["passed"], failed.gate["reasons"][0][:6]) == (1, False, "plain:")


def test_suite_from_python_takes_no_subjects_and_names_what_is_wrong_with_it(shop, model):
    shop.pipeline(SUITE)
    with pytest.raises(dicast.ConfigError, match="remove subjects"):
        dicast.run("p.yaml", subjects=[dicast.Subject("row", "1", output="x")])
    with pytest.raises(dicast.ConfigError, match="nobody"):
        dicast.run("p.yaml", overrides={"baseline": {"run": "nobody"}})
    assert model.count == 0


def test_an_experiment_runs_alone_against_the_newest_run_of_its_baseline(shop, model):
    name = shop.pipeline(SUITE + AGAINST_PLAIN).name
    first = shop.dicast("run", name, "--experiment", "plain", "--json")
    assert (first.code, first.json["name"], first.json["baseline"]) == (0, "trial/plain", None)
    done = shop.dicast("run", name, "--experiment", "strict", "--json")
    assert (done.code, done.json["name"]) == (0, "trial/strict")
    assert done.json["baseline"]["run_id"] == first.json["run_id"]
    assert model.count == 24


def test_an_unknown_experiment_is_refused_with_the_nearest_name(shop, model):
    name = shop.pipeline(SUITE).name
    done = shop.dicast("run", name, "--experiment", "strikt")
    assert (done.code, model.count) == (2, 0)
    assert "no experiment 'strikt'" in done.err
    assert "did you mean 'strict'?" in done.err
    done = shop.dicast("run", name, "--watch")
    assert done.code == 2
    assert "name one: --experiment strict" in done.err


def test_suite_starts_with_a_table_and_ends_with_the_comparison(shop, model):
    text = shop.dicast("run", shop.pipeline(SUITE + AGAINST_PLAIN).name).out
    table = text.split("\n")
    heads = ["EXPERIMENT", "SCORED", "FAILED JUDGMENTS", "clarity", "depth", "USD"]
    assert re.split(" {2,}", table[0]) == heads
    (step,) = re.findall("^next: dicast (.*)$", text, re.MULTILINE)
    assert re.fullmatch("compare [0-9A-Z]{6} [0-9A-Z]{6}", step)
    assert shop.dicast(*step.split()).code == 0
    assert table[1].split() == ["plain", "(baseline)", "6", "0", "0.5000", "0.6667", str(12 * CALL)]
    assert table[2].split()[-3:-1] == ["0.6667", "0.8333"]
    assert table[4] == "pass rate of clarity, depth"


def test_error_of_the_file_is_told_once_and_those_of_experiments_together(shop, model):
    text = SUITE.replace("threshold: 3", "treshold: 3").replace("{}", "{set: {budget.run: much}}")
    text = text.replace("criteria.depth.user", "retries").replace("'better {{ id }} depth'", "99")
    for command in ("run", "check"):
        done = shop.dicast(command, shop.pipeline(text).name, "--json")
        assert (done.code, model.count) == (2, 0)
        errors = done.json["errors"] if command == "check" else done.json["error"]["errors"]
        assert [(error["path"], error["value"]) for error in errors] == [
            ("extractors[0]", "treshold"),
            ("budget.run", "much"),
            ("task.retries", 99),
        ]
        assert all(error["line"] for error in errors)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("out/report.csv", "'out/report-${experiment}.csv'"),
        ("rows.csv.gz", "'rows-${experiment}.csv.gz'"),
        ("v1.2.csv", "'v1.2-${experiment}.csv'"),
        ("it's.csv", "'it''s-${experiment}.csv'"),
        ("s-.csv", "'s-${experiment}.csv'"),
        ("rows", "'rows-${experiment}'"),
    ],
)
def test_two_experiments_that_write_one_file_are_told_a_path_of_each(shop, model, path, values):
    done = shop.run(SUITE.replace("'out/${experiment}.csv'", json.dumps(path)))
    assert (done.code, model.count) == (2, 0)
    message = done.json["error"]["message"]
    assert f"both write to {shop.folder / path}" in message
    assert f"add the experiment to the path: {values}" in message
    assert dicast_accepts(shop, values)


def dicast_accepts(shop, values):
    return shop.dicast("check", shop.pipeline(SUITE.replace("'out/${experiment}.csv'", values)).name).code == 0


def test_check_builds_every_experiment(shop, model):
    assert shop.dicast("check", shop.pipeline(SUITE).name, "--json").json == {"ok": True, "errors": []}
    assert model.count == 0


@pytest.mark.slow
def test_experiment_whose_gate_fails_keeps_no_other_from_running(shop, model):
    gated = "metrics: [proxy/keywords: {required: ['2']}]\n"
    text = SUITE + gated + "gate: {on: metrics, min_score: 0.9}\n"
    done = shop.run(text)
    assert done.code == 1
    assert len(done.json["experiments"]) == 3
    model.answer = but(500, "better r1", "better r2")
    worse = shop.run(text)
    assert worse.code == 3  # coverage weighs more than a gate
    assert [item["failed"] for item in worse.json["experiments"].values()] == [2, 0, 2]


def test_experiment_whose_access_is_refused_ends_the_suite(shop, model):
    model.answer = 401
    done = shop.run(SUITE)
    assert (done.code, list(done.json["experiments"])) == (2, ["strict"])


def test_missing_baseline_of_a_suite_ends_it_before_anything_is_asked(shop, model):
    done = shop.run(SUITE + "baseline: {run: nobody}\n")
    assert (done.code, model.count) == (2, 0)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_killed_suite_is_taken_up_where_it_was(shop, model):
    text = SUITE + AGAINST_PLAIN + ALONE
    name = shop.pipeline(text).name
    model.answer = but(model.Answer(fault="hang"), "better r2 depth")
    process = shop.start("run", name, "--json")
    wait_for(lambda: any("better r2 depth" in asked.prompt for asked in model.requests))
    process.kill()
    finish(process)
    model.answer = rated
    done = shop.dicast("run", name, "--json", "--resume")
    assert done.code == 0
    assert list(done.json["experiments"]) == ["plain", "strict", "brief"]
    assert [one["scored"] for one in done.json["experiments"].values()] == [6, 6, 6]
    assert order(shop) == ["trial/plain", "trial/strict", "trial/brief"]
    assert model.count == 37  # one twice
    assert done.json["experiments"]["strict"]["comparison"]["stats/score_delta"]["criteria"]["depth"] == 1
    assert shop.dicast("run", name, "--json", "--resume").code == 2  # nothing is left of it
    assert model.count == 37


@pytest.mark.slow
def test_suite_that_is_taken_up_decides_by_its_gate_of_now_what_had_ended(shop, model):
    text = SUITE + "metrics: [proxy/format]\n" + ALONE
    name = shop.pipeline(text + "gate: {on: metrics, min_score: 0.5}\n").name
    model.answer = but(401, "better r2 depth")
    first = shop.dicast("run", name, "--json").json["experiments"]
    assert {name: entry["gate"]["passed"] for name, entry in first.items()} == {
        "strict": None,
        "plain": True,
        "brief": None,
    }
    requests, model.answer = questions(model)["r1 depth"], rated
    shop.pipeline(text + "gate: {min_score: 0.5, on: 'proxy/format', max_score: 0.9}\n")
    done = shop.dicast("run", name, "--json", "--resume")
    assert done.code == 1
    assert [entry["gate"]["passed"] for entry in done.json["experiments"].values()] == [False, False, False]
    assert questions(model)["r1 depth"] == requests == 1  # plain has ended, and asks nobody again
    run_id = done.json["experiments"]["plain"]["run_id"]
    assert run_id == first["plain"]["run_id"]
    assert shop.dicast("show", run_id, "--json").json["gate"] == done.json["experiments"]["plain"]["gate"]


@pytest.mark.slow
def test_tried_rows_are_nothing_of_a_suite_that_is_taken_up(shop, model):
    name = shop.pipeline(SUITE + ALONE).name
    model.answer = but(401, "better r2 depth")
    assert shop.dicast("run", name, "--json").code == 3
    model.answer = rated
    assert shop.dicast("run", name, "--json", "--head", "1").code == 0
    done = shop.dicast("run", name, "--json", "--resume")
    assert [entry["scored"] for entry in done.json["experiments"].values()] == [6, 6, 6]


def test_an_experiment_that_has_changed_is_not_taken_up_even_where_it_has_ended(shop, model):
    name = shop.pipeline(SUITE + ALONE).name
    model.answer = but(401, "better r2 depth")
    assert shop.dicast("run", name, "--json").code == 3
    paid, model.answer = model.count, rated
    done = shop.dicast("run", name, "--json", "--resume", "--set", "extractors=[]")
    assert (done.code, model.count) == (2, paid)
    assert "cannot be resumed: extractors" in done.json["error"]["message"]


def test_a_baseline_that_a_later_experiment_lacks_costs_the_first_nothing(shop, model):
    calls = model.count
    done = shop.run(SUITE + AGAINST_PLAIN.replace("run: plain", "run: nope") + ALONE)
    assert (done.code, model.count) == (2, calls)
    assert "no finished run or baseline 'nope'" in done.json["error"]["message"]
    done = shop.run(SUITE + AGAINST_PLAIN.replace("run: plain", "run: plian") + ALONE)
    (error,) = done.json["error"]["errors"]
    assert (done.code, model.count) == (2, calls)
    assert "did you mean 'plain'?" in error["message"]
    text = (shop / "p.yaml").read_text().splitlines()
    assert text[error["line"] - 1][error["column"] - 1 :].startswith("plian")


def test_variable_of_a_suite_that_nothing_uses_is_refused_and_the_nearest_named(shop, model):
    done = shop.run(TASK + "experiments:\n  plain: {}\n  better: {variables: {PROMT: better}}\n")
    assert (done.code, model.requests) == (2, [])
    (error,) = done.json["error"]["errors"]
    assert "the pipeline does not use the variable PROMT" in error["message"]
    assert (error["line"], error["column"], error["hint"]) == (13, 24, "PROMPT")


def test_value_of_a_suites_variable_may_use_the_environments_and_no_other_of_the_suite(shop, model, monkeypatch):
    monkeypatch.setenv("STYLE", "kind ${NO} words")
    variables = 'variables: {PROMPT: "better, in ${STYLE}"}'
    assert shop.run(TASK + f"experiments:\n  better: {{{variables}}}\n", "--limit", "1").code == 0
    calls = model.count
    assert calls == sum("better, in kind ${NO} words" in request.prompt for request in model.requests) > 0
    done = shop.run(TASK + f"experiments:\n  better: {{{variables.replace('STYLE', 'OTHER')}}}\n")
    assert (done.code, model.count) == (2, calls)
    (error,) = done.json["error"]["errors"]
    assert "the environment variable OTHER is not set" in error["message"]
    assert (error["path"], error["line"]) == ("experiments.better.variables.PROMPT", 12)


def test_suite_that_was_never_begun_has_nothing_to_resume(shop, model):
    assert shop.run(TASK, "--limit", "1").code == 0
    calls = model.count
    done = shop.run(SUITE, "--resume")
    assert (done.code, model.count) == (2, calls)
    assert "no unfinished run of this suite" in done.json["error"]["message"]


@pytest.mark.slow
def test_retry_failed_of_a_suite_asks_about_what_failed_alone(shop, model):
    model.answer = but(500, "better r1 clarity")
    first = shop.run(SUITE)
    assert (first.code, model.count) == (3, 35)
    model.answer = rated
    done = shop.dicast("run", "p.yaml", "--json", "--resume", "--retry-failed")
    assert (done.code, model.count) == (0, 37)
    assert [entry["failed"] for entry in done.json["experiments"].values()] == [0, 0, 0]


def test_head_of_a_suite_asks_about_its_rows_for_each_experiment(shop, model):
    done = shop.run(SUITE + AGAINST_PLAIN, "--head", "1")
    assert (done.code, model.count) == (0, 6)
    assert {name: len(item["head"]) for name, item in done.json["experiments"].items()} == dict.fromkeys(
        ("plain", "strict", "brief"), 1
    )
    assert not (shop / "out").exists()


def test_head_of_a_suite_shows_the_answers_first_no_text_twice_and_at_most_24_lines_an_experiment(shop):
    shop.write("toy.py", "def task(input):\n    return {'output': 'gold', 'cost': 5.85e-06}\n")
    rows = "".join(f"q{number},Why {number}?,gold,city {number},{number}\n" for number in range(3))
    (shop / "rows.csv").write_text(f"ticket,question,expected,city,number\n{rows}")
    shop.write("p.yaml", """name: trial
source: {rows/csv: {path: rows.csv, fields: {id: ticket, input: question, reference: expected}}}
task: {task/python: {target: "toy:task"}}
metrics: [diff/match: {as: correct}, check/contains: {as: right, value: gold}, proxy/length: {as: short, max: 2}]
experiments: {plain: {}, brief: {}}
""")  # fmt: skip
    blocks = shop.dicast("run", "p.yaml", "--head", "3", "--set", "trust=[toy.py]").out.split("gate: none\n")[1:]
    assert len(blocks) == 2
    for block in blocks:
        experiment = block.partition("\nEXPERIMENT")[0]
        assert len(experiment.splitlines()) + 1 <= 24
        heads = [line.split() for line in experiment.splitlines() if line.startswith("id ")]
        assert heads[0][:4] == ["id", "metrics", "input", "output"]
        assert not {"ticket", "question", "expected"} & {name for names in heads for name in names}
        assert "  more columns with --json: " in experiment


def test_a_data_column_named_score_is_told_from_the_score_on_screens_and_in_files(shop):
    shop.write("toy.py", "def task(input):\n    return 'made'\n")
    (shop / "rows.csv").write_text("id,input,reference,score\n1,a,made,0.5\n2,b,other,0.1\n")
    source = "source: {rows/csv: {path: rows.csv}}\ntask: {task/python: {target: 'toy:task'}}\ntrust: [toy.py]\n"
    shop.write("p.yaml", f"{source}metrics: [diff/match: {{as: correct}}]\n")
    table = shop.dicast("run", "p.yaml", "--head", "2").out.partition("\n\n")[2]
    heads = [name for line in table.splitlines() if line.startswith("id ") for name in re.split("  +", line)]
    assert heads[:5] == ["id", "correct", "input", "output", "reference"]
    assert "data: score" in heads
    done = shop.dicast("run", "p.yaml", "--out", "run.csv", "--out", "run.md")
    assert done.err == (
        "--out run.csv: the output of the task is in the column llm_content; the column 'score' of the data is named row_score, because the verdict has a column score\n"
    )
    assert (shop / "run.csv").read_text().startswith("id,input,reference,row_score,")
    assert "output\n\n```text\nmade\n```" in (shop / "run.md").read_text()


def test_other_commands_say_that_it_is_a_suite(shop, model):
    shop.write("trace.jsonl", "")
    text = "source: {traces/events: {path: trace.jsonl}}\njudges: [heuristic/turn]\nexperiments: {a: {}, b: {}}\n"
    done = shop.dicast("watch", shop.pipeline(text).name, "--once", "--json")
    assert done.code == 2
    assert "this is a suite of 2 experiments (a, b)" in done.json["error"]["message"]


def test_a_table_has_the_columns_of_the_data_without_a_task_too(shop):
    (shop / "rows.csv").write_text("nr,ask,answer,truth,score,kind\n1,a,made,made,0.5,x\n2,b,other,made,0.1,y\n")
    fields = "{id: nr, input: ask, output: answer, reference: truth}"
    shop.write("p.yaml", f"source: {{rows/csv: {{path: rows.csv, fields: {fields}}}}}\nmetrics: [diff/match]\n")
    done = shop.dicast("run", "p.yaml", "--out", "run.csv")
    assert "the column 'score' of the data is named row_score, because the verdict has a column score" in done.err
    with (shop / "run.csv").open(encoding="utf-8-sig", newline="") as file:
        row = next(csv.DictReader(file))
    data = {"nr": "1", "ask": "a", "answer": "made", "truth": "made", "row_score": "0.5", "kind": "x"}
    assert {name: row[name] for name in data} == data
    assert (row["subject_kind"], row["subject_id"], row["score"], row["output"]) == ("row", "1", "1.0", "made")
