from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError, as_json, identifier, nearest
from dicast.toolkit.input_file import InputCheck, InputFile
from dicast.toolkit.json_values import MISSING, locate, lookup, read_json

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def written(folder: Path, data: bytes) -> InputFile:
    path = folder / "in.jsonl"
    path.write_bytes(data)
    return InputFile(path, "in.jsonl")


def objects(file: InputFile, limit: int = 1000) -> list[tuple[int, dict]]:
    return list(file.objects(limit))


def checked(file: InputFile, limit: int = 1000) -> str:
    with InputCheck(file) as check:
        count = 0
        for line, row in file.objects(limit, check):
            count += 1
            if "id" in row:
                check.add_id(row["id"], line)
        return check.finish(count)


def problems(file: InputFile, limit: int = 1000) -> list:
    with pytest.raises(DataError) as caught:
        checked(file, limit)
    return list(caught.value.problems)


def test_blank_lines_are_skipped_but_counted(tmp_path):
    assert objects(written(tmp_path, b'{"a":1}\n\n  \n{"a":2}')) == [(1, {"a": 1}), (4, {"a": 2})]


@pytest.mark.parametrize("data", [b'\xef\xbb\xbf{"a":1}\r\n{"a":2}\r\n', b'{"a":1}\n{"a":2}'])
def test_byte_order_mark_and_crlf_are_accepted(tmp_path, data):
    assert objects(written(tmp_path, data)) == [(1, {"a": 1}), (2, {"a": 2})]


def test_gzip_is_found_by_its_bytes_and_gives_the_same_digest(tmp_path):
    data = b'\xef\xbb\xbf{"a":1}\n{"a":2}\n'
    plain = checked(written(tmp_path, data))
    assert checked(written(tmp_path, gzip.compress(data))) == plain


def test_digest_changes_with_the_data(tmp_path):
    assert checked(written(tmp_path, b'{"a":1}')) != checked(written(tmp_path, b'{"a":2}'))


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_gzip_that_is_cut_short_is_an_error(tmp_path, cut):
    data = gzip.compress(orjson.dumps({"a": "".join(map(chr, range(32, 3000)))}) + b"\n")
    (problem,) = problems(written(tmp_path, data[: len(data) - cut]), 100_000)[:1]
    assert "cannot be read" in problem.message
    assert problem.file == "in.jsonl"


def test_gzip_with_a_broken_body_is_an_error(tmp_path):
    data = bytearray(gzip.compress(b'{"a":1}\n' * 1000))
    data[15] ^= 255
    assert "cannot be read" in problems(written(tmp_path, bytes(data)))[0].message


def test_directory_is_no_input(tmp_path):
    with pytest.raises(DataError, match="cannot be opened: this is a folder"):
        objects(InputFile(tmp_path, "here"))


def test_missing_file_names_the_nearest(tmp_path):
    (tmp_path / "support.jsonl").touch()
    with pytest.raises(DataError, match=r"no such file, did you mean 'support\.jsonl'\?"):
        objects(InputFile(tmp_path / "suport.jsonl", "suport.jsonl"))


