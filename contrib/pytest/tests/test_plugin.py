"""``dicast-pytest`` in separate runs of pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PIPELINE = """
name: answers
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {value: Ankara}]
gate: {min_score: %s}
sinks: [csv/rows: {path: out.csv}]
"""
OUTPUTS = {"1": "Ankara", "2": "Bonn", "3": "in Ankara", "4": "Ankara!"}
COUNTED = """
from dicast import Score, hookimpl, metric
from pathlib import Path

@metric(tier="truth")
def contains(subject, *, value: str) -> Score:
    with Path("asked.txt").open("a") as file:
        file.write(f"{subject.id}\\n")
    return Score(float(value in subject.text), details="it is not there" if value not in subject.text else "")

@hookimpl
def dicast_metrics():
    return [contains]
"""


OUTCOMES = """
import json
from pathlib import Path

def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome != "passed":
        with Path(__file__).with_name("outcomes.jsonl").open("a") as file:
            file.write(json.dumps([report.nodeid, report.outcome]) + "\\n")
"""
"""A plugin that writes down what became of each item."""


@pytest.fixture
def folder(tmp_path):
    write_rows(tmp_path, OUTPUTS)
    (tmp_path / "answers.dicast.yaml").write_text(PIPELINE % 0.5)
    return tmp_path


def write_rows(folder, outputs):
    rows = [json.dumps({"id": id_, "input": "what?", "output": text}) for id_, text in outputs.items()]
    (folder / "rows.jsonl").write_text("\n".join(rows))


def count_calls(folder):
    """Make the pipeline's metric write the ids of its subjects to a file."""
    (folder / "counted.py").write_text(COUNTED)
    metadata = folder / "counted-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: counted\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[dicast]\ncounted = counted\n")
    (folder / "answers.dicast.yaml").write_text((PIPELINE % 0.5).replace("check/contains", "counted/contains"))


def asked_ids(folder):
    """Return the ids written since the last call."""
    path = folder / "asked.txt"
    ids = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return ids


