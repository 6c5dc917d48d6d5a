"""A column that fields map keeps its own name in templates, records and tables, and is in no digest."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import attrs
import pytest

import dicast
from dicast import Score, Subject, columns, metric
from dicast.testing import run_pipeline

ROWS = [{"qid": "1", "question": "2 + 2?", "answer": "4", "gold": "four", "meta": {"lang": "en", "level": 1}}]
FIELDS = {"id": "qid", "input": "question", "output": "answer", "reference": "gold"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))


def pipeline(**sections: object) -> str:
    return json.dumps({"source": {"rows/jsonl": {"path": "rows.jsonl", "fields": FIELDS}}, **sections})


def test_the_row_has_its_columns_by_both_names():
    subject = Subject(
        "row", "1", "q", "a", context={"answer": "of the context", "x": 1}, columns={"question": "q", "answer": "a"}
    )
    assert columns(subject) == {"id": "1", "input": "q", "output": "a", "answer": "a", "x": 1, "question": "q"}


def test_a_part_comes_before_a_column_of_its_name():
    subject = Subject("row", "1", "the question", "the answer", columns={"output": "the question"})
    assert columns(subject)["output"] == "the answer"


def test_subjects_are_equal_whatever_their_columns_are_called():
    assert Subject("row", "1", "q", columns={"question": "q"}) == Subject("row", "1", "q")


def test_values_of_checks_know_the_column(here):
    done = run_pipeline(
        pipeline(
            metrics=[
                {"check/equals": {"value": "{{ gold }}", "negate": True}},
                {"check/contains": {"value": "{{ answer }}"}},
            ]
        )
    )
    assert done.document["score"]["mean"] == 1.0


def test_a_nested_column_is_whole_under_its_name(here):
    fields = {**FIELDS, "input": "meta.lang"}
    source = {"rows/jsonl": {"path": "rows.jsonl", "fields": fields}}
    checks = [{"check/one_of": {"values": ["{{ meta.lang }}x", "{{ meta.level }}", "4"]}}]
    done = run_pipeline(json.dumps({"source": source, "metrics": checks}))
    assert done.document["scored"] == 1
    assert done.of("subject.read")[0].payload["content"]["context"] == {"meta": {"level": 1}, "question": "2 + 2?"}


def test_the_digest_and_the_context_stay_without_the_column(here):
    read = run_pipeline(pipeline(metrics=["proxy/format"])).of("subject.read")[0].payload
    Path("rows.jsonl").write_text(
        json.dumps({"id": "1", "input": "2 + 2?", "output": "4", "reference": "four", "meta": ROWS[0]["meta"]})
    )
    plain = run_pipeline('{"source": {"rows/jsonl": {"path": "rows.jsonl"}}, "metrics": ["proxy/format"]}')
    assert plain.of("subject.read")[0].payload["digest"] == read["digest"]
    assert read["content"]["context"] == {"meta": ROWS[0]["meta"]}
    assert read["columns"] == {"qid": "id", "question": "input", "answer": "output", "gold": "reference"}
    assert "columns" not in plain.of("subject.read")[0].payload


def test_records_and_tables_have_the_column(here):
    @attrs.frozen
    class Answer:
        async def produce(self, subject: Subject) -> Subject:
            return attrs.evolve(subject, output="5")

    sinks = [{"csv/rows": {"path": "out.csv"}}]
    done = run_pipeline(pipeline(task="answer", metrics=["diff/match"], sinks=sinks), components={"answer": Answer()})
    row = done.of("record.completed")[0].payload["row"]
    assert (row["question"], row["input"], row["answer"], row["gold"]) == ("2 + 2?", "2 + 2?", "4", "four")
    (written,) = csv.DictReader(Path("out.csv").read_text().splitlines())
    assert written["question"] == "2 + 2?"
    assert written["gold"] == "four"


def test_a_task_that_makes_a_subject_anew_loses_no_column(here):
    @attrs.frozen
    class Anew:
        async def produce(self, subject: Subject) -> Subject:
            return Subject(subject.kind, subject.id, subject.input, "four", subject.reference)

    checks = [{"check/equals": {"value": "{{ gold }}"}}]
    done = run_pipeline(pipeline(task="anew", metrics=checks), components={"anew": Anew()})
    assert done.document["score"]["mean"] == 1.0


def test_a_function_as_task_takes_the_column_by_its_name(here):
    def answer(question: str) -> str:
        return str(eval(question.rstrip("?")))  # noqa: S307  # of this test alone

    sections = json.loads(pipeline(metrics=["diff/match"]))
    run = dicast.run(sections, task=answer)
    assert run.read(("record.completed",), lambda events: next(events).payload["response"]["content"]) == "4"


def test_rows_of_a_program_keep_their_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @metric(tier="truth")
    def by_name(subject: Subject) -> Score:
        return Score(float(columns(subject)["question"] == subject.input))

    done = dicast.evaluate(
        [{"question": "q", "answer": "a"}], [by_name()], fields={"input": "question", "output": "answer"}
    )
    assert done.score["mean"] == 1.0


def test_what_is_judged_again_from_the_ledger_has_its_columns(here, tmp_path):
    ledger = {"ledger/sqlite": {"path": str(tmp_path / "runs.db")}}
    run_pipeline(pipeline(metrics=["proxy/format"], ledger=ledger))
    source = {"traces/recorded": {"subject": "row"}}
    again = json.dumps(
        {"source": source, "metrics": [{"check/equals": {"value": "{{ gold }}", "negate": True}}], "ledger": ledger}
    )
    assert run_pipeline(again).document["score"]["mean"] == 1.0