def test_missing_folder_is_no_such_file(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        objects(InputFile(tmp_path / "no" / "no.jsonl", "no.jsonl"))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_empty_file_has_no_subjects(tmp_path, data):
    assert "no subjects" in problems(written(tmp_path, data))[0].message


def test_bytes_that_are_not_utf8_are_named_with_line_and_column(tmp_path):
    (problem,) = problems(written(tmp_path, b'{"a":1}\n{"a":"\xff"}\n'))
    assert (problem.line, problem.column) == (2, 7)
    assert "byte 0xff is not UTF-8" in problem.message


@pytest.mark.parametrize(
    "bad", [b"[1]", b"3", b"null", b'"x"', b"{", b'{"a":NaN}', b'{"a":1e999}', b'{"a":"\\ud800"}', b"{} {}"]
)
def test_line_that_is_no_json_object_is_reported(tmp_path, bad):
    (problem,) = problems(written(tmp_path, b"{}\n" + bad + b"\n{}\n"))
    assert problem.line == 2


@pytest.mark.parametrize(("opening", "end"), [("[", "]"), ('{"a":', "}")])
def test_line_nested_too_deep_to_be_written_is_reported(tmp_path, opening, end):
    # the row itself is the first of the 200 levels
    rows = [f'{{"v":{opening * levels}1{end * levels}}}\n' for levels in (199, 200, 900)]
    assert [line for line, _ in objects(written(tmp_path, rows[0].encode()), 10_000)] == [1]
    reports = problems(written(tmp_path, "".join(rows).encode()), 10_000)
    assert [problem.line for problem in reports] == [2, 3]
    assert reports[0].message == (
        "more than 200 levels of nesting cannot be recorded; flatten the line, or keep its deep part as text"
    )


def test_line_with_many_brackets_that_is_not_deep_is_read(tmp_path):
    row = {"v": [{}] * 300 + ["[{" * 300]}
    assert objects(written(tmp_path, orjson.dumps(row)), 10_000) == [(1, row)]


def test_every_bad_line_is_counted_and_the_first_hundred_named(tmp_path):
    reports = problems(written(tmp_path, b"{\n" * 1334))
    assert [problem.line for problem in reports[:-1]] == list(range(1, 101))
    assert reports[-1].message == "… and 1,234 more"


def test_without_a_check_the_first_bad_line_is_raised(tmp_path):
    with pytest.raises(DataError, match=r"^in\.jsonl:2:2: the line is not JSON"):
        objects(written(tmp_path, b"{}\n{\n[\n"))


def test_line_that_is_too_long_is_reported_and_the_next_ones_read(tmp_path):
    file = written(tmp_path, b'{"a":1}\n' + b"x" * 5000 + b'\n{"a":2}\n' + b"y" * 4000)
    assert [(problem.line, problem.message) for problem in problems(file, 10)] == [
        (2, "the line is longer than max_line_bytes (10)"),
        (4, "the line is longer than max_line_bytes (10)"),
    ]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_line_of_exactly_the_limit_is_read(tmp_path, end):
    assert objects(written(tmp_path, b'{"a":12}' + end), 8) == [(1, {"a": 12})]
    assert "longer than" in problems(written(tmp_path, b'{"a":123}' + end), 8)[0].message


def test_enormous_line_is_not_held_in_memory(tmp_path):
    import tracemalloc

    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(2**28)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="longer than max_line_bytes"):
            objects(InputFile(path, "huge"), 2**16)
        with InputCheck(InputFile(path, "huge")) as check:
            list(check.file.objects(2**16, check))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_duplicate_ids_name_both_lines(tmp_path):
    file = written(tmp_path, b'{"id":"a"}\n{"id":"b"}\n\n{"id":"a"}\n{"id":"a"}\n')
    assert [(problem.line, problem.message) for problem in problems(file)] == [
        (4, "duplicate id 'a', first on line 1"),
        (5, "duplicate id 'a', first on line 1"),
    ]


def test_duplicates_and_bad_lines_come_in_the_order_of_the_lines_and_are_counted_together(tmp_path):
    reports = problems(written(tmp_path, b'{"id":"a"}\n{"id":"a"}\n{\n' + b'{"id":"b"}\n' * 201))
    assert [problem.line for problem in reports[:3]] == [2, 3, 5]
    assert len(reports) == 101
    assert reports[-1].message == "… and 102 more"


def test_duplicates_are_found_across_batches(tmp_path):
    with InputCheck(written(tmp_path, b"")) as check:
        for line in range(1, 12_001):
            check.add_id(str(line), line)
        check.add_id("7", 12_001)
        with pytest.raises(DataError, match="duplicate id '7', first on line 7"):
            check.finish(1)


def test_same_id_of_another_kind_is_no_duplicate(tmp_path):
    with InputCheck(written(tmp_path, b"")) as check:
        check.add_id("a", 1)
        check.add_id("a", 1, "session id")
        assert check.finish(1)


def test_standard_input_is_read_twice(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b'{"a":1}\n{'))))
    with InputFile.opened(Path("-")) as file:
        for _ in range(2):
            with pytest.raises(DataError, match=r"^<stdin>:2:2: the line is not JSON"):
                objects(file)
        spooled = file.path
    assert not spooled.exists()


@pytest.mark.skipif(not hasattr(__import__("os"), "mkfifo"), reason="this system has no named pipes")
def test_named_pipe_is_read_twice(tmp_path):
    import os
    import threading

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b'{"a":1}\n',))
    writer.start()
    with InputFile.opened(pipe) as file:
        writer.join()
        assert objects(file) == objects(file) == [(1, {"a": 1})]


