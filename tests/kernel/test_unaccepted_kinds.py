"""Judges and metrics that accept no kind of subject of the source."""

from __future__ import annotations

import json

import pytest

from dicast._kernel.cli import main

TEXT = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: a}]\n"
WARNING = "turns judges subjects of kind turn, and rows/jsonl yields row, so it judges nothing; use a judge"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n')
    (tmp_path / "a.yaml").write_text(TEXT + "judges: [heuristic/turn: {as: turns}]\n")
    return tmp_path / "a.yaml"


def test_a_judge_without_a_subject_is_a_warning_of_check_and_run(file, capsys):
    assert main(["check", "a.yaml"]) == 0
    assert f"warning: {WARNING}" in capsys.readouterr().out
    assert main(["run", "a.yaml", "--json"]) == 0
    (warning,) = json.loads(capsys.readouterr().out)["warnings"]
    assert warning["kind"] == "unaccepted_kind"
    assert warning["message"].startswith(WARNING)


def test_a_judge_of_the_kind_of_the_source_has_no_warning(file, capsys):
    file.write_text(TEXT)
    assert main(["check", "a.yaml"]) == 0
    assert "warning" not in capsys.readouterr().out
