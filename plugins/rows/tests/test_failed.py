"""Records with a recorded failure are failed subjects; a record in a wrong format refuses the file."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from dicast import ConfigError, DataError, Due, ReadCounts, Subject
from dicast.testing import run_pipeline
from dicast_rows import Csv, Json, Jsonl, Yaml
from dicast_rows.fields import Column

OPENAI = {"id": "custom_id", "output": "response.body.choices.0.message.content"}
GEMINI = {"id": "custom_id", "output": "response.candidates.0.content.parts.0.text"}
ANTHROPIC = {"id": "custom_id", "output": "result.message.content.0.text"}


def answer(text: str | None) -> dict[str, object]:
    return {
        "status_code": 200,
        "body": {"choices": [{"message": {"role": "assistant", "content": text}}], "error": None},
    }


def jsonl(folder: Path, *rows: object, **options: object) -> Jsonl:
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join((row if isinstance(row, bytes) else orjson.dumps(row)) + b"\n" for row in rows))
    return Jsonl(path, **options)


def failures(source: Jsonl | Json | Csv | Yaml) -> dict[str, str]:
    source.check()
    subjects = [due for due in source.subjects() if isinstance(due, Due)]
    assert {due.failure.kind for due in subjects} <= {"source_error"}
    return {due.subject.id: due.failure.message for due in subjects}


@pytest.mark.parametrize(
    ("fields", "failed", "message"),
    [
        (
            OPENAI,
            {"response": None, "error": {"code": "batch_expired", "message": "too late"}},
            "batch_expired: too late",
        ),
        (OPENAI, {"response": None, "error": "too late"}, "too late"),
        (
            OPENAI,
            {
                "response": {"status_code": 429, "body": {"error": {"message": "slow down", "type": "limit"}}},
                "error": None,
            },
            "response.status_code is 429: limit: slow down",
        ),
        (OPENAI, {"response": {"status_code": 500, "body": {}}, "error": None}, "response.status_code is 500"),
        (OPENAI, {"error": {"code": 500}}, '{"code":500}'),
        (
            {"id": "custom_id", "output": "response.body"},
            {"response": {"status_code": 400, "body": {"error": {"message": "bad"}}}},
            "response.status_code is 400: bad",
        ),
        (
            {"id": "custom_id", "output": "response.body.output.0.content.0.text"},
            {"response": {"status_code": 200, "body": {"status": "incomplete", "output": []}}, "error": None},
            "response.body.status is 'incomplete'",
        ),
        (ANTHROPIC, {"result": {"type": "errored", "error": {"type": "api_error", "message": "x"}}}, "api_error: x"),
        (
            ANTHROPIC,
            {"result": {"type": "errored", "error": {"type": "error", "error": {"type": "invalid", "message": "y"}}}},
            "invalid: y",
        ),
        (ANTHROPIC, {"result": {"type": "expired"}}, "result.type is 'expired'"),
        ({"id": "custom_id", "output": "response.output"}, {"response": {"error": "API error: 500"}}, "API error: 500"),
        (GEMINI, {"response": {"promptFeedback": {"blockReason": "SAFETY"}}}, "response was blocked: SAFETY"),
        (
            GEMINI,
            {"response": {"candidates": [{"finishReason": "SAFETY", "index": 0}]}},
            f"response.candidates.0.finishReason is 'SAFETY', and {GEMINI['output']!r} is not there",
        ),
        (
            OPENAI,
            {
                "response": {
                    "status_code": 200,
                    "body": {"choices": [{"finish_reason": "content_filter", "message": {}}]},
                }
            },
            f"response.body.choices.0.finish_reason is 'content_filter', and {OPENAI['output']!r} is not there",
        ),
        ({"id": "custom_id"}, {"output": None, "level": "ERROR", "statusMessage": "timed out"}, "timed out"),
        (
            {"id": "custom_id", "output": "outputs.answer"},
            {"outputs": None, "error": "TimeoutError()"},
            "TimeoutError()",
        ),
        ({"id": "custom_id", "output": "response.output"}, {"status": "ERROR", "response": None}, "status is 'ERROR'"),
        ({"id": "custom_id", "output": "output"}, {"error": "timeout"}, "timeout"),
        ({"id": "custom_id"}, {"output": None, "error": "timeout"}, "timeout"),
        ({"id": "custom_id"}, {"output": "", "error": {"errorCode": 400, "errorMessage": "no"}}, "400: no"),
        ({"id": "custom_id", "error": "state.why"}, {"output": "a", "state": {"why": "stopped"}}, "stopped"),
        ({"id": "custom_id", "error": "failed"}, {"output": "a", "failed": True}, "the record is marked as failed"),
    ],
)
def test_a_record_with_an_error_is_a_failed_subject(tmp_path, fields, failed, message):
    good = {"response": {**answer("Hello."), "output": "a"}, "result": {"message": {"content": [{"text": "a"}]}}}
    row = {**good, "output": "a", "custom_id": "1", "error": None}
    row["response"]["body"]["output"] = [{"content": [{"text": "a"}]}]
    row["response"]["candidates"] = [{"content": {"parts": [{"text": "a"}]}}]
    row["outputs"] = {"answer": "a"}
    assert failures(jsonl(tmp_path, row, {"custom_id": "2", **failed}, fields=fields)) == {"2": message}


@pytest.mark.parametrize(
    "row",
    [
        {"output": "a", "error": "a word that the task is about"},
        {"input": "TypeError", "error": "TypeError"},
        {"output": None, "error": 0.25},
        {"output": None, "error": False},
        {"output": None, "error": {}},
        {"output": None, "error": "None"},
        {"output": {"status_code": 404}},
        {"input": "q", "level": "ERROR"},
        {"output": "a", "status": "ERROR"},
        {"output": None, "status": "failed"},
    ],
)
def test_a_column_named_error_alone_is_data(tmp_path, row):
    assert failures(jsonl(tmp_path, {"id": "1", **row}, {"id": "2", "output": "a"})) == {}


def test_a_reply_without_text_is_no_failed_record(tmp_path):
    rows = {"custom_id": "1", "response": answer("a")}, {"custom_id": "2", "response": answer(None)}
    rows[1]["response"]["body"]["choices"][0]["finish_reason"] = "tool_calls"
    assert failures(jsonl(tmp_path, *rows, fields=OPENAI)) == {}  # its output is null: missing_input


def test_an_error_that_is_the_input_is_data(tmp_path):
    fields = {"input": "error", "output": "fix"}
    assert (
        failures(jsonl(tmp_path, {"error": "TypeError", "fix": None}, {"error": "", "fix": "a"}, fields=fields)) == {}
    )


def test_a_failed_record_keeps_what_is_known_of_it(tmp_path):
    fields = {**OPENAI, "input": "question"}
    row = {"custom_id": "7", "question": "why?", "response": None, "error": {"message": "no"}, "lang": "en"}
    (due,) = jsonl(tmp_path, row, fields=fields).subjects()
    expected = {"response": None, "error": {"message": "no"}, "lang": "en"}
    assert due.subject == Subject("row", "7", "why?", None, None, expected)


def test_a_failed_record_without_its_id_refuses_the_file(tmp_path):
    with pytest.raises(DataError, match="no 'custom_id'"):
        jsonl(tmp_path, {"response": None, "error": {"message": "no"}}, fields=OPENAI).check()


@pytest.mark.parametrize("line", [b"{", b"[1]", b'{"custom_id": "2"}', b'{"custom_id": "2", "error": "\xff"}'])
def test_a_line_that_is_not_in_the_format_refuses_the_file(tmp_path, line):
    good = {"custom_id": "1", "response": answer("a"), "error": None}
    with pytest.raises(DataError, match=r"rows\.jsonl:2"):
        jsonl(tmp_path, good, line, fields=OPENAI).check()


@pytest.mark.parametrize("text", [r'"\ud83d"', r'"a \udc00 b"', r'{"\ud83d": 1}', r'[["\ud83d\ud83d"]]'])
def test_a_lone_surrogate_fails_its_record_alone(tmp_path, text):
    lines = b'{"id": "1", "output": %s}' % text.encode(), b'{"id": "2", "output": "\\ud83d\\ude00"}'
    failed = failures(jsonl(tmp_path, *lines))
    assert list(failed) == ["1"]
    assert "lone surrogate \\ud" in failed["1"]
    document = tmp_path / "rows.json"
    document.write_bytes(b"[%s]" % b",".join(lines))
    assert failures(Json(document)) == failed
    (due, _) = Json(document).subjects()
    orjson.dumps(due.subject.output)


def test_a_lone_surrogate_is_no_yaml(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text('- {id: "1", output: "\\ud83d"}\n- {id: "2", output: a}\n')
    with pytest.raises(DataError, match=r"rows\.yaml:1:24"):
        Yaml(path).check()


@pytest.mark.parametrize("line", [rb'{"a": "\ud83d", "n": NaN}', rb'{"a": "\ud83d"', rb'{"a": "\ud83d", "n": 1e999}'])
def test_json_that_has_more_faults_than_a_surrogate_refuses_the_file(tmp_path, line):
    with pytest.raises(DataError):
        jsonl(tmp_path, line).check()


def test_a_row_of_a_table_failed_if_it_has_an_error_in_place_of_an_output(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,output,error\n1,a,\n2,,timeout\n3,,\n4,,nan\n5,b,worded oddly\n")
    assert failures(Csv(path)) == {"2": "timeout"}


def test_counts_are_those_of_the_newest_pass(tmp_path):
    rows = jsonl(tmp_path, {"id": "1", "output": "a"}, {"id": "2", "output": None, "error": "refused"})
    with rows.reading() as live:
        live.check()
        for _ in range(2):
            first = live.subjects()
            next(first)
            assert live.read_counts() == ReadCounts(1)
            assert len([*first]) == 1
            assert live.read_counts() == ReadCounts(2, failed=1)


def test_a_file_of_failed_records_alone_is_no_file_without_outputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl(tmp_path, {"custom_id": "1", "response": None, "error": {"message": "no"}})
    pipeline = {"source": {"rows/jsonl": {"path": "rows.jsonl", "fields": OPENAI}}, "metrics": ["proxy/format"]}
    done = run_pipeline(json.dumps(pipeline))
    assert (done.exit_code, done.document["failures"]) == (3, {"source_error": 1})
    assert done.document["read"] == {"records": 1, "subjects": {}, "marked": {}, "dropped": {}, "failed": 1}


def test_rows_without_an_output_are_refused_although_another_row_failed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    jsonl(tmp_path, {"answer": "a"}, {"output": None, "error": "refused"})
    with pytest.raises(DataError, match="no row has an output"):
        run_pipeline("source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]")


def test_a_cell_is_text_and_a_list_only_if_fields_read_it_as_json(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,output,gold\n1,a,"[""a"", ""b""]"\n2,b,\n')
    columns = ("gold", Column("gold", json=True))
    text, parsed = (
        [(subject.reference, subject.columns) for subject in Csv(path, fields={"reference": column}).subjects()]
        for column in columns
    )
    assert text == [('["a", "b"]', {"gold": '["a", "b"]'}), ("", {"gold": ""})]
    assert parsed == [(["a", "b"], {"gold": '["a", "b"]'}), (None, {"gold": ""})]


def test_the_json_form_of_fields_is_read_from_a_pipeline(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text('id,output,gold\n1,a,"[""a"", ""b""]"\n')
    fields = "{reference: {column: gold, json: true}}"
    done = run_pipeline(f"source: {{rows/csv: {{path: rows.csv, fields: {fields}}}}}\nmetrics: [diff/json]")
    assert done.of("subject.read")[0].payload["content"]["reference"] == ["a", "b"]


def test_a_cell_that_is_not_the_json_it_should_be_refuses_the_file(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("id,output,gold\n1,a,[a\n2,b,[1]\n")
    with pytest.raises(DataError, match=r"rows\.csv:2: the column 'gold' is not JSON.*leave json out") as caught:
        Csv(path, fields={"reference": Column("gold", json=True)}).check()
    assert len(caught.value.problems) == 1


def test_a_lone_surrogate_in_a_cell_of_json_fails_its_record(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,output,gold\n1,a,"[""\\ud83d""]"\n2,b,[1]\n')
    assert list(failures(Csv(path, fields={"reference": Column("gold", json=True)}))) == ["1"]


def test_an_id_is_no_json():
    with pytest.raises(ConfigError, match="'id' is no JSON"):
        Csv("x", fields={"id": Column("id", json=True)})


def test_json_in_the_context_is_merged(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('id,meta,lang\n1,"{""a"": 1}",en\n2,,de\n')
    source = Csv(path, fields={"context": Column("meta", json=True)})
    assert [subject.context for subject in source.subjects()] == [{"a": 1, "lang": "en"}, {"lang": "de"}]
