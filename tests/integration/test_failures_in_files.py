"""Failures of tasks, judges and data: counted alike on the screen and in every file of ``--out``; retries only where one may help."""

from __future__ import annotations

import csv
import json

import pytest

SUITE = """
name: words
define:
  asked: {openai/chat: {model: m, base_url: URL, price: free, retries: 0}}
task: {prompt/chat: {model: asked, user: "{{ input }}"}}
metrics: [check/icontains: {as: named, value: "{{ reference }}"}]
gate: {on: named, min_pass_rate: 0.9}
"""
EXPERIMENTS = "experiments: {long: {}, short: {}}\n"


@pytest.fixture
def words(shop, chat_server):
    """Five rows: one whose call fails, one with an empty reply, one without a reference, one that fails the metric and one that passes."""
    rows = [{"id": name, "input": name, "reference": "yes"} for name in ("call", "empty", "blank", "wrong", "right")]
    rows[2]["reference"] = ""
    shop.write("data.jsonl", rows)

    def answer(asked):
        text = json.dumps(asked.body["messages"])
        if "call" in text:
            return 500
        return chat_server.raw(
            {"choices": [{"message": {"content": "" if "empty" in text else "no" if "wrong" in text else "yes"}}]}
        )

    chat_server.answer = answer
    return shop


def test_every_file_counts_the_failures_of_tasks_and_of_data(words, chat_server):
    text = SUITE.replace("URL", chat_server.url)
    words.pipeline(text)
    names = [f"out.{suffix}" for suffix in ("md", "csv", "html")]
    outs = [option for name in names for option in ("--out", name)]
    done = words.dicast("run", "p.yaml", "--json", *outs).json
    assert done["metrics"]["named"]["passes"]["open"] == 3
    assert sum(done["failures"].values()) == 3
    markdown = (words / "out.md").read_text()
    assert "### 1 did not pass, 3 without a verdict" in markdown
    for id_, label in (("call", "call failed"), ("empty", "reply is invalid"), ("blank", "missing_input")):
        (row,) = [line for line in markdown.splitlines() if line.startswith(f"| `row` `{id_}` | `named` |")]
        assert label in row or "blank in this row" in row
    assert "2 of 5, 3 failed" in markdown
    assert "with 3 open subjects counted both ways" in markdown
    page = (words / "out.html").read_text()
    data, _ = json.JSONDecoder().raw_decode(page[page.index('{"version":1') :])
    document = data["runs"][0]["document"]
    assert document["failures"] == done["failures"]
    assert document["metrics"]["named"]["passes"] == done["metrics"]["named"]["passes"]
    with (words / "out.csv").open() as file:
        open_rows = [row["id"] for row in csv.DictReader(file) if not row["score"]]
    assert sorted(open_rows) == ["blank", "call", "empty"]
    assert "3 failed" in words.dicast("show", "last").out


def test_each_experiment_with_failures_has_its_next_commands(words, chat_server):
    words.pipeline(SUITE.replace("URL", chat_server.url) + EXPERIMENTS)
    lines = words.dicast("run", "p.yaml").out.splitlines()
    runs = {event["payload"]["name"][6:]: event["run_id"] for event in words.events("run.started")}
    for name, run_id in runs.items():
        command = f"dicast run p.yaml --resume {run_id} --experiment {name} --retry-failed"
        assert f"next: {command}" in lines
        assert f"details: dicast show {run_id[-6:]} --full" in lines
        assert command in words.dicast("show", run_id).out
    chat_server.answer = lambda asked: chat_server.raw({"choices": [{"message": {"content": "yes"}}]})
    before = chat_server.count
    done = words.dicast("run", "p.yaml", "--resume", runs["short"], "--experiment", "short", "--retry-failed", "--json")
    assert done.json["run_id"].endswith(runs["short"])
    assert chat_server.count - before == 2


def test_a_retry_is_offered_only_where_it_may_help(words, chat_server):
    words.write(
        "data.jsonl",
        [{"id": "blank", "input": "blank", "reference": ""}, {"id": "right", "input": "x", "reference": "yes"}],
    )
    words.pipeline(SUITE.replace("URL", chat_server.url))
    out = words.dicast("run", "p.yaml").out
    assert "--retry-failed" not in out
    assert "next: dicast verdicts --run " in out
    assert "row blank" in out


def test_failing_subjects_are_those_of_every_label_of_the_gate(shop):
    shop.rows("red square", "red circle", "blue square", "blue circle")
    metrics = "metrics:\n  - check/contains: {as: color, value: red}\n  - check/contains: {as: shape, value: square}\n"
    text = metrics + "gate: [{on: color, min_pass_rate: 0.9}, {on: shape, min_pass_rate: 0.9}]\n"
    shop.run(text)
    done = shop.run(text, "--filter", "failing").json
    assert done["subjects"] == 3
    assert "3 of 4 subjects are accepted" in done["warnings"][0]["message"]


def test_markdown_has_one_row_for_a_subject_of_a_single_metric(shop):
    shop.rows("red square", "blue square")
    gate = "gate: [{on: color, min_pass_rate: 0.9}, {on: metrics, min_pass_rate: 0.9}]\n"
    shop.run(f"metrics:\n  - check/contains: {{as: color, value: red}}\n{gate}", "--out", "out.md")
    lines = (shop / "out.md").read_text().splitlines()
    assert [line.split("|")[2].strip() for line in lines if line.startswith("| `row` ")] == ["`color`"]
