"""Labels of outputs: gold files, labels of the ledger, and the evidence of ``dicast label``, with outputs that a task made."""

from __future__ import annotations

import json
import re
import shutil
import sys

import pytest
import yaml
from test_labels import at_a_terminal
from trust_project import Project

from dicast import Reply
from dicast.reading import output_digest
from dicast.testing import FakeChatModel, run_pipeline

ANSWER = """
import json, sys
row = json.load(sys.stdin)
print(open("style.txt").read() + " answer to " + row["id"])
"""
PIPELINE = f"""
name: task_project
define: {{grader: {{replay/chat: {{path: replies.jsonl}}}}}}
source: {{rows/jsonl: {{path: rows.jsonl}}}}
task: {{task/command: {{command: ["{sys.executable}", answer.py]}}}}
judges: [{{llm/judge: {{as: polite, model: grader}}}}]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""
STYLES = ("polite", "rude")
N = 30


def record_replies(project, outputs):
    """Record a judge that passes polite *outputs* and fails the rest."""

    def reply(request):
        text = request.messages[-1].content
        seal = re.search(r"^seal: (\S+)$", text, re.MULTILINE)[1]
        answer = {"seal": seal, "score": float("polite " in text), "confidence": 0.9, "rationale": "r"}
        return Reply(json.dumps(answer), model="m")

    pipeline = yaml.safe_load(PIPELINE)
    del pipeline["ledger"], pipeline["task"]
    pipeline["define"]["grader"]["replay/chat"]["record"] = "model"
    project.lines("rows.jsonl", [{"id": str(n), "input": "?", "output": output} for n, output in enumerate(outputs)])
    run_pipeline(yaml.safe_dump(pipeline), components={"model": FakeChatModel(reply)})


@pytest.fixture(scope="module")
def judged_twice(tmp_path_factory):
    """Folder and run ids of a project whose file ran twice over the same rows; its task answers politely, then rudely."""
    folder = tmp_path_factory.mktemp("twice")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("DICAST_LEDGER", raising=False)
        project, ids = Project(folder), []
        record_replies(project, [f"{style} answer to r{n}" for style in STYLES for n in range(N)])
        project.lines("rows.jsonl", [{"id": f"r{n}", "input": "?"} for n in range(N)])
        (folder / "answer.py").write_text(ANSWER)
        (folder / "pipeline.yaml").write_text(PIPELINE)
        for style in STYLES:
            (folder / "style.txt").write_text(style)
            ids.append(project.run()["run_id"])
    return folder, ids


@pytest.fixture
def task_project(project, judged_twice):
    """Copy of the project that ran twice."""
    shutil.copytree(judged_twice[0], project.folder, dirs_exist_ok=True)
    return project


@pytest.fixture
def runs(judged_twice):
    """Ids of the two runs."""
    return judged_twice[1]


def gold(project, style, **extra):
    """Write labels that pass the polite answers; *style* selects the labeled answers."""
    score = float(style == "polite")
    project.lines("gold.jsonl", [{"subject_id": f"r{n}", "score": score, **extra} for n in range(N)])


def agreement(project, *options, code=0):
    arguments = ("agreement", "--gold", "gold.jsonl", "--judge", "polite", "--ledger", "ledger.db")
    return project.document(*arguments, *options, code=code)


def test_a_label_without_an_output_is_refused_where_a_task_made_it(task_project, runs):
    gold(task_project, "polite")
    for command in (
        ("agreement", "--gold", "gold.jsonl", "--judge", "polite", "--ledger", "ledger.db"),
        ("calibrate", "pipeline.yaml", "--gold", "gold.jsonl"),
        ("doctor", "pipeline.yaml", "--gold", "gold.jsonl", "--no-ask"),
        ("labels", "import", "gold.jsonl", "--ledger", "ledger.db"),
    ):
        message = task_project.refused(*command)
        assert "gold.jsonl:1" in message, command
        assert "output_digest or run" in message
        assert "--any-output" in message
    assert agreement(task_project, "--any-output")["raters"]["polite"]["base_rate"] == 0.0  # the newest run is rude


@pytest.mark.parametrize(("number", "rate"), [(0, 1.0), (1, 0.0)])
def test_a_label_of_a_run_is_compared_with_verdicts_on_its_output(task_project, runs, number, rate):
    gold(task_project, ("polite", "rude")[number], run=runs[number])
    document = agreement(task_project)
    assert (document["n"], document["within"]) == (N, 1.0)
    assert document["raters"]["polite"]["base_rate"] == rate
    stage = task_project.document("calibrate", "pipeline.yaml", "--gold", "gold.jsonl", "--assume-random")["stages"][0]
    assert stage["errors"] == 0
    (card,) = task_project.document("doctor", "pipeline.yaml", "--gold", "gold.jsonl", "--no-ask")["judges"]
    assert card["accuracy"]["value"] == 1.0


def test_a_label_of_a_digest_is_compared_with_verdicts_on_that_output(task_project, runs):
    lines = [
        {"subject_id": f"r{n}", "score": 1, "output_digest": output_digest(f"polite answer to r{n}")} for n in range(N)
    ]
    task_project.lines("gold.jsonl", lines)
    assert agreement(task_project)["raters"]["polite"]["base_rate"] == 1.0
    assert agreement(task_project, "--any-output")["raters"]["polite"]["base_rate"] == 0.0


def test_show_prints_the_digest_of_the_output_of_each_run(task_project, runs):
    digests = [
        task_project.document("show", "r1", "--run", run, "--ledger", "ledger.db")["subject"]["output_digest"]
        for run in runs
    ]
    assert digests == [output_digest(f"{style} answer to r1") for style in STYLES]


def test_labels_of_two_outputs_of_one_subject_are_both_used(task_project, runs):
    lines = [
        {"subject_id": f"r{n}", "score": score, "run": run}
        for n in range(N)
        for score, run in zip((1, 0), runs, strict=True)
    ]
    task_project.lines("gold.jsonl", lines)
    assert agreement(task_project)["within"] == 1.0
    assert agreement(task_project, "--run", runs[0])["raters"]["polite"]["base_rate"] == 1.0


def test_an_output_that_no_run_judged_is_no_match(task_project, runs):
    gold(task_project, "polite", output_digest=output_digest("another"))
    message = task_project.refused("calibrate", "pipeline.yaml", "--gold", "gold.jsonl")
    assert "no verdict on the output that the label names" in message


def test_a_digest_that_is_none_is_refused_by_line(task_project, runs):
    gold(task_project, "polite", output_digest="abc")
    message = task_project.refused("agreement", "--gold", "gold.jsonl", "--judge", "polite", "--ledger", "ledger.db")
    assert "gold.jsonl:1" in message
    assert "'abc' is no digest of an output" in message


def test_import_records_the_digest_of_the_runs_output_and_export_writes_it(task_project, runs):
    gold(task_project, "polite", run=runs[0])
    task_project.document("labels", "import", "gold.jsonl", "--labeller", "ada", "--ledger", "ledger.db")
    lines = [
        json.loads(line) for line in task_project.call("labels", "export", "--ledger", "ledger.db").stdout.splitlines()
    ]
    assert lines[0]["output_digest"] == output_digest("polite answer to r0")
    (task_project.folder / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert agreement(task_project)["raters"]["polite"]["base_rate"] == 1.0
    document = task_project.document("agreement", "--gold", "ledger", "--judge", "polite", "--ledger", "ledger.db")
    assert document["raters"]["polite"]["base_rate"] == 1.0


@pytest.mark.slow
def test_label_shows_the_output_that_the_task_made_and_records_its_digest(task_project, runs):
    screen, code = at_a_terminal(
        "label", "pipeline.yaml", "--random", "1", "--labeller", "ada", keys="y", folder=task_project.folder
    )
    assert code == 0, screen
    assert "rude answer to" in screen
    assert f"of run {runs[1]}" in screen
    screen, _ = at_a_terminal("label", runs[0], "--random", "1", "--labeller", "ada", "--ledger", "ledger.db", keys="n", folder=task_project.folder)  # fmt: skip
    assert "polite answer to" in screen
    lines = [
        json.loads(line) for line in task_project.call("labels", "export", "--ledger", "ledger.db").stdout.splitlines()
    ]
    id = lines[0]["subject_id"]
    assert [line["output_digest"] for line in lines] == [
        output_digest(f"{style} answer to {id}") for style in ("rude", "polite")
    ]


def test_without_a_task_a_label_is_about_every_output_unless_it_names_one(project):
    record_replies(project, [f"{style} {n}" for style in STYLES for n in range(N)])
    pipeline = yaml.safe_load(PIPELINE)
    del pipeline["task"]
    project.pipeline(pipeline)
    ids = []
    for style in STYLES:
        project.lines("rows.jsonl", [{"id": f"r{n}", "input": "?", "output": f"{style} {n}"} for n in range(N)])
        ids.append(project.run()["run_id"])
    gold(project, "polite")
    assert agreement(project)["raters"]["polite"]["base_rate"] == 0.0
    gold(project, "polite", run=ids[0])
    document = agreement(project)
    assert (document["raters"]["polite"]["base_rate"], document["within"]) == (1.0, 1.0)


TALK = {
    "id": "c1",
    "messages": [
        {"role": "system", "content": "Never promise refunds."},
        {"role": "user", "content": "My lamp broke"},
        {"role": "assistant", "content": "Which order?"},
        {"role": "user", "content": "QX7"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "k", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "k", "content": "two years of warranty"},
        {"role": "assistant", "content": "It is under warranty."},
    ],
}
TALKS = """
name: talks
source: {traces/messages: {path: talks.jsonl, id: "{{ id }}", subjects: [turn, session]}}
judges: [heuristic/turn, heuristic/session]
ledger: {ledger/sqlite: {path: ledger.db}}
"""


@pytest.mark.slow
def test_label_shows_a_conversation_as_a_judge_sees_it_and_offers_sessions(project):
    project.lines("talks.jsonl", [TALK])
    (project.folder / "pipeline.yaml").write_text(TALKS)
    project.run()
    screen, code = at_a_terminal("label", "pipeline.yaml", "--labeller", "ada", keys="yyy", folder=project.folder)
    assert code == 0, screen
    assert "3 of 3 subjects that pipeline.yaml has judged (2 of kind turn, 1 of kind session)" in screen
    turn = screen[screen.index("turn c1/2") :].partition("q quit")[0]
    for text in ("Never promise refunds.", "EARLIER TURNS", "My lamp broke", "It is under warranty."):
        assert turn.count(text) == 1, text
    assert (turn.count("called look_up"), turn.count("two years of warranty")) == (1, 1)
    session = screen[screen.index("session c1") :].partition("q quit")[0]
    assert session.count("two years of warranty") == 1
    screen, _ = at_a_terminal(
        "label", "pipeline.yaml", "--kind", "session", "--labeller", "bob", keys="q", folder=project.folder
    )
    assert "1 of 1 subjects that pipeline.yaml has judged (1 of kind session)" in screen
