from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
import pickle
import sys
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, DataError, Due, RunContext, Source, Subject, run
from dicast_rows import Csv, Jsonl

RUN = RunContext("r", "n", Path())


def jsonl(folder: Path, *rows: object, **options: object) -> Jsonl:
    path = folder / "rows.jsonl"
    path.write_bytes(b"".join((row if isinstance(row, bytes) else orjson.dumps(row)) + b"\n" for row in rows))
    return Jsonl(path, **options)


def table(folder: Path, text: str | bytes, **options: object) -> Csv:
    path = folder / "rows.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return Csv(path, **options)


@contextmanager
def opened(source: Jsonl | Csv):
    with source.reading() as live:
        yield live


def problems(source: Jsonl | Csv) -> list[tuple[int | None, str]]:
    with pytest.raises(DataError) as caught:
        source.check()
    assert {problem.file for problem in caught.value.problems} == {str(source.path)}
    return [(problem.line, problem.message) for problem in caught.value.problems]


def test_columns_become_the_parts_of_a_subject_and_the_rest_context(tmp_path):
    row = {"id": "a", "input": "q", "output": {"x": 1}, "reference": [1], "session_id": 7, "lang": "en", "n": None}
    source = jsonl(tmp_path, row)
    expected = Subject("row", "a", "q", {"x": 1}, [1], {"lang": "en", "n": None}, (), "7")
    assert list(source.subjects()) == [expected]


def test_sources_are_components(tmp_path):
    for source in (jsonl(tmp_path, {}), table(tmp_path, "a\n1\n", kind="candidate")):
        assert isinstance(source, Source)
        assert source.kinds == (source.kind,)
        assert pickle.loads(pickle.dumps(source)) == source


def test_id_defaults_to_the_line_number_blank_lines_counted(tmp_path):
    source = jsonl(tmp_path, {"input": 1}, b"", {"input": 2})
    source.check()
    assert [subject.id for subject in source.subjects()] == ["1", "3"]


def test_line_number_that_equals_a_given_id_is_a_duplicate(tmp_path):
    assert problems(jsonl(tmp_path, {"id": "2"}, {})) == [(2, "duplicate id '2', first on line 1")]


def test_missing_output_is_none_and_null_is_none(tmp_path):
    assert [s.output for s in jsonl(tmp_path, {}, {"output": None}, {"output": ""}).subjects()] == [None, None, ""]


def test_fields_rename_columns(tmp_path):
    fields = {"id": "qid", "input": "question", "output": "answer", "reference": "gold"}
    source = jsonl(tmp_path, {"qid": 1, "question": "q", "answer": "a", "gold": "g", "output": "old"}, fields=fields)
    assert list(source.subjects()) == [Subject("row", "1", "q", "a", "g", {"output": "old"})]


def test_dotted_paths_reach_into_columns_and_leave_the_rest(tmp_path):
    fields = {"id": "meta.id", "output": "reply.choices.0.text", "reference": "gold.text"}
    row = {"meta": {"id": "x", "lang": "en"}, "reply": {"choices": [{"text": "hi"}]}, "gold": {"text": "g"}}
    (subject,) = jsonl(tmp_path, row, fields=fields).subjects()
    assert (subject.id, subject.output, subject.reference) == ("x", "hi", "g")
    assert subject.context == {"meta": {"lang": "en"}, "reply": {"choices": [{"text": "hi"}]}}


def test_column_whose_name_has_a_dot_is_found(tmp_path):
    (subject,) = jsonl(tmp_path, {"a.b": 1, "a": {"b": 2}}, fields={"input": "a.b"}).subjects()
    assert (subject.input, subject.context) == (1, {"a": {"b": 2}})


def test_two_fields_may_share_a_column(tmp_path):
    (subject,) = jsonl(tmp_path, {"t": "x"}, fields={"input": "t", "output": "t"}).subjects()
    assert (subject.input, subject.output, subject.context) == ("x", "x", {})


@pytest.mark.parametrize("fields", [{}, {"context": "context"}, {"input": "q.q"}])
def test_object_in_context_is_merged_first(tmp_path, fields):
    row = {"context": {"a": 1, "b": 1}, "b": 2, "q": {"q": 1}}
    (subject,) = jsonl(tmp_path, row, fields=fields).subjects()
    assert {name: subject.context[name] for name in "ab"} == {"a": 1, "b": 2}


