"""``dicast ci FILE --merge``: a run of shards has the comment and the reports of the whole run."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from importlib.metadata import entry_points

import pytest
from click import UsageError
from click.testing import CliRunner

from dicast import ConfigError
from dicast_github.command import ci

MAIN = """
name: main
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [check/contains: {as: city, value: Ankara}]
"""
GATED = MAIN.replace("main", "answers") + "gate: {baseline: main.json, max_drop: 0.02}\n"


def write_rows(folder, passing):
    rows = [{"id": f"r{n}", "output": "Ankara" if n <= passing else "Bonn"} for n in range(1, 41)]
    rows += [{"id": "empty"}]
    (folder / "evals" / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))


def judge(*arguments):
    result = CliRunner().invoke(ci, arguments, catch_exceptions=False, standalone_mode=False)
    return result.return_value


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a baseline file and a worse pipeline, whose shards were judged."""
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITLAB_CI", "DICAST_LEDGER"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "evals").mkdir()
    (tmp_path / "evals" / "main.yaml").write_text(MAIN)
    (tmp_path / "evals" / "answers.yaml").write_text(GATED)
    write_rows(tmp_path, 38)
    judge("evals/main.yaml")
    (command,) = entry_points(group="console_scripts", name="dicast")
    assert command.load()(["baseline", "save", "main", "--file", "evals/main.json"]) == 0
    write_rows(tmp_path, 20)
    for number in (1, 2, 3):
        judge("evals/answers.yaml", "--shard", f"{number}/3", "--ledger", f"shard-{number}.db")
    return tmp_path


SHARDS = ("--merge", "shard-1.db", "shard-2.db", "shard-3.db", "--ledger", "merged.db")


def without_run(text):
    """Return *text* without ids and times of runs."""
    return re.sub(r"01[0-9A-Z]{24}|\d{4}-\d\d-\d\dT[\d:.]+| time=\"[\d.]+\"", "", text)


def test_the_merged_run_has_the_comment_and_the_test_report_of_the_whole_run(folder):
    reports = "--report-url", "https://example.org/r"
    whole = judge("evals/answers.yaml", *reports, "--comment", "whole.md", "--junit", "whole.xml")
    merged = judge("evals/answers.yaml", *SHARDS, *reports, "--comment", "merged.md", "--junit", "merged.xml")
    assert merged == whole == 1
    text = (folder / "merged.md").read_text()
    assert "| `city` | **worse** | -0.4500 |" in text
    assert "18 newly failing: [`r21`](https://example.org/r#row=row%2Fr21)" in text
    assert without_run(text) == without_run((folder / "whole.md").read_text())
    assert without_run((folder / "merged.xml").read_text()) == without_run((folder / "whole.xml").read_text())
    assert ET.parse("merged.xml").getroot().find("testsuite[@name='run']/testcase/failure") is not None


def test_the_jobs_summary_and_the_annotations_are_of_the_merged_run(folder, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(folder / "step.md"))
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder))
    result = CliRunner().invoke(ci, ["evals/answers.yaml", *SHARDS], catch_exceptions=False, standalone_mode=False)
    assert (folder / "step.md").read_text().startswith("## `answers`: failed")
    assert result.output.startswith("::group::dicast merge evals/answers.yaml\n")
    assert "::error file=evals/answers.yaml,line=5,title=dicast answers::gate failed: " in result.output


def test_shards_that_cannot_be_merged_are_in_the_comment(folder):
    with pytest.raises(ConfigError, match="shard 3/3"):
        judge("evals/answers.yaml", "--merge", "shard-1.db", "shard-2.db", "--comment", "c.md")
    text = (folder / "c.md").read_text()
    assert "shard 3/3 is missing" in text
    assert "### dicast: `evals/answers.yaml`: not merged" in text
    assert "was judged" not in text


def test_the_file_of_a_merge_is_the_file_of_the_shards(folder):
    (folder / "evals" / "no-gate.yaml").write_text(GATED.partition("gate:")[0])
    for file in ("evals/no-gate.yaml", "evals/main.yaml"):
        with pytest.raises(ConfigError) as caught:
            judge(file, *SHARDS)
        (problem,) = caught.value.problems
        assert (problem.file, "the shards judged evals/answers.yaml" in problem.message) == (file, True)
    assert judge(str(folder / "evals" / "answers.yaml"), *SHARDS) == 1


def test_a_shard_has_no_comment_and_no_test_report(folder, monkeypatch):
    for option in ("--comment", "--junit"):
        with pytest.raises(UsageError, match="give them to dicast ci FILE --merge"):
            judge("evals/answers.yaml", "--shard", "1/3", option, "report")
    monkeypatch.setenv("GITLAB_CI", "true")
    assert judge("evals/answers.yaml", "--shard=1/3", "--ledger", "other.db") == 0
    assert not [*folder.glob("*.xml")]
