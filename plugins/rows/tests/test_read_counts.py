"""The counts of each source of rows add up to the number of rows in its file."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import DataError, Due
from dicast_rows import Csv, Json, Jsonl, Parquet, Xlsx, Yaml

FIELDS = {"id": "custom_id", "output": "response.body.text"}

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
errors = st.one_of(
    st.fixed_dictionaries({"code": texts, "message": texts.filter(str.strip)}),
    st.just("too late"),
    st.just({"status": 500}),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 99) | texts, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
good = st.fixed_dictionaries(
    {"response": st.fixed_dictionaries({"status_code": st.just(200), "body": st.fixed_dictionaries({"text": values})})},
    optional={"error": st.none() | st.just({}) | texts, "extra": values},
)
failed = st.one_of(
    st.fixed_dictionaries({"response": st.none(), "error": errors}),
    st.fixed_dictionaries({"error": errors}),
    st.fixed_dictionaries(
        {"response": st.fixed_dictionaries({"status_code": st.integers(400, 599), "body": st.just({})})}
    ),
    st.fixed_dictionaries(
        {"response": st.fixed_dictionaries({"status_code": st.just(200), "body": st.just({"status": "failed"})})}
    ),
)
wrong = st.one_of(
    st.just({"response": None}),
    st.just({"response": {"body": {}}}),
    st.just({"custom_id": None, "response": {"body": {"text": "a"}}}),
)


def counted(source: Jsonl | Json | Csv | Yaml | Parquet) -> tuple[int, int, int]:
    """Read the whole source; return the records, the subjects and the failed ones that it counts."""
    with source.reading() as live:
        live.check()
        subjects = list(live.subjects())
        counts = live.read_counts()
        assert live.total == counts.records == len(subjects)
        assert not counts.marked
        assert not counts.dropped
        assert counts.failed == sum(isinstance(subject, Due) and subject.failure is not None for subject in subjects)
    return counts.records, counts.records - counts.failed, counts.failed


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> Jsonl | Json | Yaml:
    path = folder / name
    if name.endswith("jsonl"):
        path.write_text("\n\n".join(map(json.dumps, rows)) + "\n")
        return Jsonl(path, fields=FIELDS)
    if name.endswith("json"):
        path.write_text(json.dumps({"rows": rows}))
        return Json(path, at="rows", fields=FIELDS)
    path.write_text(yaml.safe_dump(rows, allow_unicode=True), encoding="utf-8")
    return Yaml(path, fields=FIELDS)


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
@given(st.lists(st.tuples(st.booleans(), good, failed), min_size=1, max_size=6))
def test_subjects_and_failed_records_are_all_that_the_file_has(tmp_path_factory, name, chosen):
    rows = [
        {**(right if is_good else broken), "custom_id": str(at)} for at, (is_good, right, broken) in enumerate(chosen)
    ]
    expected = len(rows), sum(is_good for is_good, _, _ in chosen), sum(not is_good for is_good, _, _ in chosen)
    source = write(tmp_path_factory.mktemp("rows"), name, rows)
    right = sum(
        is_good and row["response"]["body"]["text"] not in (None, "")
        for (is_good, _, _), row in zip(chosen, rows, strict=True)
    )
    records, _, failures = counted(source)
    # An output that is null, or blank next to an error, may be either; each record is counted once in any case.
    assert records == expected[0]
    assert expected[2] <= failures <= records - right


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json", "rows.yaml"])
@given(st.lists(good | failed, max_size=4), wrong, st.lists(good | failed, max_size=4))
def test_a_record_of_no_known_shape_refuses_the_file_and_is_named(tmp_path_factory, name, before, bad, after):
    rows = [{"custom_id": str(at), **row} for at, row in enumerate([*before, bad, *after])]
    with pytest.raises(DataError) as caught:
        counted(write(tmp_path_factory.mktemp("rows"), name, rows))
    assert len(caught.value.problems) == 1


@given(st.lists(st.tuples(texts, st.sampled_from(["", "nan", "timeout", "500 Server Error"])), min_size=1, max_size=8))
def test_each_record_of_a_table_is_a_subject_or_failed(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("output", "error", "n"), *((output, error, at) for at, (output, error) in enumerate(rows))]
        )
    failures = sum(not output.strip() and error not in ("", "nan") for output, error in rows)
    assert counted(Csv(path)) == (len(rows), len(rows) - failures, failures)


@given(st.lists(st.tuples(st.none() | texts, st.none() | st.sampled_from(["", "timeout"])), min_size=1, max_size=8))
def test_each_row_of_a_parquet_file_is_a_subject_or_failed(tmp_path_factory, rows):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    columns = {"output": [output for output, _ in rows], "error": [error for _, error in rows]}
    parquet.write_table(pa.table(columns, pa.schema([("output", pa.string()), ("error", pa.string())])), path)
    failures = sum(not (output or "").strip() and bool(error) for output, error in rows)
    assert counted(Parquet(path)) == (len(rows), len(rows) - failures, failures)


@settings(max_examples=10)
@given(
    st.lists(
        st.tuples(st.sampled_from([None, "a", " ", 7]), st.sampled_from([None, "timeout", "nan"])),
        min_size=1,
        max_size=6,
    )
)
def test_each_row_of_a_workbook_is_a_subject_or_failed(tmp_path_factory, rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for number, row in enumerate([("output", "error"), *rows]):
        book.active.append([number, *row] if number else ["n", *row])
    path = tmp_path_factory.mktemp("rows") / "rows.xlsx"
    book.save(path)
    failures = sum(output in (None, " ") and error == "timeout" for output, error in rows)
    assert counted(Xlsx(path)) == (len(rows), len(rows) - failures, failures)