def test_text_in_context_keeps_its_name(tmp_path):
    (subject,) = jsonl(tmp_path, {"passage": "p", "x": 1}, fields={"context": "passage"}).subjects()
    assert subject.context == {"context": "p", "x": 1}


def test_unknown_fields_are_all_refused_with_the_nearest_name():
    with pytest.raises(ConfigError) as caught:
        Jsonl("x", fields={"referense": "a", "zzz": "b", "input": ""})
    assert [(problem.path, problem.hint) for problem in caught.value.problems] == [
        ("fields.referense", "reference"),
        ("fields.zzz", None),
        ("fields.input", None),
    ]


@pytest.mark.parametrize("path", ["answr", "meta.answr"])
def test_path_named_by_the_user_must_be_in_every_row(tmp_path, path):
    source = jsonl(tmp_path, {"answer": 1}, fields={"output": path})
    assert problems(source) == [(1, f"the row has no {path!r}; it has answer")]
    with pytest.raises(DataError, match=r"rows\.jsonl:1: the row has no"):
        list(source.subjects())


def test_missing_path_names_the_nearest_column(tmp_path):
    with pytest.raises(DataError, match="did you mean 'answer'"):
        jsonl(tmp_path, {"answer": 1}, fields={"output": "answr"}).check()


@pytest.mark.parametrize("fields", [{}, {"input": "a.b"}])
@pytest.mark.parametrize("bad", [None, [1], {}, "", 1e300])
def test_id_that_is_no_name_is_a_bad_line(tmp_path, bad, fields):
    ((line, message),) = problems(
        jsonl(tmp_path, {"id": "x", "a": {"b": 1}}, {"id": bad, "a": {"b": 1}}, fields=fields)
    )
    assert line == 2
    assert "string" in message


@pytest.mark.parametrize("bad", [True, [1], {}])
def test_session_id_that_is_no_name_is_a_bad_line(tmp_path, bad):
    assert problems(jsonl(tmp_path, {"session_id": bad}))[0][0] == 1


@pytest.mark.parametrize("none", [None, ""])
def test_empty_session_id_is_no_session(tmp_path, none):
    assert next(jsonl(tmp_path, {"session_id": none}).subjects()).session_id is None


def test_problem_of_a_renamed_id_names_the_users_path(tmp_path):
    with pytest.raises(DataError) as caught:
        jsonl(tmp_path, {"meta": {"id": None}}, fields={"id": "meta.id"}).check()
    assert caught.value.problems[0].path == "meta.id"


def test_duplicate_ids_are_an_error_also_across_types(tmp_path):
    assert problems(jsonl(tmp_path, {"id": 1}, {"id": "1"})) == [(2, "duplicate id '1', first on line 1")]


def test_rows_that_are_no_objects_are_all_reported(tmp_path):
    assert [line for line, _ in problems(jsonl(tmp_path, [1], {}, "x", b"{"))] == [1, 3, 4]


def test_max_line_bytes_is_kept(tmp_path):
    assert "longer than" in problems(jsonl(tmp_path, {"a": "x" * 100}, max_line_bytes=50))[0][1]
    with pytest.raises(ConfigError, match="max_line_bytes"):
        Jsonl("x", max_line_bytes=0)


def test_gzip_and_plain_rows_have_the_same_digest(tmp_path):
    source = jsonl(tmp_path, {"a": 1})
    plain = source.check()
    source.path.write_bytes(gzip.compress(source.path.read_bytes()))
    assert source.check() == plain
    assert len(list(source.subjects())) == 1


def test_standard_input_is_checked_and_then_read(monkeypatch):
    async def read() -> list[str]:
        async with Jsonl("-").open(RUN) as rows:
            rows.check()
            return [subject.id for subject in rows.subjects()]

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"id":"a"}\n{"id":"b"}\n')))
    assert asyncio.run(read()) == ["a", "b"]


def test_csv_values_stay_strings_and_ids_are_physical_lines(tmp_path):
    source = table(tmp_path, '\ufeffinput,output,n\r\n"two\r\nlines",a,1\r\n\r\nq,"say ""hi""",\r\n')
    source.check()
    assert list(source.subjects()) == [
        Subject("row", "2", "two\r\nlines", "a", None, {"n": "1"}),
        Subject("row", "5", "q", 'say "hi"', None, {"n": ""}),
    ]


