"""Data of a metric about subjects that a run does not have."""

from __future__ import annotations

import json

import pytest

import dicast
from dicast import Subject
from dicast._kernel.cli import main

PIPELINE = """
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [trajectory/match: {reference: calls.jsonl}]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": id_, "output": '["t"]'} for id_ in "ab"]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps({"id": id_, "calls": ["t"]}) + "\n" for id_ in "abx"))
    (tmp_path / "p.yaml").write_text(PIPELINE)


def counts(warnings):
    return [warning["count"] for warning in warnings if warning["kind"] == "unused_references"]


@pytest.mark.parametrize(("options", "expected"), [([], [1]), (["--limit", "1"], [])])
def test_only_a_run_of_all_subjects_reports_unused_data(capsys, options, expected):
    main(["run", "p.yaml", *options, "--json"])
    assert counts(json.loads(capsys.readouterr().out)["warnings"]) == expected


def test_subjects_of_a_program_may_be_some_of_the_subjects():
    run = dicast.run("p.yaml", subjects=[Subject("row", "a", output='["t"]')])
    assert counts(run.warnings) == []
    assert counts(dicast.run("p.yaml").warnings) == [1]
