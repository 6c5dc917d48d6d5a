"""Documents that are longer than the memory should hold: their detection, their items, and their numbers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast.toolkit.beginning import read_beginning
from dicast.toolkit.conversations import Rules
from dicast.toolkit.document_parts import split_documents
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.json_values import inexact, is_inexact
from dicast.toolkit.repeats import UniqueNames
from dicast.toolkit.session_reading import SessionReading, Totals

ITEMS = [{"id": number, "text": 'a "quoted" [text] {' * 60} for number in range(1500)]


def split(path, text, most=2**20):
    """Return the items of ``cases`` in a file, and the problems."""
    path.write_text(text, encoding="utf-8")
    with InputFile.opened(path) as file, InputCheck(file) as check, UniqueNames() as names:
        reading = SessionReading(file, "", Rules(), True, most, check, Totals(), names)
        found = [(number, json.loads(json.dumps(value))) for _, number, value in split_documents(reading, [("cases",)])]
        return found, [(problem.line, problem.message) for problem in check._problems]


@pytest.mark.parametrize("indent", [None, 1])
def test_the_detection_of_a_long_document_sees_its_last_member(tmp_path, indent):
    path = tmp_path / "long.json"
    path.write_text(
        json.dumps({"version": 1, "cases": ITEMS, "last": {"kind": "log"}}, indent=indent), encoding="utf-8"
    )
    beginning = read_beginning(path, "utf-8")
    (record,) = beginning.records
    assert beginning.layout == "document"
    assert (record["version"], record["last"]) == (1, {"kind": "log"})
    assert record["cases"] == ITEMS[: len(record["cases"])]
    assert 0 < len(record["cases"]) < len(ITEMS)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_is_split_into_its_items(tmp_path, indent):
    document = {"name": "first", "cases": ITEMS, "after": 1}
    found, problems = split(tmp_path / "long.json", json.dumps(document, indent=indent), most=4000)
    assert problems == []
    assert [number for number, _ in found] == list(range(len(ITEMS)))
    assert all(value == {"name": "first", "cases": [item]} for (_, value), item in zip(found, ITEMS, strict=True))


def test_several_documents_in_a_row_are_split(tmp_path):
    documents = [{"cases": [{"a": 1}, {"a": 2}]}, {"cases": []}, {"other": [1]}, {"cases": [{"a": 3}]}]
    found, problems = split(tmp_path / "many.json", "\n".join(json.dumps(item, indent=1) for item in documents))
    assert problems == []
    assert [value.get("cases", value) for _, value in found] == [[{"a": 1}], [{"a": 2}], [], {"other": [1]}, [{"a": 3}]]


@pytest.mark.parametrize(
    ("text", "line"),
    [('{"cases": [{"a": 1},\n{"a": 2}', 2), ('{"cases": [{"a": 1}]\n', 2), ('{"a" 1}', 1), ("{}\n7", 2), ('{"cases": [}', 1)],
)  # fmt: skip
def test_a_broken_document_is_one_problem_with_its_line(tmp_path, text, line):
    _, problems = split(tmp_path / "broken.json", text)
    assert [number for number, _ in problems] == [line]


DIGITS = st.one_of(
    st.integers(-(2**66), 2**66).map(str),
    st.integers(10**18, 10**19).map(str),
    st.from_regex(r"[1-9][0-9]{15,20}\.[0-9]{1,4}", fullmatch=True),
    st.from_regex(r"0\.[0-9]{17,22}", fullmatch=True),
    st.from_regex(r"[1-9][0-9]{18}e[0-9]", fullmatch=True),
)


@given(
    st.lists(DIGITS, max_size=4), st.lists(st.from_regex(r"[ab:,]?[0-9]{17,21}[ab:,.e]?", fullmatch=True), max_size=3)
)
def test_a_number_that_cannot_be_recorded_is_found_next_to_times_in_nanoseconds(numbers, texts):
    text = f'{{"numbers": [{", ".join(numbers)}], "texts": {json.dumps(texts)}, "time": 1777555053780274700}}'
    long = [
        number for number in numbers if any(len(run) >= 19 for run in number.lstrip("-").replace("e", ".").split("."))
    ]
    expected = any(map(is_inexact, numbers))
    assert inexact(text.encode()) is None or expected
    if any(map(is_inexact, long)):
        assert inexact(text.encode()) in numbers