@given(st.lists(json_values))
def test_what_was_written_is_read(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("lines") / "x"
    path.write_bytes(b"".join(orjson.dumps({"v": value}) + b"\n" for value in values))
    assert [row["v"] for _, row in InputFile(path, "x").objects()] == values


@pytest.mark.parametrize(
    ("path", "value"), [("a", 1), ("b.c.1", "y"), ("b.x", MISSING), ("b.c.2", MISSING), ("a.a", MISSING), ("d.e", 5)]
)
def test_lookup_follows_dotted_paths(path, value):
    assert lookup({"a": 1, "b": {"c": ["x", "y"]}, "d.e": 5, "d": {"e": 6}}, path) == value


@pytest.mark.parametrize(
    ("field", "value"),
    [("a.0", 1), ("/a/0", 1), ("a.2", MISSING), ("/a/x", MISSING), ("/b.c/~1~0", 2), ("b.c", {"/~": 2}), ("d", None)],
)
@pytest.mark.parametrize("read", [orjson.loads, lambda text: text], ids=["object", "text"])
def test_locate_follows_dotted_paths_and_json_pointers_in_json_and_its_text(read, field, value):
    assert locate(read('{"a": [1, 5], "b.c": {"/~": 2}, "d": null}'), field) == value


@pytest.mark.parametrize("output", ["prose", "3", 3, None, [1]])
def test_what_is_no_object_has_no_fields(output):
    assert locate(output, "a") is locate(output, "/a") is MISSING


@pytest.mark.parametrize(
    ("value", "id"), [("a", "a"), (7, "7"), (2**64 - 1, "18446744073709551615"), (1.5, "1.5"), (True, "true")]
)
def test_numbers_and_truth_values_become_ids_as_json_writes_them(value, id):
    assert identifier(value) == id


@pytest.mark.parametrize("value", [None, {}, [], "", orjson.loads("123456789012345678901"), 1e300])
def test_what_is_no_faithful_name_is_no_id(value):
    with pytest.raises(DataError):
        identifier(value)


def test_nearest_is_none_when_nothing_is_near():
    assert nearest("zzz", ["abc"]) is None
    assert nearest("forbiden", ["required", "forbidden"]) == "forbidden"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": 1}\n```\n', {"a": 1}),
        ("```\r\nnull\n```", None),
        ({"a": 1}, {"a": 1}),
        ("Sure: {}", MISSING),
        ("```json\n1\n``` it is", MISSING),
    ],
)
def test_a_reply_is_json_alone_or_in_one_fenced_block(content, value):
    assert as_json(content) == value


@pytest.mark.parametrize(
    "number",
    ["12345678901234567890901", "18446744073709551616", "-9223372036854775809", "9" * 300, "12345678901234567890.5"],
)
def test_a_number_that_cannot_be_recorded_exactly_is_refused_with_its_place(tmp_path, number):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n{"b": [' + number + "]}\n")
    with InputFile.opened(path) as file, InputCheck(file) as check:
        assert [line for line, _ in file.objects(check=check)] == [1]
        with pytest.raises(DataError) as caught:
            check.finish(1)
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (2, 8)
    assert number[:20] in problem.message
    assert "write it as a string" in problem.message


@pytest.mark.parametrize(
    "text",
    ["18446744073709551615", "-9223372036854775808", '"12345678901234567890901"', "0.1000000000000000001", "1e300",
     "0.10000000000000000555", "123456789012345680000.0"],
)  # fmt: skip
def test_what_is_recorded_as_it_is_written_is_read(tmp_path, text):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": ' + text + "}\n")
    with InputFile.opened(path) as file, InputCheck(file) as check:
        assert [value["a"] for _, value in file.objects(check=check)] == [json.loads(text)]
        check.finish(1)


def test_json_text_is_read_with_integers_of_any_length():
    assert read_json('{"a": 12345678901234567890901}') == {"a": 12345678901234567890901}
    assert locate('{"a": 12345678901234567890901}', "a") == 12345678901234567890901
    assert type(read_json(b"1.5")) is float
    for bad in ("9" * 5000, "NaN", "{"):
        with pytest.raises(orjson.JSONDecodeError):
            read_json(bad)
