"""Every surface names every label of a run; without a gate no surface reports a pass."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import attrs
import pytest

import dicast
from dicast import Failure, Judgment, Subject
from dicast._kernel.cli import main

LABELS = ("metrics", "helpful", "polite")
HEADS = ("EXPERIMENT", "SCORED", "FAILED JUDGMENTS")
SINKS = [
    {"report/html": {"path": "run.html"}},
    {"report/markdown": {"path": "run.md"}},
    {"junit/xml": {"path": "run.xml"}},
    {"report/badge": {"as": "gate-badge", "path": "gate.svg"}},
    {"report/badge": {"as": "score-badge", "path": "score.svg", "on": "score"}},
    {"github/summary": {"path": "summary.md", "annotations_path": "annotations.txt"}},
]


@attrs.frozen
class Liking:
    """A judge whose score is a column of the row, and that fails where the column is empty."""

    column: str
    name = "liking"
    judge_kind = "llm"

    def judge(self, subject, children):
        score = subject.context[self.column]
        return Failure("judge_output_invalid", "no reply") if score is None else Judgment(score, 0.9, "llm")


def run(**sections):
    rows = [{"helpful": None if number == 3 else 0.3 + 0.03 * number, "polite": 0.8} for number in range(24)]
    subjects = [Subject("row", f"q{number:02}", "?", "w w w", "w w w", row) for number, row in enumerate(rows)]
    pipeline = {
        "name": "talks",
        "metrics": [{"diff/similarity": {"as": "near"}}, {"proxy/length": {"as": "short", "max": 50}}],
        "judges": [{name: {"as": name}} for name in ("helpful", "polite")],
        "define": {name: Liking(name) for name in ("helpful", "polite")},
        "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
        "sinks": SINKS,
        **sections,
    }
    return dicast.run(pipeline, subjects=subjects)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def printed(capfd, *command):
    capfd.readouterr()
    assert main([*command, "--ledger", "ledger.db"]) == 0
    return capfd.readouterr().out


def surfaces(capfd):
    page = re.search(r'id="dicast-report"[^>]*>(.*?)</script>', Path("run.html").read_text(), re.DOTALL)[1]
    texts = {name: Path(name).read_text() for name in ("run.md", "run.xml", "gate.svg", "score.svg", "summary.md")}
    return {
        "show": printed(capfd, "show", "last"),
        "runs": printed(capfd, "runs"),
        "runs --json": printed(capfd, "runs", "--json"),
        "run.html": page,
        **texts,
    }


def test_every_label_is_named_everywhere(folder, capfd):
    run()
    result = surfaces(capfd)
    badges = {name: result.pop(name) for name in ("gate.svg", "score.svg")}
    for name, text in result.items():
        assert {label for label in LABELS if label not in text} == set(), name
    assert "<title>talks: no gate</title>" in badges["gate.svg"]
    assert "<title>talks: 3 labels</title>" in badges["score.svg"]


def test_without_a_gate_nothing_says_passed(folder, capfd):
    done = run()
    assert (done.gate, done.exit_code) == (None, 0)
    for name, text in surfaces(capfd).items():
        message = text if name not in ("run.html", "runs --json") else ""  # keys of JSON are no sentences
        assert re.findall(r".*\bpassed\b.*", message) == [], name
        assert "gate: passed" not in text
    assert "gate: none" in printed(capfd, "show", "last")
    assert json.loads(printed(capfd, "runs", "--json"))["runs"][0]["gate"] is None


def test_with_a_gate_its_label_is_the_scores_and_the_others_are_shown_too(folder, capfd):
    done = run(gate={"on": "helpful", "min_pass_rate": 0.5, "min_coverage": 0.9})
    (listed,) = json.loads(printed(capfd, "runs", "--json"))["runs"]
    assert (listed["score_label"], listed["gate"]) == ("helpful", "passed")
    assert listed["score"] == listed["labels"]["helpful"]["mean"] == done.labels["helpful"]["mean"]
    assert list(listed["labels"]) == list(LABELS)
    rows = printed(capfd, "runs").splitlines()
    assert [row.split()[0] for row in rows[2:]] == list(LABELS)
    assert max(map(len, rows)) <= 80


def test_a_failed_judgment_is_shown_as_failed_and_not_as_not_passed(folder, capfd):
    run(gate={"on": "helpful", "min_pass_rate": 0.1, "min_coverage": 0.9})
    suites = {suite.get("name"): suite for suite in ET.parse("run.xml").getroot()}
    assert [suites["helpful"].get(name) for name in ("errors", "skipped", "failures")] == ["0", "7", "0"]
    (case,) = [item for item in suites["helpful"] if item.get("name") == "q03"]
    (result,) = [child for child in case if child.tag != "properties"]
    assert (result.tag, result.get("message", "")[:12]) == ("skipped", "not judged: ")  # the gate passed
    for name in ("run.md", "summary.md"):
        assert "### 6 did not pass, 1 without a verdict" in Path(name).read_text()
    assert "row q03, helpful: a model's reply is no verdict: no reply" in Path("annotations.txt").read_text()


def test_the_table_of_a_suite_has_a_column_for_each_label(folder, capfd):
    row = {"id": "1", "input": "q", "output": "w w w", "reference": "w w w"}
    Path("rows.jsonl").write_text(json.dumps(row) + "\n")
    suite = {
        "name": "two",
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": ["proxy/format"],
        "judges": [{"heuristic/turn": {"as": "turn"}}],
        "experiments": {"a": {}, "b": {}},
    }
    Path("suite.yaml").write_text(json.dumps(suite))
    assert main(["run", "suite.yaml"]) in (0, 3)
    heads = [line for line in capfd.readouterr().out.splitlines() if line.startswith("EXPERIMENT")]
    assert re.split(r"\s{2,}", heads[0])[:5] == [*HEADS, "proxy/format", "turn"]


def test_the_table_of_a_suite_has_the_labels_that_fit_and_counts_the_others(folder, capfd):
    Path("rows.jsonl").write_text(json.dumps({"id": "1", "output": "w"}) + "\n")
    suite = {
        "name": "many",
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": [{"check/contains": {"as": f"m{number}", "value": "w"}} for number in range(9)],
        "gate": [{"on": "metrics", "min_score": 0.1}, {"on": "m7", "min_score": 0.1}],
        "experiments": {"a": {}, "b": {}},
    }
    Path("suite.yaml").write_text(json.dumps(suite))
    main(["run", "suite.yaml"])
    lines = capfd.readouterr().out.splitlines()
    (heads,) = [re.split(r"\s{2,}", line) for line in lines if line.startswith("EXPERIMENT")]
    assert heads == [*HEADS, "metrics", "m7", "m0", "m1", "USD"]
    assert "+ 6 more columns (--full)" in lines
    main(["run", "suite.yaml", "--full"])
    assert " m8 " in capfd.readouterr().out