def run(folder, *arguments, autoload=False, **environment):
    """Run pytest in *folder*; return the outcome of each item by its name, and the process."""
    (folder / "outcomes.py").write_text(OUTCOMES)
    (folder / "outcomes.jsonl").unlink(missing_ok=True)
    ours = ("DICAST_", "PYTEST_", "COV_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    variables = clean | {"PYTHONPATH": str(folder)} | environment
    plugins = ["outcomes"] if autoload else ["outcomes", "dicast_pytest.plugin", "xdist.plugin"]
    variables |= {} if autoload else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other plugins take a second to import
    command = [sys.executable, "-m", "pytest", *(part for name in plugins for part in ("-p", name)), *arguments]
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    path = folder / "outcomes.jsonl"
    reports = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {name.partition("::")[2]: outcome for name, outcome in reports}, done


def test_each_subject_is_an_item_and_so_is_the_gate(folder):
    outcomes, done = run(folder, "--dicast")
    assert outcomes == {"row:1": "passed", "row:2": "failed", "row:3": "passed", "row:4": "passed", "gate": "passed"}
    assert "check/contains: 0.0000, below 0.5: the output does not contain 'Ankara'" in done.stdout
    assert "output: Bonn" in done.stdout
    assert done.returncode == 1
    assert "Traceback" not in done.stdout
    assert (folder / "out.csv").is_file()


@pytest.mark.slow
def test_a_file_without_a_gate_has_an_item_for_its_coverage(folder):
    text = "\n".join(line for line in (PIPELINE % 0.5).splitlines() if not line.startswith("gate"))
    (folder / "answers.dicast.yaml").write_text(text)
    outcomes, done = run(folder, "--dicast")
    assert (outcomes["coverage"], "gate" in outcomes, done.returncode) == ("passed", False, 1)
    rows = [{"id": str(number), "output": "Ankara" if number else None} for number in range(4)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    outcomes, done = run(folder, "--dicast")
    assert outcomes["coverage"] == "failed"
    assert "undecided (exit code 3)\n  coverage 0.75 is below min_coverage 0.95 (the default)" in done.stdout


def test_a_gate_that_does_not_pass_is_a_failing_item(folder):
    (folder / "answers.dicast.yaml").write_text(PIPELINE % 0.9)
    outcomes, done = run(folder, "--dicast")
    assert outcomes["gate"] == "failed"
    assert "gate failed (exit code 1)\n  the mean of check/contains is 0.75, below min_score 0.9" in done.stdout


def test_without_the_option_nothing_is_collected(folder):
    outcomes, done = run(folder, autoload=True)
    assert (outcomes, done.returncode) == ({}, 5)
    assert "dicast:" not in done.stdout


def test_collecting_judges_nothing(folder):
    count_calls(folder)
    _, done = run(folder, "--dicast", "--collect-only", "-q")
    assert "answers.dicast.yaml::row:2" in done.stdout
    assert (asked_ids(folder), (folder / ".dicast").exists()) == ([], False)


@pytest.mark.slow
def test_a_file_is_collected_where_it_is_named_or_fits_the_ini_option(folder):
    (folder / "evals").mkdir()
    text = (folder / "answers.dicast.yaml").read_text().replace("rows.jsonl", "../rows.jsonl")
    (folder / "evals" / "a.yaml").write_text(text)
    assert set(run(folder, "--dicast", "evals/a.yaml")[0]) == {"row:1", "row:2", "row:3", "row:4", "gate"}
    assert run(folder, "--dicast", "evals")[0] == {}
    assert set(run(folder, "--dicast", "-o", "dicast_files=evals/*.yaml", "evals")[0]) == {
        *(f"row:{id_}" for id_ in OUTPUTS),
        "gate",
    }


@pytest.mark.slow
def test_last_failed_judges_only_what_failed(folder):
    count_calls(folder)
    run(folder, "--dicast")
    assert asked_ids(folder) == ["1", "2", "3", "4"]
    written = (folder / "out.csv").read_bytes()
    outcomes, _ = run(folder, "--dicast", "--lf")
    assert outcomes == {"row:2": "failed"}
    assert asked_ids(folder) == ["2"]
    assert (folder / "out.csv").read_bytes() == written, "a part of the subjects has replaced the whole"
    write_rows(folder, OUTPUTS | {"2": "Ankara now"})
    assert run(folder, "--dicast", "--lf")[0] == {"row:2": "passed"}
    assert asked_ids(folder) == ["2"]


def test_the_gate_is_not_asked_about_some_of_the_subjects(folder):
    count_calls(folder)
    outcomes, done = run(folder, "--dicast", "-rs", "-k", "gate or row:2")
    assert outcomes == {"row:2": "failed", "gate": "skipped"}
    assert "the gate is about all subjects, and 1 of them were judged" in done.stdout
    assert asked_ids(folder) == ["2"]
    assert run(folder, "--dicast", "answers.dicast.yaml::gate")[0] == {"gate": "passed"}
    assert asked_ids(folder) == ["1", "2", "3", "4"]


@pytest.mark.slow
def test_some_subjects_are_no_baseline_of_the_pipeline(folder):
    run(folder, "--dicast")
    run(folder, "--dicast", "--lf")
    command = [sys.executable, "-m", "dicast", "run", "answers.dicast.yaml", "--set", "baseline={run: last}", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DICAST_")}
    done = json.loads(subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False).stdout)
    assert (done["baseline"]["name"], done["baseline"]["differs"]) == ("answers", [])


@pytest.mark.slow
def test_workers_of_xdist_share_one_run(folder):
    count_calls(folder)
    outcomes, _ = run(folder, "--dicast", "-n", "2")
    assert set(outcomes.values()) == {"passed", "failed"}
    assert len(outcomes) == 5
    assert sorted(asked_ids(folder)) == ["1", "2", "3", "4"]
    outcomes, _ = run(folder, "--dicast", "-n", "2", "--lf")
    assert outcomes == {"row:2": "failed"}
    assert asked_ids(folder) == ["2"]


@pytest.mark.slow
def test_a_wrong_pipeline_is_told_to_all_workers_and_tried_once(folder):
    (folder / "answers.dicast.yaml").write_text((PIPELINE % 0.5) + "baseline: {run: none}\n")
    _, done = run(folder, "--dicast", "-n", "2")
    assert done.stdout.count("this ledger has no finished run or baseline 'none'") >= 5
    assert done.returncode == 1


def test_a_request_that_is_wrong_is_made_once(folder):
    (folder / "out.csv").mkdir()
    (folder / "conftest.py").write_text(
        "from pathlib import Path\n"
        "import dicast\n"
        "run = dicast.run\n"
        "def counted(*given, **options):\n"
        "    with Path('asked.txt').open('a') as file:\n"
        "        file.write('run\\n')\n"
        "    return run(*given, **options)\n"
        "dicast.run = counted\n"
    )
    outcomes, done = run(folder, "--dicast")
    assert [*outcomes.values()] == ["failed"] * 5
    assert done.stdout.count("out.csv: it is not a regular file") >= 5
    assert asked_ids(folder) == ["run"]


def test_a_line_of_an_output_is_no_command_of_github(folder):
    write_rows(folder, {"1": "Bonn\n::error::not so\n  ::warning::nor this"})
    _, done = run(folder, "--dicast")
    assert "  output: Bonn\n  | ::error::not so\n  |   ::warning::nor this\n" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line.lstrip().startswith("::")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contans]\n", "did you mean 'check/contains'"),
        (PIPELINE % 0.5 + "experiments: {a: {}, b: {}}\n", "this is a suite of 2 experiments"),
    ],
    ids=["wrong", "suite"],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_an_error_of_collection(folder, text, message):
    (folder / "answers.dicast.yaml").write_text(text)
    _, done = run(folder, "--dicast")
    assert message in done.stdout
    assert done.returncode == 2


