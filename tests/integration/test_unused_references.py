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


def test_a_sample_does_not_report_data_about_subjects_that_it_left_out(tmp_path):
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    names = [f"s{number}" for number in range(10)]
    (tmp_path / "chats.jsonl").write_text(
        "".join(json.dumps({"id": id_, "messages": messages}) + "\n" for id_ in names)
    )
    lines = [{"id": id_, "calls": []} for id_ in (*names, "s3/1", "mistyped")]
    (tmp_path / "calls.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "p.yaml").write_text("""
source: {traces/sample: {size: 3, source: {traces/messages: {path: chats.jsonl, id: "{{ id }}"}}}}
metrics: [trajectory/match: {reference: calls.jsonl}]
""")
    (warning,) = [item for item in dicast.run("p.yaml").warnings if item["kind"] == "unused_references"]
    assert (warning["count"], warning["ids"]) == (1, ["mistyped"])
