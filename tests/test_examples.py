"""Every example runs as a reader of the README would run it, and ends as its comments say."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dicast._kernel.cli import main

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
PIPELINES = sorted(EXAMPLES.glob("*/*.yaml"))


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """``run(PIPELINE)``: the run document of a pipeline, run from a copy in *tmp_path*."""

    def inside(pipeline: Path) -> dict:
        copy = tmp_path / "examples"
        shutil.copytree(EXAMPLES, copy, ignore=shutil.ignore_patterns("out"))
        monkeypatch.chdir(tmp_path)
        for name in [name for name in os.environ if name.startswith("DICAST_")]:
            monkeypatch.delenv(name)
        capfd.readouterr()
        code = main(["run", str(copy / pipeline.relative_to(EXAMPLES)), "--json"])
        printed = capfd.readouterr()
        assert code == 0, printed.out + printed.err
        return json.loads(printed.out)

    return inside


@pytest.mark.parametrize("name", ["claude-code", "inspect", "otel"])
def test_every_command_of_a_readme_ends_well(name, tmp_path, monkeypatch, capfd):
    shutil.copytree(EXAMPLES / name, tmp_path / "examples" / name)
    monkeypatch.chdir(tmp_path)
    text = (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    commands = [line.removeprefix("$ dicast ").split() for line in text.splitlines() if line.startswith("$ dicast ")]
    assert len(commands) == 3
    for command in commands:
        assert main(command) == 0, capfd.readouterr().err
    written = commands[-1][-1]
    assert (tmp_path / written).stat().st_size > 0


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda path: path.parent.name)
def test_example_judges_every_subject_and_spends_nothing(run, pipeline):
    document = run(pipeline)
    assert document["scored"] == document["subjects"] > 0
    assert document["failed"] == 0
    assert [float(amount) for amount in document["cost"].values()] == [0, 0]


def test_support_turns_tells_the_bad_turns(run, tmp_path):
    document = run(EXAMPLES / "support-turns" / "pipeline.yaml")
    with (tmp_path / "examples" / "support-turns" / "out" / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["subject_id"]: row for row in csv.DictReader(file)}
    assert document["subjects"] == len(rows) == 13
    lifecycle = {name: float(row["judge_lifecycle_score"]) for name, row in rows.items()}
    assert lifecycle["return-window/1"] == 1.0
    assert lifecycle["refused/1"] == pytest.approx(0.5)
    assert lifecycle["broken-lookup/1"] < 1.0
    assert lifecycle["empty-answer/1"] < lifecycle["empty-answer/2"] == 1.0
    assert float(rows["placeholder/1"]["metric_proxy_keywords"]) == 0.0
    assert float(rows["empty-answer/1"]["metric_proxy_format"]) == 0.0


def test_qa_rows_asks_the_truth_only_where_the_proxies_pass(run, tmp_path):
    document = run(EXAMPLES / "qa-rows" / "pipeline.yaml")
    assert document["score"]["by_tier"] == {"truth": 9, "proxy": 1}
    assert document["metrics"]["correct"]["scored"] == 9
    assert document["gate"]["passed"] is True
    assert document["score"]["mean"] == pytest.approx((7 + 0.4 + 0.88 + 0.5) / 10)


def test_judge_asks_about_the_turns_that_the_heuristic_is_not_sure_of(run, tmp_path):
    document = run(EXAMPLES / "judge" / "pipeline.yaml")
    with (tmp_path / "examples" / "judge" / "out" / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["subject_id"]: row for row in csv.DictReader(file)}
    read = {name: float(row["score"]) for name, row in rows.items() if row["judge_turn_kind"] == "hybrid"}
    assert document["judges"]["turn"]["escalated"] == len(read)
    assert read == {
        "renewed/1": 1.0,
        "made-up-renewal/1": 0.0,
        "other-readers-loans/1": 1.0,
        "needless-refusal/1": 0.1,
    }


@pytest.mark.parametrize("example", ["agent", "images", "judge", "metis", "rag"])
def test_an_example_has_the_replies_that_its_script_writes(example, tmp_path):
    shutil.copytree(EXAMPLES / example, tmp_path / example, ignore=shutil.ignore_patterns("out"))
    replies = tmp_path / example / "replies.jsonl"
    shipped = answered_requests(replies)
    subprocess.run([sys.executable, "-W", "error", "by_hand.py"], cwd=tmp_path / example, timeout=200, check=True)
    assert shipped == answered_requests(replies), (
        f"run examples/{example}/by_hand.py: data, options or rubric have changed"
    )


def test_metis_asks_a_model_about_unsure_turns_alone_and_judges_cycles_and_sessions_by_heuristics(run, tmp_path):
    run(EXAMPLES / "metis" / "pipeline.yaml")
    with (tmp_path / "examples" / "metis" / "out" / "verdicts.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["subject_id"]: row for row in csv.DictReader(file)}
    labels = {"turn": "turn", "tool_cycle": "heuristic_tool_cycle", "session": "heuristic_session"}
    scores = {name: float(row[f"judge_{labels[row['subject_kind']]}_score"]) for name, row in rows.items()}
    assert {row["score"] for row in rows.values()} == {""}  # three labels, and no gate names one
    asked_about = {name for name, row in rows.items() if row["judge_turn_kind"] == "hybrid"}
    assert asked_about == {"flaky/1", "flaky/2", "flaky/3", "lost/1"}
    assert (scores["flaky/2"], scores["flaky/3"], scores["rename/2"]) == (0.0, 1.0, 1.0)
    kinds = [row[f"judge_heuristic_{kind}_kind"] for row in rows.values() for kind in ("tool_cycle", "session")]
    assert set(kinds) == {"heuristic", ""}
    assert scores["toolu_11"] == pytest.approx(0.6)  # called again with the same input
    assert scores["rename"] == 1.0
    assert scores["lost"] == pytest.approx(0.5 * 0.2 + 0.3 * 0.2)


def test_agent_steps_asks_what_came_of_a_step_only_where_its_form_passes(run, tmp_path):
    document = run(EXAMPLES / "agent-steps" / "pipeline.yaml")
    folder = tmp_path / "examples" / "agent-steps"
    written = (folder / "out" / "labels.jsonl").read_text(encoding="utf-8")
    labels = {label["id"]: label["outcome_score"] for label in map(json.loads, written.splitlines())}
    assert document["score"]["by_tier"] == {"truth": 6, "proxy": 1}
    assert "no-plan/1" not in labels
    assert labels["mend-dates/2"] == pytest.approx(0.98)
    assert labels["rename-flag/2"] == pytest.approx(0.36)  # made before, and of no use
    assert (folder / "labels.jsonl").read_text(encoding="utf-8") == written, "copy out/labels.jsonl to labels.jsonl"


def answered_requests(replies: Path) -> set[str]:
    """Return the requests that the recorded replies answer."""
    return {json.loads(line).get("digest") for line in replies.read_text(encoding="utf-8").splitlines()}


def test_otel_has_the_spans_that_its_script_records_and_a_failed_call(run, tmp_path):
    document = run(EXAMPLES / "otel" / "pipeline.yaml")
    assert document["judges"]["heuristic/tool_cycle"]["scored"] == 3
    assert document["judges"]["heuristic/session"]["scored"] == 2  # the shop and its expert
    shipped = (EXAMPLES / "otel" / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    copy = tmp_path / "examples" / "otel"
    subprocess.run([sys.executable, "-W", "error", "record.py"], cwd=copy, timeout=200, check=True)
    recorded = (copy / "spans.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(span)["attributes"] for span in recorded] == [json.loads(span)["attributes"] for span in shipped]