def test_a_failure_is_no_score_and_a_row_nobody_could_judge_fails(folder):
    rows = [{"id": "1", "output": "Ankara"}, {"id": "2", "output": None}]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    outcomes, done = run(folder, "--dicast")
    assert outcomes == {"row:1": "passed", "row:2": "failed", "gate": "failed"}
    assert "missing_input" in done.stdout
    assert "gate undecided (exit code 3)" in done.stdout


def test_disabled_judges_nothing(folder):
    outcomes, _ = run(folder, "--dicast", DICAST_DISABLED="1")
    assert outcomes == {"gate": "skipped"}
    assert not (folder / ".dicast").exists()


@pytest.mark.slow
def test_names_are_stable_and_of_one_line(folder):
    from dicast import Subject
    from dicast_pytest.collection import item_name

    odd = ["a::b", "a[1]", "line\nline", "x" * 300, "\u202e", "ordinary id", "a:.b", "a(1]", ":y", "::x", ".y"]
    names = [item_name(Subject("row", id_)) for id_ in odd]
    assert len(set(names)) == len(odd)
    assert all("::" not in name and "[" not in name and "\n" not in name and len(name) < 100 for name in names)
    assert names[5] == "row:ordinary id"
    write_rows(folder, dict.fromkeys(odd, "Bonn"))
    first, _ = run(folder, "--dicast")
    again, _ = run(folder, "--dicast", "--lf")
    assert set(again) == {name for name, outcome in first.items() if outcome == "failed"}
    assert len(again) >= len(odd)


