"""Datasets of the evaluator protocol: ``protocol: evaluator`` of ``rows/jsonl``, and ``dicast.toolkit.dataset.read_dataset``."""

from __future__ import annotations

import codecs

import pytest

from dicast import DataError
from dicast.toolkit.dataset import read_dataset
from dicast_rows import Jsonl


@pytest.fixture
def dataset(tmp_path):
    def write(data: bytes) -> Jsonl:
        (tmp_path / "d.jsonl").write_bytes(data)
        return Jsonl(tmp_path / "d.jsonl", protocol="evaluator")

    return write


def faults(source: Jsonl) -> list[tuple[int | None, str]]:
    with pytest.raises(DataError) as caught:
        source.check()
    with pytest.raises(DataError) as again:
        read_dataset(source.path)
    assert again.value.problems == caught.value.problems
    assert {problem.file for problem in caught.value.problems} == {str(source.path)}
    return [(problem.line, problem.message.replace(str(source.path), "P")) for problem in caught.value.problems]


def test_a_record_may_have_any_fields_and_is_the_example_whole(dataset):
    source = dataset(codecs.BOM_UTF8 + b'\n{"id": [1], "input": "q", "meta": {"a": 1}}\r\n \n{"id": [1]}\n')
    first, second = source.subjects()
    assert (first.id, first.input, second.id) == ("2", "q", "4")
    assert first.context == {"meta": {"a": 1}, "example": {"id": [1], "input": "q", "meta": {"a": 1}}}
    assert read_dataset(source.path) == [first.context["example"], {"id": [1]}]
    source.check()  # ids that occur twice are no matter


def test_every_bad_line_is_named_with_path_physical_line_and_reason(dataset):
    bad = [b"[1]", b'"a"', b"null"] * 50
    source = dataset(b"\n".join([b'{"ok": 1}', b"", b'{"bad":', b'{"x": "\xff"}', *bad]))
    problems = faults(source)
    assert len(problems) == 2 + len(bad)
    assert problems[0][0] == 3
    assert problems[0][1].startswith("Invalid JSON in dataset 'P' at line 3: ")
    assert problems[1] == (4, "Dataset 'P' is not valid UTF-8: byte 0xff at line 4")
    assert problems[2] == (5, "Invalid record in dataset 'P' at line 5: expected JSON object, got a list")


def test_10_000_records_pass_and_the_next_one_is_named_with_the_bad_lines_after_it(dataset):
    records = b'\n{"a": 1}' * 10_000
    source = dataset(records + b"\n\n")
    source.check()
    assert len(read_dataset(source.path)) == 10_000
    problems = faults(dataset(records + b'\n{"b": 1}\n{}\n{'))
    assert problems[0] == (10_002, "Dataset 'P' has too many records: maximum 10000")
    assert [line for line, _ in problems] == [10_002, 10_004]


def test_an_empty_dataset_has_no_records_and_one_that_is_not_there_is_named(dataset, tmp_path):
    assert read_dataset(dataset(b"\n \n").path) == []
    with pytest.raises(DataError, match="no such file"):
        read_dataset(tmp_path / "none.jsonl")
