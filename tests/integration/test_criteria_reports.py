"""Criteria of a task in JUnit, Markdown, GitHub's summary, annotations and a badge: each is a label, with the numbers of ``run --json``."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import attrs
import pytest

from dicast import Subject
from dicast.reporting import OutcomeReader, criteria
from dicast.testing import run_pipeline

TEXT = """
name: tones
extractors: [ratings]
aggregates: [stats/score_stats]
gate: {on: kind, min_score: 0.9}
sinks:
  - junit/xml: {path: r.xml}
  - report/markdown: {path: r.md}
  - github/summary: {path: s.md, annotations_path: ann.txt}
  - report/badge: {path: r.svg, on: clear}
"""
ROWS = {"r1": (0.7, 0.7), "r2": (0.1, 0.9), "r3": (0.9, 0.2), "r4": (0.9, None)}


@attrs.frozen
class Ratings:
    """Two ratings of a row, and whether they are good ones; a rating that is not there is neither."""

    flag: bool = True
    writes = ("scores.kind", "scores.clear", "score_flags.kind", "score_flags.clear")

    def extract(self, record):
        scores = dict(zip(("kind", "clear"), ROWS[record["row"]["id"]], strict=True))
        flags = {name: None if score is None else score >= 0.5 for name, score in scores.items()}
        return {"scores": scores, **({"score_flags": flags} if self.flag else {})}


def finished(folder, monkeypatch, flag=True):
    monkeypatch.chdir(folder)
    subjects = [Subject("row", id_, output=id_) for id_ in ROWS]
    return run_pipeline(TEXT, subjects=subjects, components={"ratings": Ratings(flag)})


@pytest.fixture
def made(tmp_path, monkeypatch):
    """The folder with the written files, and the run."""
    return tmp_path, finished(tmp_path, monkeypatch)


def properties(element):
    return {item.get("name"): item.get("value") for item in element.findall("properties/property")}


def test_junit_has_a_suite_for_each_criterion_and_no_score_that_no_document_has(made):
    folder, done = made
    suites = {suite.get("name"): suite for suite in ET.parse(folder / "r.xml").getroot()}
    assert [*suites] == ["run", "record", "kind", "clear"]
    assert not any("score" in properties(case) for case in suites["record"].findall("testcase"))
    results = {
        (label, case.get("name")): [entry.tag for entry in case if entry.tag != "properties"]
        for label, suite in suites.items()
        for case in suite.findall("testcase")
    }
    assert {key for key, tags in results.items() if tags == ["failure"]} == {
        ("run", "gate"),
        ("kind", "r2"),
        ("clear", "r3"),
    }
    assert results["clear", "r4"] == ["skipped"]
    failure = suites["kind"].find("testcase[@name='r2']/failure")
    assert failure.get("message") == "0.1000, flagged as failing"
    assert properties(suites["kind"].find("testcase[@name='r1']")) == {"score": "0.7"}
    told = done.document["aggregates"]["stats/score_stats"]["criteria"]["clear"]
    suite = properties(suites["clear"])
    assert (float(suite["mean"]), float(suite["pass_rate"])) == (told["mean"], told["pass_rate"])
    gate = next(entry["value"] for entry in done.document["gate"]["clauses"] if entry["rule"] == "min_score")
    assert float(properties(suites["kind"])["mean"]) == gate


@pytest.mark.parametrize("file", ["r.md", "s.md"])
def test_markdown_and_the_summary_list_criteria_and_the_rows_that_did_not_pass(made, file):
    folder, _ = made
    text = (folder / file).read_text()
    (kind,) = [line for line in text.splitlines() if line.startswith("| `kind` | 0.6500")]
    assert "| 0.7500 | 4 of 4 |" in kind
    assert "### 2 did not pass, 1 without a verdict" in text
    assert "| `row` `r2` | `kind` | 0.1000 | - | - |" in text
    assert "| `row` `r4` | `clear` | - | - | skipped: `the record has no score of it` |" in text


def test_rows_that_a_criterion_fails_are_annotated_and_a_badge_may_show_its_mean(made):
    folder, _ = made
    lines = (folder / "ann.txt").read_text().splitlines()
    assert [line.rpartition("::")[2] for line in lines[1:]] == [
        "row r2, kind: 0.1000, flagged as failing",
        "row r3, clear: 0.2000, flagged as failing",
        "row r4, clear: skipped: the record has no score of it",
    ]
    assert "<title>tones: 0.6000</title>" in (folder / "r.svg").read_text()


def test_without_flags_no_row_passes_or_fails(tmp_path, monkeypatch):
    done, reader = finished(tmp_path, monkeypatch, flag=False), OutcomeReader()
    result = [*reader.take(done.events), *reader.end()]
    assert reader.labels == reader.counted
    assert set(reader.labels) == {"record", "kind", "clear"}
    assert [item.outcomes["kind"].passed for item in result] == [None] * 4
    told = criteria(done.document)
    assert told["kind"] == {"mean": pytest.approx(0.65), "scored": 4, "total": 4}  # nobody says who passes
    assert [item.worst(reader.counted) is None for item in result] == [True, True, True, False]