def test_text_of_others_does_nothing_to_a_terminal_and_is_valid_xml(folder):
    from xml.etree import ElementTree as ET

    hostile = "\x1b]0;title\x07\x1b[2J\x9b31m \u202ered \x00"
    write_rows(folder, {"1": "Ankara", f"2{hostile}": hostile})
    (folder / "answers.dicast.yaml").write_text(
        (PIPELINE % 0.5).replace("{value: Ankara}", '{as: "city\\e[1m", value: Ankara}')
    )
    outcomes, done = run(folder, "--dicast", "--color=no", "--junitxml=junit.xml")
    assert [*outcomes.values()].count("failed") == 1
    assert [letter for letter in done.stdout if letter != "\n" and not letter.isprintable()] == []
    assert "\\u001b]0;title" in done.stdout
    names = {element.get("name") for element in ET.parse(folder / "junit.xml").iter("property")}
    assert names == {"dicast_metrics", "dicast_city\\u001b[1m"}


@pytest.mark.slow
def test_a_session_is_judged_by_its_turns_also_where_it_alone_is_selected(folder):
    turn = {"type": "turn.completed", "session_id": "s", "payload": {"stop_reason": "end_turn", "tool_call_count": 0}}
    turn["payload"]["signals_extra"] = {"final_response_text": "I cannot help with that request"}
    lines = [{**turn, "turn_id": f"s/{number}", "time": f"2026-01-01T00:00:0{number}Z"} for number in (1, 2)]
    lines.append(
        {
            "type": "session.ended",
            "session_id": "s",
            "time": "2026-01-01T00:00:09Z",
            "payload": {"disposition": "completed"},
        }
    )
    (folder / "trace.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (folder / "answers.dicast.yaml").write_text(
        "name: t\nsource: {traces/events: {path: trace.jsonl, subjects: [turn, session]}}\n"
        "judges: [heuristic/turn, heuristic/session]\ngate: {on: heuristic/session}\n"
    )
    run(folder, "--dicast")
    all_scores = scores(folder)
    run(folder, "--dicast", "-k", "session:s")
    assert scores(folder) == all_scores


def scores(folder):
    command = [sys.executable, "-m", "dicast", "verdicts", "--run", "last", "--kind", "session", "--json"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DICAST_")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    return [verdict["score"] for verdict in json.loads(done.stdout)["verdicts"]]


def test_a_run_of_pytest_that_does_not_use_it_imports_nothing_of_dicast(tmp_path):
    modules = "('dicast', 'dicast_pytest.collection', 'dicast_pytest.pass_rate', 'attrs', 'filelock', 'yaml')"
    (tmp_path / "test_a.py").write_text(
        f"import sys\n\ndef test_a():\n    assert [name for name in {modules} if name in sys.modules] == []\n"
    )
    outcomes, done = run(
        tmp_path, "-p", "no:hypothesispytest", "-p", "no:schemathesis", "-p", "no:xdist", autoload=True
    )
    assert outcomes == {"test_a": "passed"}, done.stdout


CRITERIA = """
import json, sys
row = json.load(sys.stdin)
print(json.dumps({"responses": {name: {"content": json.dumps({"score": score})} for name, score in row["scores"].items()}}))
"""


def test_a_row_that_a_criterion_fails_is_a_failing_item(tmp_path):
    rows = {"1": {"kind": 0.9, "clear": 0.7}, "2": {"kind": 0.9, "clear": 0.2}}
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps({"id": id_, "scores": rows[id_]}) for id_ in rows))
    (tmp_path / "ask.py").write_text(CRITERIA)
    (tmp_path / "tones.dicast.yaml").write_text(
        f"name: tones\nsource: {{rows/jsonl: {{path: rows.jsonl}}}}\n"
        f"task: {{task/command: {{command: [{json.dumps(sys.executable)}, ask.py]}}}}\n"
        "extractors: [score_extractor/scores: {threshold: 0.5}]\ngate: {on: kind, min_score: 0.5}\n"
    )
    outcomes, done = run(tmp_path, "--dicast")
    assert outcomes == {"row:1": "passed", "row:2": "failed", "gate": "passed"}
    assert "clear: 0.2000, flagged as failing" in done.stdout