def test_csv_record_with_other_than_the_headers_columns_is_reported_with_its_first_line(tmp_path):
    assert problems(table(tmp_path, 'a,b\n"x\ny",2\n1\n1,2,3\n1,2\n')) == [
        (4, "the record has 1 value, the header has 2 columns: a, b"),
        (5, "the record has 3 values, the header has 2 columns: a, b"),
    ]


@pytest.mark.parametrize(
    ("header", "message"),
    [("a,b,a", "the header names 'a' twice"), ("a,,b", "the header has a column without a name")],
)
def test_csv_header_must_name_each_column_once(tmp_path, header, message):
    step = "; if the file has no header, write header: false"
    assert problems(table(tmp_path, f"{header}\n1,2,3\n")) == [(1, f"{message}{step}")]


def test_a_message_holds_no_more_of_a_long_header_than_can_be_read(tmp_path):
    ((_, message),) = problems(table(tmp_path, ",".join([*"abcdefghijklmnopqrstuv", "x" * 1_000_000]) + "\n1,2\n"))
    assert message == f"the record has 2 values, the header has 23 columns: {', '.join('abcdefghijklmnopqrst')}, …"
    ((_, message),) = problems(table(tmp_path, "x" * 1_000_000 + ",y\n1\n"))
    assert message == f"the record has 1 value, the header has 2 columns: {'x' * 80}…, y"


def test_csv_field_that_is_not_in_the_header_is_reported_once(tmp_path):
    with pytest.raises(DataError) as caught:
        table(tmp_path, "qid,answer\n1,2\n3,4\n", fields={"output": "answr"}).check()
    (problem,) = caught.value.problems
    assert (problem.line, problem.path, problem.hint) == (1, "fields.output", "answer")


@pytest.mark.parametrize(("text", "line"), [('a,b\n"x"y,2\n1,2\n', 2), ('a\n1\n"open\n\n', 3)])
def test_broken_quotes_are_reported_on_the_line_where_the_record_starts(tmp_path, text, line):
    ((first_line, message),) = problems(table(tmp_path, text))
    assert first_line == line
    assert message.startswith("the record is not CSV")


@pytest.mark.parametrize("text", ["", "a,b\n", "\n\n"])
def test_csv_without_records_has_no_subjects(tmp_path, text):
    assert "no subjects" in problems(table(tmp_path, text))[0][1]


def test_csv_that_is_not_utf8_names_the_line(tmp_path):
    ((line, message),) = problems(table(tmp_path, b"a\n1\nM\xe4rz\n"))
    assert (line, message) == (
        3,
        "byte 0xe4 is not UTF-8; save the file as UTF-8, or set its encoding: cp1252 or iso8859-15 might fit (encoding: cp1252; dicast init --encoding cp1252)",
    )


def test_csv_value_over_many_lines_is_bounded_too(tmp_path):
    assert "field larger than" in problems(table(tmp_path, 'a\n"' + "xxxx\n" * 100, max_line_bytes=50))[0][1]


def test_csv_duplicate_and_empty_ids_are_errors(tmp_path):
    assert [line for line, _ in problems(table(tmp_path, "id,a\nx,1\nx,2\n,3\n"))] == [3, 4]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


