"""Subjects of a pipeline, selected and judged by a program; and an appended item of a list."""

from __future__ import annotations

import json

import pytest

import dicast
from dicast import ConfigError, DataError
from dicast._kernel.cli import main

PIPELINE = "name: a\nsource: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/contains: {value: b}]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": str(number), "output": text} for number, text in enumerate(("abc", "xyz", "b"))]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "a.yaml").write_text(PIPELINE)
    return tmp_path


def test_subjects_are_listed_and_nothing_is_judged_or_written(folder):
    result = dicast.subjects("a.yaml")
    assert [(item.id, item.output) for item in result] == [("0", "abc"), ("1", "xyz"), ("2", "b")]
    assert sorted(path.name for path in folder.iterdir()) == ["a.yaml", "rows.jsonl"]
    run = dicast.run("a.yaml", subjects=[item for item in result if len(item.output) == 3])
    assert (run.subjects, run.score["mean"]) == (2, 0.5)


def test_subjects_of_wrong_data_are_refused_as_a_run_refuses_them(folder):
    (folder / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n{"id": "1", "output": "b"}\nnot json\n')
    with pytest.raises(DataError) as raised:
        dicast.subjects("a.yaml")
    assert len(raised.value.problems) == 2


def test_a_suite_or_a_source_that_waits_has_no_list(folder):
    (folder / "a.yaml").write_text(PIPELINE + "experiments: {a: {}, b: {}}\n")
    with pytest.raises(ConfigError, match="suite of 2 experiments"):
        dicast.subjects("a.yaml")
    with pytest.raises(ConfigError, match="needs a source"):
        dicast.subjects({"metrics": ["proxy/format"]})


def test_a_runs_events_are_read_by_type(folder):
    run = dicast.run("a.yaml")
    assert run.read(("subject.read",), lambda events: [event.subject_id for event in events]) == ["0", "1", "2"]
    every = run.read((), lambda events: [event.type for event in events])
    assert (every[0], every[-1]) == ("run.started", "run.completed")


def test_an_item_more_is_put_behind_those_of_a_list(folder):
    (folder / "a.yaml").write_text(PIPELINE + "sinks: [csv/rows: {path: first.csv}]\n")
    added = ["sinks.+={csv/rows: {as: second, path: second.csv}}", "sinks.+={csv/rows: {as: third, path: third.csv}}"]
    run = dicast.run("a.yaml", overrides=added)
    assert [*run.sinks] == ["csv/rows", "second", "third"]
    assert all((folder / f"{name}.csv").is_file() for name in ("first", "second", "third"))


def test_an_item_is_put_into_a_list_that_is_not_there_yet(folder):
    assert [*dicast.run("a.yaml", overrides=["sinks.+={csv/rows: {path: a.csv}}"]).sinks] == ["csv/rows"]
    added = {"sinks.+": {"csv/rows": {"path": "b.csv"}}}
    assert [*dicast.run("a.yaml", overrides=added).sinks] == ["csv/rows"]


def test_an_item_more_of_what_is_no_list_is_refused(folder):
    with pytest.raises(ConfigError, match="expected mapping"):
        dicast.run("a.yaml", overrides=["scoring.+=1"])


def test_a_baseline_is_taken_away(folder):
    (folder / "a.yaml").write_text(PIPELINE + "baseline: {run: none}\n")
    with pytest.raises(ConfigError, match="'none'"):
        dicast.run("a.yaml")
    assert dicast.run("a.yaml", overrides=["baseline=null"]).baseline is None


def test_several_files_are_checked_and_all_that_is_wrong_is_said(folder, capfd):
    (folder / "b.yaml").write_text(PIPELINE.replace("value", "valeu"))
    (folder / "c.yaml").write_text(PIPELINE.replace("rows/jsonl", "rows/josnl"))
    assert main(["check", "a.yaml", "b.yaml", "c.yaml", "--json"]) == 2
    document = json.loads(capfd.readouterr().out)
    assert (document["ok"], {error["file"] for error in document["errors"]}) == (False, {"b.yaml", "c.yaml"})
    assert main(["check", "a.yaml", "b.yaml"]) == 2
    out, err = capfd.readouterr()
    assert out == "a.yaml: ok\n"
    assert "did you mean 'value'?" in err
    assert main(["check", "a.yaml", "a.yaml"]) == 0


def test_a_failed_record_fails_where_a_program_judges_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text(
        '{"id": "1", "output": null, "error": "too late"}\n{"id": "2", "output": "x"}\n'
    )
    pipeline = {"source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": ["proxy/format"]}
    failed, good = dicast.subjects(pipeline, dues=True)
    assert (failed.subject.id, failed.failure.message, good.failure) == ("1", "too late", None)
    assert dicast.run(pipeline, subjects=[failed]).failures == {"source_error": 1}
    assert dicast.subjects(pipeline) == [failed.subject, good.subject]
