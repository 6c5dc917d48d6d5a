"""Rows from Excel workbooks."""

from __future__ import annotations

import gzip
import zipfile
from datetime import date, datetime, time, timedelta
from pathlib import Path
from time import process_time

import pytest

from dicast import ConfigError, DataError
from dicast_rows import Xlsx

openpyxl = pytest.importorskip("openpyxl")


@pytest.fixture
def written(tmp_path):
    def write(rows, name="book.xlsx", change=None):
        book = openpyxl.Workbook()
        for row in rows:
            book.active.append(row)
        if change is not None:
            change(book)
        book.save(tmp_path / name)
        return tmp_path / name

    return write


def read(path, **options):
    source = Xlsx(path, **options)
    source.check()
    return list(source.subjects())


def faults(path, **options):
    with pytest.raises(DataError) as caught:
        Xlsx(path, **options).check()
    return [str(problem).removeprefix(str(path)) for problem in caught.value.problems]


def edit(path: Path, old: str, new: str, part: str = "xl/worksheets/sheet1.xml") -> Path:
    """Change the XML of a sheet."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert old in parts[part].decode()
    parts[part] = parts[part].decode().replace(old, new).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def test_cells_keep_their_types_and_dates_become_text(written):
    def change(book):
        book.active["F2"].number_format = "yyyy-mm-dd"
        book.active["J2"].number_format = "0%"

    row = [
        "a",
        3,
        2.5,
        True,
        "007",
        date(2026, 1, 31),
        datetime(2026, 1, 31, 12, 30),  # noqa: DTZ001  # a cell has no time zone
        time(8, 5),
        timedelta(hours=26),
        0.5,
    ]
    names = ["output", "int", "float", "flag", "text", "date", "moment", "time", "span", "share"]
    (subject,) = read(written([names, row], change=change))
    assert subject.output == "a"
    assert subject.id == "2"
    assert subject.context == {
        "int": 3, "float": 2.5, "flag": True, "text": "007", "date": "2026-01-31", "moment": "2026-01-31T12:30:00",
        "time": "08:05:00", "span": "26:00:00", "share": 0.5,
    }  # fmt: skip


def test_empty_cells_are_null_and_blank_rows_are_passed_over(written):
    subjects = read(written([["id", "output", "reference"], ["a", "x"], [], ["b", None, "y"]]))
    assert [(subject.id, subject.output, subject.reference) for subject in subjects] == [
        ("a", "x", None),
        ("b", None, "y"),
    ]


def test_a_formula_has_its_stored_value(written):
    path = written([["output", "twice"], ["x", "=1+1"]])
    path = edit(path, "<f>1+1</f><v />", "<f>1+1</f><v>2</v>")
    assert read(path)[0].context == {"twice": 2}


def test_a_formula_without_a_stored_value_is_an_error_with_its_cell(written):
    problems = faults(written([["output", "twice"], ["x", "=1+1"], ["y", 3], ["=A2", 4]]))
    assert problems == [
        ": row 2: cell B2 has a formula without a stored value; open the file in a spreadsheet program and save it",
        ": row 4: cell A4 has a formula without a stored value; open the file in a spreadsheet program and save it",
    ]


def test_each_cell_of_a_merged_range_has_its_value(written):
    def change(book):
        book.active.merge_cells("A2:A4")
        book.active.merge_cells("C3:D3")

    rows = [["topic", "output", "one", "two"], ["sea", "x"], [None, "y", "same"], [None, "z"]]
    subjects = read(written(rows, change=change))
    assert [(subject.context["topic"], subject.output) for subject in subjects] == [
        ("sea", "x"),
        ("sea", "y"),
        ("sea", "z"),
    ]
    assert (subjects[1].context["one"], subjects[1].context["two"]) == ("same", "same")
    assert subjects[0].context["one"] is None


def test_error_values_are_errors_where_they_are_used_and_text_elsewhere(written):
    path = written([["output", "note"], ["x", "#N/A"], ["y", None]])
    assert read(path)[0].context == {"note": "#N/A"}
    problems = faults(path, fields={"reference": "note"})
    assert problems == [": row 2: cell B2 has the error #N/A; correct the formula, or clear the cell"]


def test_the_sheet_must_be_named_where_several_have_values(written):
    def change(book):
        book.create_sheet("Empty")
        book.create_sheet("More").append(["output"])
        book["More"].append(["z"])

    path = written([["output"], ["x"]], change=change)
    assert faults(path) == [": sheets Sheet, More have values; write sheet: NAME (dicast init --sheet NAME) (sheet)"]
    assert [read(path, sheet=sheet)[0].output for sheet in ("Sheet", 1, "More", 3)] == ["x", "x", "z", "z"]
    assert faults(path, sheet="Mor") == [
        ": there is no sheet 'Mor'; the workbook has Sheet, Empty, More, did you mean 'More'? (sheet)"
    ]


def test_columns_without_a_header_are_named_by_letters_or_a_list(written):
    path = written([["q", "a"], ["r", "b"]])
    assert [subject.output for subject in read(path, header=False, fields={"output": "B"})] == ["a", "b"]
    assert [subject.output for subject in read(path, header=("input", "output"))] == ["a", "b"]


def test_a_value_outside_the_header_and_a_wrong_header_are_errors(written):
    assert faults(written([["output"], ["x", "y"]])) == [
        ": row 2: cell B2 has a value, and column B has no name in the header"
    ]
    assert faults(written([["a", "a"], ["x", "y"]])) == [": row 1: the header names 'a' twice"]
    assert faults(written([["outptu"], ["x"]]), fields={"output": "output"}) == [
        ": row 1: the header has no 'output'; it has outptu, did you mean 'outptu'? (fields.output)"
    ]


def test_cells_beyond_the_stated_size_are_read(written):
    path = edit(written([["output", "b"], ["x", "y"]]), 'ref="A1:B2"', 'ref="A1"')
    assert read(path)[0].context == {"b": "y"}


def test_gzip_is_recognized_and_other_files_are_refused(written, tmp_path):
    path = written([["output"], ["x"]])
    packed = tmp_path / "book.xlsx.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed)[0].output == "x"
    path.write_bytes(b"\xd0\xcf\x11\xe0" + b"\0" * 600)
    assert "encrypted or in the old .xls format; save it as .xlsx" in faults(path)[0]
    path.write_text("a,b\n1,2\n")
    assert "is not a workbook; save it as .xlsx" in faults(path)[0]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "x")
    assert "cannot be read as a workbook" in faults(path)[0]


def test_without_openpyxl_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="rows/xlsx needs openpyxl"):
        Xlsx("book.xlsx")


LAST_ROW = "</sheetData>"


def bad_sheet(written, row="", after=""):
    path = written([["id", "output"], ["a", "b"]])
    return faults(edit(path, LAST_ROW, f"{row}{LAST_ROW}{after}"))


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('<row r="2"><c r="A2"><v>1</v></c></row>', "row 2 comes after row 2"),
        ('<row r="1"><c r="A1"><v>1</v></c></row>', "row 1 comes after row 2"),
        ('<row r="99999999"><c r="A99999999"><v>1</v></c></row>', "row 99999999 comes after row 2"),
        ('<row r="x"/>', "'x' is not the number of a row"),
        ('<row r="3"><c r="B3"><v>1</v></c><c r="A3"><v>1</v></c></row>', "cell A3 is out of order"),
        ('<row r="3"><c r="B3"><v>1</v></c><c r="B3"><v>2</v></c></row>', "cell B3 is out of order"),
        ('<row r="3"><c r="A4"><v>1</v></c></row>', "cell A4 is out of order"),
        ('<row r="3"><c r="XFE3"><v>1</v></c></row>', "cell XFE3 is out of order"),
    ],
)
def test_rows_and_cells_that_would_be_left_out_are_refused(written, row, message):
    (fault,) = bad_sheet(written, row)
    assert message in fault


@pytest.mark.parametrize("reference", ['ref="foo"', 'ref="B:B"', 'ref="B3:A1"', ""])
def test_a_merged_range_that_is_none_is_refused(written, reference):
    (fault,) = bad_sheet(written, after=f"<mergeCells><mergeCell {reference}/></mergeCells>")
    assert "the sheet cannot be read" in fault


def test_a_merged_range_of_a_whole_column_is_refused_at_once(written):
    (fault,) = bad_sheet(written, after='<mergeCells><mergeCell ref="B2:B1048576"/></mergeCells>')
    assert "more than 1,000,000 cells" in fault


@pytest.mark.parametrize("value", ["1e999", "-1e999", "9" * 400])
def test_a_number_that_is_infinite_is_refused_with_its_cell(written, value):
    (fault,) = bad_sheet(written, f'<row r="3"><c r="A3"><v>1</v></c><c r="B3"><v>{value}</v></c></row>')
    assert "cell B3 has a number that is larger" in fault


def test_a_text_that_refers_to_nothing_is_refused(written):
    (fault,) = bad_sheet(written, '<row r="3"><c r="A3"><v>1</v></c><c r="B3" t="s"><v>99</v></c></row>')
    assert "cannot be read as a workbook" in fault


def test_a_part_that_unpacks_to_gigabytes_is_refused(written):
    path = written([["id", "output"], ["a", "b"]])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/more.xml", "w") as part:
        for _ in range(80):
            part.write(bytes(2**20))
    assert "xl/more.xml' unpacks to 83,886,080 bytes" in faults(path)[0]


def test_characters_that_xml_cannot_have_are_read(written):
    path = written([["id", "output"], ["a", "X"]])
    edit(path, "<t>X</t>", "<t>one_x000D_\ntwo _x005F_x000D_ _xD800_ _x41_</t>")
    (subject,) = read(path)
    assert subject.output == "one\r\ntwo _x000D_ _xD800_ _x41_"


def test_the_time_of_merged_ranges_grows_with_the_rows(written):
    path = written([["id", "output"], *([f"a{number}", "b"] for number in range(5_000))])
    ranges = "".join(f'<mergeCell ref="B{number}:C{number}"/>' for number in range(2, 5_002))
    edit(path, LAST_ROW, f"{LAST_ROW}<mergeCells>{ranges}</mergeCells>")
    start = process_time()
    assert "column C has no name" in faults(path)[0]
    assert process_time() - start < 5