@given(st.lists(st.tuples(cells, cells.filter(bool)), min_size=1))
def test_what_the_csv_writer_wrote_is_read(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("input", "output"), *rows])
    source = Csv(path)
    source.check()
    assert [(subject.input, subject.output) for subject in source.subjects()] == rows


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "input", "output", "a.b", "a", "context"]), st.text(min_size=1) | st.integers(0, 9)
        ),
        min_size=1,
    )
)
def test_the_quick_way_and_the_searching_way_agree(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("rows")
    quick = list(jsonl(folder, *rows).subjects())
    searching = list(jsonl(folder, *({**row, "r": {"r": 1}} for row in rows), fields={"reference": "r.r"}).subjects())
    assert [(s.id, s.input, s.output, s.context) for s in quick] == [
        (s.id, s.input, s.output, s.context) for s in searching
    ]


@pytest.mark.parametrize(
    ("rows", "fields", "message"),
    [
        (
            [{"q": 1, "answer": "a"}, {"q": 2}],
            {},
            "none has 'output'; the file has the columns q, answer; map them: fields: {output: answer}",
        ),
        (
            [{"output": None}, {"output": None, "x": 1}],
            {},
            "'output' is null in all of them; the file has the columns output; map them: fields: {output: COLUMN}",
        ),
        (
            [{"a": {"b": None}}],
            {"output": "a.b"},
            "none has 'a.b'; the file has the columns a; map them: fields: {output: COLUMN}",
        ),
    ],
)
def test_rows_without_any_output_say_which_columns_there_are(tmp_path, rows, fields, message):
    with opened(jsonl(tmp_path, *rows, fields=fields)) as live:
        live.check()
        assert live.no_output is not None
        assert message in live.no_output.message


@pytest.mark.parametrize("text", ["id,output\n1,\n2,\n", "id,output\n1,\n2,x\n"])
def test_an_empty_cell_of_csv_is_an_output(tmp_path, text):
    with opened(table(tmp_path, text)) as live:
        live.check()
        assert live.no_output is None
        assert next(live.subjects()).output == ""


def test_one_output_in_the_file_is_enough(tmp_path):
    with opened(jsonl(tmp_path, {"x": 1}, {"output": None}, {"output": ""})) as live:
        live.check()
        assert live.no_output is None


def test_a_file_without_outputs_is_exit_2_before_anything_is_judged(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = table(tmp_path, "question,answer\nq,a\n")
    pipeline = {"source": {"rows/csv": {"path": str(source.path)}}, "metrics": ["proxy/length"]}
    with pytest.raises(
        DataError, match="columns question, answer; map them: fields: {input: question, output: answer}"
    ):
        run(pipeline)
    mapped = {"rows/csv": {"path": str(source.path), "fields": {"output": "answer"}}}
    assert run({**pipeline, "source": mapped}).scored == 1


def test_a_row_that_records_an_error_is_a_failed_record_and_is_not_judged(tmp_path):
    rows = [
        {"id": "1", "output": "a", "error": None},
        {"id": "2", "output": "a", "error": "rate limited"},
        {"id": "3", "output": "a", "error": ["first", "second"]},
        {"id": "4", "output": "a"},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    source = Jsonl(path, {"error": "error"})
    failures = {due.subject.id: due.failure for due in source.subjects() if isinstance(due, Due)}
    assert {name: (subject.kind, subject.message) for name, subject in failures.items()} == {
        "2": ("source_error", "rate limited"),
        "3": ("source_error", "first; second"),
    }
    assert len([*source.subjects()]) == 4
    assert not any(isinstance(subject, Due) for subject in Jsonl(path).subjects())  # the column alone means nothing


@pytest.mark.parametrize(
    ("template", "ids"),
    [
        ("{{ q }}-{{ model }}", ["1-a", "1-b", "2-a"]),
        ("{{ meta.run }}/{{id}}", ["x/same", "y/same", "z/same"]),
        ("{{ line }}", ["1", "2", "4"]),
        ("row {{ line }}: {{ q }}", ["row 1: 1", "row 2: 1", "row 4: 2"]),
    ],
)
def test_ids_are_made_by_a_template_of_columns_and_the_line(tmp_path, template, ids):
    rows = [("1", "a", "x"), ("1", "b", "y"), None, ("2", "a", "z")]
    text = "".join(
        "\n"
        if row is None
        else json.dumps({"id": "same", "q": row[0], "model": row[1], "meta": {"run": row[2]}}) + "\n"
        for row in rows
    )
    (tmp_path / "rows.jsonl").write_text(text)
    source = Jsonl(tmp_path / "rows.jsonl", fields={"id": template})
    source.check()
    subjects = list(source.subjects())
    assert [subject.id for subject in subjects] == ids
    assert subjects[0].context["id"] == "same"
    assert not any("\0" in name for subject in subjects for name in (*subject.context, *subject.columns))


def test_a_template_of_ids_that_cannot_be_filled_is_an_error_with_its_place(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"q": "1", "model": "a"}\n{"q": null, "model": "a"}\n{"model": "a"}\n')
    with pytest.raises(DataError) as caught:
        Jsonl(tmp_path / "rows.jsonl", fields={"id": "{{ q }}"}).check()
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [(2, "q"), (3, "q")]
    (tmp_path / "rows.csv").write_text("question,model\n1,a\n")
    with pytest.raises(DataError, match="the header has no 'qestion'.*did you mean 'question'"):
        Csv(tmp_path / "rows.csv", fields={"id": "{{ qestion }}-{{ model }}"}).check()
    with pytest.raises(ConfigError, match="is not a template"):
        Csv(tmp_path / "rows.csv", fields={"id": "{{ }}"})
