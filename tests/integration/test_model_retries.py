"""Tries that a chat model makes by itself, in the record: however the reply came to it."""

from __future__ import annotations

import csv
import json

import pytest
import stamina

MODEL = (
    '{openai/chat: {base_url: "${JUDGE_URL}", model: m-1, price: {input_per_mtok: 1, output_per_mtok: 2}, retries: 2}}'
)
TASK = f"""\
define: {{model: {MODEL}}}
task:
  prompt/chat: {{model: model, criteria: {{a: {{user: "a {{{{ id }}}}"}}, b: {{user: "b {{{{ id }}}}"}}}}, retries: 1}}
executor: {{dicast/async: {{concurrency: 1}}}}
"""
SINKS = "sinks: [csv/rows: {path: rows.csv}]\n"


@pytest.fixture
def model(shop, chat_server, monkeypatch):
    """The chat server, with two rows to ask it about; tries follow at once."""
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    chat_server.answer = "fine"
    shop.rows("", "")
    with stamina.set_testing(True, attempts=100, cap=True):
        yield chat_server


def retries(shop):
    """How each row was tried, by its id: attempts, most attempts, and the numbers in the history."""
    return {
        event["payload"]["row"]["id"]: (
            reports["attempts"],
            reports["max_attempts"],
            [item["attempt"] for item in reports["history"]],
        )
        for event in shop.events("record.completed", "record.failed")
        if (reports := event["payload"].get("retry"))
    }


@pytest.mark.parametrize("status", [500, 429])
def test_passing_fault_is_in_the_record_and_its_columns(shop, model, status):
    model.script("fine", model.error(status, "busy"))
    done = shop.run(TASK + SINKS)
    assert (done.code, done.json["scored"], model.count) == (0, 2, 5)
    first, second = (event["payload"] for event in shop.events("record.completed"))
    history = [{"attempt": 1, "error": f"m-1 at {model.url}/chat/completions: HTTP {status}: busy"}]
    assert first["retry"] == first["responses"]["b"]["retry"] == {"attempts": 2, "max_attempts": 3, "history": history}
    assert "retry" not in first["responses"]["a"]
    assert "retry" not in second
    assert "retries" not in first["metrics"]
    with (shop / "rows.csv").open(newline="") as file:
        told, untold = csv.DictReader(file)
    assert (told["retry_attempts"], told["retry_max_attempts"], json.loads(told["retry_history"])) == (
        "2",
        "3",
        history,
    )
    assert untold["retry_attempts"] == ""


def test_lasting_fault_has_no_attempts_left_and_a_refused_request_has(shop, model):
    model.answer = lambda request: 500 if "r0" in request.prompt else model.error(400, "too long")
    done = shop.run(TASK)
    assert (done.json["failures"], model.count) == ({"judge_call_failed": 2}, 4)
    assert retries(shop) == {"r0": (3, 3, [1, 2, 3]), "r1": (1, 3, [1])}
    assert shop.events("record.failed")[0]["payload"]["error"].endswith("(3 tries)")


def test_empty_replies_and_faults_are_numbered_together(shop, model):
    model.script(503, "", 503, "fine")
    assert shop.run(TASK).json["scored"] == 2
    assert retries(shop) == {"r0": (4, 5, [1, 2, 3])}


def test_reply_that_is_remembered_keeps_how_it_was_tried(shop, model):
    text = TASK.replace(MODEL, f"{{cache/chat: {{model: {MODEL}, path: replies.db}}}}")
    model.script(503)
    values = []
    for name in ("first.jsonl", "second.jsonl"):
        assert shop.run(f"{text}sinks: [jsonl/rows: {{path: {name}}}]\n").json["scored"] == 2
        values.append([json.loads(line).get("retry") for line in (shop / name).read_text().splitlines()])
    first, second = values
    assert (first, model.count) == (second, 5)
    assert (first[0]["attempts"], first[1]) == (2, None)


def test_reply_that_a_broken_off_run_has_bought_keeps_how_it_was_tried(shop, model):
    model.script(503, "fine", 401)
    assert shop.run(TASK).json["stopped"]["reason"] == "refused_by_provider"
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert (resumed.json["scored"], model.count) == (2, 6)
    assert retries(shop) == {"r0": (2, 3, [1])}


def test_judges_calls_are_tried_as_before(shop, model):
    model.answer = model.sealed(score=0.5, confidence=0.9)
    model.script(500, 429)
    done = shop.run(f"define: {{model: {MODEL}}}\njudges: [llm/judge: {{model: model, rubric: row-llm-v1}}]\n")
    assert (done.json["scored"], model.count) == (2, 4)
    assert "retry" not in json.dumps([event["payload"] for event in shop.events("eval.completed")])
