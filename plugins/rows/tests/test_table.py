"""Delimiters, encodings and headers of ``rows/csv``."""

from __future__ import annotations

import csv
import gzip

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dicast import ConfigError, DataError, Subject, run
from dicast_rows import Csv


@pytest.fixture
def table(tmp_path):
    def write(data: str | bytes, name: str = "t.csv", **options: object) -> Csv:
        (tmp_path / name).write_bytes(data.encode() if isinstance(data, str) else data)
        return Csv(tmp_path / name, **options)

    return write


def read(source: Csv) -> list[tuple[object, object]]:
    source.check()
    return [(subject.input, subject.output) for subject in source.subjects()]


def faults(source: Csv) -> list[tuple[int | None, int | None, str]]:
    with pytest.raises(DataError) as caught:
        source.check()
    return [(problem.line, problem.column, problem.message) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("name", "data", "options"),
    [
        ("t.tsv", "input\toutput\na,b\tc\n", {}),
        ("t.tsv.gz", gzip.compress(b"input\toutput\na,b\tc\n", mtime=0), {}),
        ("t.csv", "input\toutput\na,b\tc\n", {"delimiter": "tab"}),
        ("t.csv", "input\toutput\na,b\tc\n", {"delimiter": "\\t"}),
        ("t.csv", "input\toutput\na,b\tc\n", {"delimiter": "\t"}),
        ("t.tsv", 'input,output\n"a,b",c\n', {"delimiter": ","}),
        ("t.csv", "input;output\na,b;c\n", {"delimiter": ";"}),
    ],
)
def test_delimiter_is_the_comma_the_tab_of_a_tsv_file_or_the_one_given(table, name, data, options):
    assert read(table(data, name, **options)) == [("a,b", "c")]


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n"])
def test_what_is_no_delimiter_is_refused(delimiter):
    with pytest.raises(ConfigError, match="is not a delimiter"):
        Csv("x", delimiter=delimiter)


def test_a_header_of_one_column_says_which_delimiter_it_may_have(table):
    text = "question;answer\nq;a\n"
    ((line, _, message),) = faults(table(text))
    assert (line, message) == (
        1,
        "the header has one column, 'question;answer'; if it is delimited by ';', write delimiter: ';'",
    )
    ((_, _, message),) = faults(table(text, fields={"output": "answer"}))
    assert message.startswith(
        "the header has no 'answer'; it has question;answer; if it is delimited by ';', write delimiter"
    )
    assert read(table('"output, say"\nx\n', delimiter=",", fields={"output": "output, say"})) == [(None, "x")]


CASES = st.lists(
    st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)] * 2).filter(any),
    min_size=1,
    max_size=5,
)


@given(
    CASES,
    st.sampled_from(",;\t|"),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_values_are_those_that_pythons_csv_reads(tmp_path_factory, rows, delimiter, quoting, end):
    path = tmp_path_factory.mktemp("t") / "x.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
        writer.writerows([("input", "output"), *rows])
    with path.open(newline="", encoding="utf-8") as file:
        expected = [tuple(record) for record in csv.reader(file, delimiter=delimiter)][1:]
    assume(expected == rows)  # some Pythons write a bare carriage return without quotes
    assert read(Csv(path, delimiter=delimiter)) == rows


TEXT = 'input,output\n"zwei\nZeilen",März\n你好,"a, b"\n'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "gb18030", "UTF8"])
def test_encoding_is_any_that_python_knows(table, encoding):
    source = table(TEXT.encode(encoding), encoding=encoding)
    assert read(source) == [("zwei\nZeilen", "März"), ("你好", "a, b")]
    assert [subject.id for subject in source.subjects()] == ["2", "4"]
    assert len(source.check()) == 64


def test_unknown_encoding_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'cp1252'"):
        Csv("x", encoding="cp1522")
    with pytest.raises(ConfigError, match="unknown encoding 'hex'"):
        Csv("x", encoding="hex")


