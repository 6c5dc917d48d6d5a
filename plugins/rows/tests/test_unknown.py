"""A value that JSON cannot hold is an error with its place, or a visible marker that is counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError, ReadCounts
from dicast.testing import run_pipeline
from dicast_rows import Csv, Json, Jsonl, Parquet, Xlsx, Yaml

LONG = "12345678901234567890123"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(48_000)


def outputs(source) -> tuple[list[object], ReadCounts]:
    with source.reading() as live:
        live.check()
        outputs_ = [subject.output for subject in live.subjects()]
        return outputs_, live.read_counts()


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
def test_a_number_of_more_than_64_bits_is_marked(tmp_path, name):
    make = {"rows.jsonl": Jsonl, "rows.json": Json, "rows.yaml": Yaml}[name]
    rows = [f'{{"output": {{"n": {LONG}, "m": 7, "f": 0.5}}}}', '{"output": "x"}']
    text = "\n".join(rows) if name.endswith("l") and name != "rows.yaml" else f"[{', '.join(rows)}]"
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match="64 bits"):
        outputs(make(tmp_path / name))
    outputs_, counts = outputs(make(tmp_path / name, unknown="mark"))
    assert outputs_ == [{"n": f"[number {LONG}]", "m": 7, "f": 0.5}, "x"]
    assert counts == ReadCounts(2, {"number": 1})


def test_tags_and_numbers_that_are_not_finite_are_marked_in_yaml(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text("- output: {a: !point 1, b: [.nan, 2]}\n")
    with pytest.raises(DataError, match="tag !point"):
        outputs(Yaml(path))
    outputs_, counts = outputs(Yaml(path, unknown="mark"))
    assert outputs_ == [{"a": "[tag !point 1]", "b": ["[.nan]", 2]}]
    assert counts == ReadCounts(1, {"tag !point": 1, "not finite": 1})


def test_other_faults_of_yaml_stay_errors(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text("- {output: !point 1, output: 2}\n")
    with pytest.raises(DataError, match="given twice"):
        outputs(Yaml(path, unknown="mark"))


def test_bytes_and_numbers_that_are_not_finite_are_marked_in_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "rows.parquet"
    rows = [
        {"output": "a", "image": {"bytes": PNG, "path": "a.png"}, "n": float("nan")},
        {"output": "b", "image": {"bytes": b"x", "path": None}, "n": 1.0},
    ]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    with pytest.raises(DataError, match="holds bytes"):
        outputs(Parquet(path))
    with Parquet(path, unknown="mark").reading() as live:
        live.check()
        first, second = (subject.context for subject in live.subjects())
        counts = live.read_counts()
    assert first == {"image": {"bytes": "[image/png, 48 kB]", "path": "a.png"}, "n": "[nan]"}
    assert second == {"image": {"bytes": "[bytes, 1 B]", "path": None}, "n": 1.0}
    assert counts == ReadCounts(2, {"image/png": 1, "bytes": 1, "not finite": 1})


def test_error_values_are_marked_in_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["output"], ["#N/A"], ["a"]):
        book.active.append(row)
    book.active["A2"].data_type = "e"
    book.save(tmp_path / "rows.xlsx")
    with pytest.raises(DataError, match="#N/A"):
        outputs(Xlsx(tmp_path / "rows.xlsx"))
    assert outputs(Xlsx(tmp_path / "rows.xlsx", unknown="mark")) == (["#N/A", "a"], ReadCounts(2, {"#N/A": 1}))


def test_every_cell_of_a_table_is_known(tmp_path):
    (tmp_path / "rows.csv").write_text(f"output\n{LONG}\n")
    assert outputs(Csv(tmp_path / "rows.csv", unknown="mark")) == ([LONG], ReadCounts(1))


def test_marks_are_in_the_document_and_in_the_summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.jsonl").write_text(f'{{"output": "a", "n": [{LONG}, {LONG}]}}\n')
    done = run_pipeline("source: {rows/jsonl: {path: rows.jsonl, unknown: mark}}\nmetrics: [proxy/format]").document
    assert done["read"] == {"records": 1, "subjects": {"row": 1}, "marked": {"number": 2}, "dropped": {}, "failed": 0}
    assert [warning["kind"] for warning in done["warnings"]] == ["marked_parts"]


@given(
    st.lists(
        st.lists(
            st.integers(-(10**25), 10**25) | st.text(max_size=3) | st.floats(allow_nan=False, allow_infinity=False),
            max_size=4,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_marked_and_mapped_parts_add_up_to_those_of_the_file(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("\n".join(json.dumps({"output": row}) for row in rows))
    outputs_, counts = outputs(Jsonl(path, unknown="mark"))
    long = sum(isinstance(cell, int) and not -(2**63) <= cell < 2**64 for row in rows for cell in row)
    assert counts.records == len(rows)
    assert counts.marked.get("number", 0) >= long  # a long fraction may be marked, too
    unchanged = [
        cell
        for row, read in zip(rows, outputs_, strict=True)
        for cell, other in zip(row, read, strict=True)
        if cell == other
    ]
    assert len(unchanged) + sum(counts.marked.values()) == sum(map(len, rows))