@pytest.mark.parametrize(
    ("data", "encoding", "place", "said"),
    [
        (
            "a\nMärz\n".encode("cp1252"),
            "utf-8",
            (2, 2),
            "cp1252 or iso8859-15 might fit (encoding: cp1252; dicast init --encoding cp1252)",
        ),
        ("a\n日本語です\n".encode("shift_jis"), "utf-8", (2, 1), "shift_jis"),
        ("a\nПривет, мир\n".encode("cp1251"), "utf-8", (2, 1), "cp1251"),
        (
            "a\nMärz\n".encode(),
            "ascii",
            (2, 2),
            "byte 0xc3 is not ASCII; save the file as UTF-8, or set its encoding: utf-8",
        ),
        (
            "a\nx\n".encode("utf-16"),
            "utf-8",
            (1, None),
            "byte order mark of UTF-16; save the file as UTF-8, or set its encoding",
        ),
        (
            "a\nb\nc\n".encode("utf-16-le") + b"\x00\xd8a\0",
            "utf-16-le",
            (4, None),
            "byte 13 of the file, 0x00, is not utf-16-le",
        ),
        ("a\nb".encode("utf-16-le") + b"\0", "utf-16-le", (2, None), "byte 7 of the file"),
    ],
)
def test_bytes_of_another_encoding_are_an_error_with_their_place_that_says_what_might_fit(
    table, data, encoding, place, said
):
    ((line, column, message), *_) = faults(table(data, encoding=encoding))
    assert (line, column) == place
    assert said in message


def test_bare_carriage_returns_are_no_line_ends(table):
    ((line, _, message),) = faults(table("input,output\rq,a\r"))
    assert (line, message) == (
        1,
        "the record is not CSV: a carriage return ends no line; save the file with LF or CRLF line ends",
    )


def test_lines_of_utf_16_are_bounded_too(table):
    ((line, _, message),) = faults(
        table(("output\nx\n" + "y" * 99).encode("utf-16"), encoding="utf-16", max_line_bytes=50)
    )
    assert (line, message) == (1, "a line from here on is longer than max_line_bytes (50)")


def test_file_without_a_header_has_numbered_columns_or_those_of_a_list(table):
    fields = {"input": "column_1", "output": "column_2"}
    assert read(table("q,a\nr,b\n", header=False, fields=fields)) == [("q", "a"), ("r", "b")]
    (subject,) = table("q,a,z\n", header=("input", "output", "extra")).subjects()
    assert subject == Subject("row", "1", "q", "a", None, {"extra": "z"})


@pytest.mark.parametrize(
    ("header", "text", "message"),
    [
        (("input", "output"), "q\n", "the record has 1 value, the option header has 2 columns: input, output"),
        (("input", "output"), "input,output\nq,a\n", "the first record has the names that the option header gives"),
        (False, "q,a\nr\n", "the record has 1 value, the first has 2 columns: column_1, column_2"),
    ],
)
def test_header_that_does_not_fit_the_records_is_an_error(table, header, text, message):
    assert message in faults(table(text, header=header))[0][2]


@pytest.mark.parametrize("header", [("a", "a"), ("a", ""), ()])
def test_names_of_a_header_are_unique_and_not_empty(header):
    with pytest.raises(ConfigError, match="header"):
        Csv("x", header=header)


def test_file_with_none_of_the_default_columns_says_how_to_map_them_before_anything_is_judged(
    table, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = table("Qid,Question,Answer,Gold\n1,q,a,g\n")
    options = {"path": str(source.path), "header": True, "fields": {"id": "Qid"}}
    pipeline = {"source": {"rows/csv": options}, "metrics": ["proxy/length"]}
    proposal = "fields: {id: Qid, input: Question, output: Answer, reference: Gold}"
    with pytest.raises(DataError, match=f"the file has the columns Qid, Question, Answer, Gold; map them: {proposal}"):
        run(pipeline)
    mapped = {"id": "Qid", "input": "Question", "output": "Answer", "reference": "Gold"}
    options = {**options, "header": ["Qid", "Question", "Answer", "Gold"], "path": "u.csv", "fields": mapped}
    table("1,q,a,g\n", "u.csv")
    assert run({**pipeline, "source": {"rows/csv": options}}).scored == 1
