"""Files that grow, are truncated, rotated, renamed, or broken."""

from __future__ import annotations

import gzip
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import DataError
from dicast_traces.live import following, tail
from dicast_traces.live.following import Following
from dicast_traces.live.lines import Splitter, body_lines


@pytest.fixture
def path(tmp_path):
    return tmp_path / "trace.jsonl"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def read(followed):
    return [line.data for line in followed.read(10**6)]


@pytest.fixture
def followed(path):
    with Following(path, 1000) as following_:
        yield following_


def test_only_whole_lines_are_given(path, followed):
    append(path, b'{"a":1}\n{"b"')
    assert read(followed) == [b'{"a":1}']
    assert read(followed) == []
    append(path, b":2}\n")
    assert read(followed) == [b'{"b":2}']
    assert followed.unread == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX")
def test_pipe_or_directory_that_is_named_like_a_trace_is_complained_of_once_and_left_out(tmp_path):
    os.mkfifo(tmp_path / "a.jsonl")
    (tmp_path / "b.jsonl").mkdir()
    append(tmp_path / "c.jsonl", b"x\n")
    with Following(tmp_path, 1000) as followed:
        faults = [(line.source[-7:], line.fault) for line in followed.read(10**6)]
        why = "the file cannot be read: it is a named pipe or a directory"
        assert faults == [("a.jsonl", why), ("b.jsonl", why), ("c.jsonl", None)]
        assert read(followed) == []


def test_file_may_come_later(path, followed):
    assert read(followed) == []
    append(path, b"x\n")
    assert read(followed) == [b"x"]


def test_byte_order_mark_is_no_part_of_the_first_line(path, followed):
    append(path, b"\xef\xbb\xbfx\r\ny\n")
    assert read(followed) == [b"x\r", b"y"]


def test_lines_are_numbered_as_in_the_file(path, followed):
    append(path, b"a\n\nb\n")
    assert [(line.source, line.number, line.data) for line in followed.read(10**6)] == [
        (str(path), 1, b"a"),
        (str(path), 2, b""),
        (str(path), 3, b"b"),
    ]


def test_line_that_is_too_long_is_a_fault_once_and_not_held(path, followed):
    append(path, b"ok\n" + b"x" * 600)
    assert read(followed) == [b"ok"]
    append(path, b"x" * 600)
    (line,) = followed.read(10**6)
    assert (line.number, line.fault) == (2, "the line is longer than max_line_bytes (1,000)")
    append(path, b"x" * 3000 + b"\nnext\n")
    assert [(line.number, line.data) for line in followed.read(10**6)] == [(3, b"next")]


def test_truncated_file_is_read_from_its_start(path, followed):
    append(path, b"first\nsecond\n")
    assert read(followed) == [b"first", b"second"]
    path.write_bytes(b"new\n")
    assert read(followed) == [b"new"]


def test_file_that_was_truncated_and_has_grown_beyond_is_read_from_its_start(path, followed):
    append(path, b"first\n")
    assert read(followed) == [b"first"]
    path.write_bytes(b"other\nand more\n")
    assert read(followed) == [b"other", b"and more"]


def test_rotated_file_is_read_to_its_end_before_the_new_one(path, followed):
    append(path, b"a\n")
    assert read(followed) == [b"a"]
    append(path, b"b\n")
    path.rename(path.with_suffix(".1"))
    append(path, b"d\n")
    append(path.with_suffix(".1"), b"c\n")
    assert read(followed) == [b"b", b"c", b"d"]
    append(path.with_suffix(".1"), b"late\n")  # its writer had it open
    assert read(followed) == [b"late"]


def test_rotated_file_is_let_go_with_its_last_line(path, followed, monkeypatch):
    append(path, b"a\nunfinished")
    assert read(followed) == [b"a"]
    path.rename(path.with_suffix(".1"))
    append(path, b"b\n")
    monkeypatch.setattr(following, "GONE_SECONDS", 0.0)
    assert read(followed) == [b"unfinished", b"b"]
    assert followed.file_count == 1


def test_directory_is_followed_with_new_files_and_renamed_ones(tmp_path):
    append(tmp_path / "a.jsonl", b"a1\n")
    append(tmp_path / "notes.txt", b"no\n")
    with Following(tmp_path, 1000) as followed:
        assert read(followed) == [b"a1"]
        append(tmp_path / "b.jsonl", b"b1\n")
        (tmp_path / "a.jsonl").rename(tmp_path / "c.jsonl")
        append(tmp_path / "c.jsonl", b"a2\n")
        assert read(followed) == [b"a2", b"b1"]
        (tmp_path / "c.jsonl").unlink()
        assert read(followed) == []


def test_directory_of_more_files_than_may_be_open(tmp_path, monkeypatch):
    monkeypatch.setattr(following, "MAX_OPEN", 2)
    paths = [tmp_path / f"{number}.jsonl" for number in range(6)]
    with Following(tmp_path, 1000) as followed:
        for path in paths:
            append(path, b"1\n")
        assert read(followed) == [b"1"] * 6
        assert sum(item_.is_open for item_ in followed._tails.values()) == 2
        for path in paths:
            append(path, b"2\n")
        assert read(followed) == [b"2"] * 6
        paths[0].unlink()
        assert read(followed) == []
        assert followed.file_count == 5


def test_compressed_file_is_refused_with_what_to_do(path, followed):
    append(path, gzip.compress(b"x\n"))
    (line,) = followed.read(10**6)
    assert "compressed" in str(line.fault)
    assert "dicast run" in str(line.fault)
    append(path, b"more")
    assert read(followed) == []
    assert followed.unread == 0


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_file_that_cannot_be_read_is_a_fault_once(tmp_path):
    append(tmp_path / "a.jsonl", b"a\n")
    (tmp_path / "a.jsonl").chmod(0)
    append(tmp_path / "b.jsonl", b"b\n")
    with Following(tmp_path, 1000) as followed:
        assert [line.fault or line.data for line in followed.read(10**6)][1:] == [b"b"]
        assert read(followed) == []


def test_last_line_without_line_end_is_given_on_request_where_it_is_whole(path, followed):
    append(path, b'{"a":1}\n{"b":2}')
    assert read(followed) == [b'{"a":1}']
    assert [line.data for line in followed.rest()] == [b'{"b":2}']
    assert followed.rest() == []
    append(path, b'\n{"c')
    assert read(followed) == [b""]
    assert followed.rest() == []


def positions(followed):
    """Return the positions as a ledger returns them."""
    import orjson

    return orjson.loads(orjson.dumps(followed.positions()))


def test_another_process_goes_on_where_the_last_one_was(path, followed):
    append(path, b"a\nb\nhal")
    assert read(followed) == [b"a", b"b"]
    with Following(path, 1000) as later:
        later.restore(positions(followed))
        append(path, b"f\n")
        assert [(line.number, line.data) for line in later.read(10**6)] == [(3, b"half")]


def test_another_process_reads_the_rest_of_a_file_that_was_rotated_meanwhile(path, followed):
    append(path, b"a\n")
    assert read(followed) == [b"a"]
    left = positions(followed)
    append(path, b"b\n")
    path.rename(path.with_suffix(".1"))
    append(path, b"c\n")
    with Following(path, 1000) as later:
        later.restore(left)
        assert read(later) == [b"b", b"c"]


def test_a_third_process_goes_on_where_the_second_was_in_a_renamed_file(path, followed):
    append(path, b"a\n")
    assert read(followed) == [b"a"]
    left = positions(followed)
    append(path, b"b\n")
    path.rename(path.with_suffix(".1"))
    with Following(path, 1000) as second:
        second.restore(left)
        assert read(second) == [b"b"]
        left += positions(second)
    append(path.with_suffix(".1"), b"c\n")
    with Following(path, 1000) as third:
        third.restore(left)
        assert read(third) == [b"c"]


def test_another_process_reads_a_replaced_file_from_its_start_and_a_copy_from_where_it_was(path, followed, tmp_path):
    append(path, b"first\nsecond\n")
    assert read(followed) == [b"first", b"second"]
    left = positions(followed)
    copy = tmp_path / "copy"
    copy.write_bytes(path.read_bytes() + b"third\n")
    copy.rename(path)
    with Following(path, 1000) as later:
        later.restore(left)
        assert read(later) == [b"third"]
    copy.write_bytes(b"another\nsecond\nthird\n")
    copy.rename(path)
    with Following(path, 1000) as later:
        later.restore(left)
        assert read(later) == [b"another", b"second", b"third"]


def test_positions_are_told_of_what_was_read_since(path, followed):
    append(path, b"a\n")
    read(followed)
    assert [(item_["offset"], item_["line"]) for item_ in followed.positions()] == [(2, 1)]
    read(followed)
    assert followed.positions() == []


def test_large_file_is_read_in_parts(path, followed, monkeypatch):
    monkeypatch.setattr(tail, "CHUNK", 100)
    append(path, b"".join(b"%03d\n" % number for number in range(200)))
    numbers_ = []
    while new := followed.read(100):
        assert len(new) <= 25
        numbers_ += [int(line.data) for line in new]
    assert numbers_ == list(range(200))


def test_a_line_of_several_parts_is_read_at_once_unless_it_is_longer_than_asked_for(path, followed, monkeypatch):
    monkeypatch.setattr(tail, "CHUNK", 100)
    append(path, b"a" * 350 + b"\nb\n")
    assert [len(line.data) for line in followed.read(1000)] == [350, 1]
    assert not followed.is_behind
    append(path, b"c" * 350 + b"\n")
    assert (followed.read(200), followed.is_behind) == ([], True)
    assert [len(line.data) for line in followed.read(200)] == [350]


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(0, 200)))
def test_lines_are_the_same_however_the_bytes_come(lines, cuts):
    lines = [line.replace(b"\n", b"").removeprefix(b"\xef\xbb\xbf") for line in lines]
    data = b"".join(line + b"\n" for line in lines)
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    splitter = Splitter("x", 1000)
    numbers_ = [
        line.data for start, end in zip(places, places[1:], strict=False) for line in splitter.cut(data[start:end])
    ]
    assert numbers_ == lines
    assert splitter.offset == len(data)


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        (b'{"a":1}', [1]),
        (b'{"a":1}\n{"b":2}\n', [1, 2, 3]),
        (b'{"a":1}\n\n{"b":2}', [1, 2, 3]),
        (b'[{"a":1},{"b":2}]', [1, 2]),
        (b'{\n  "a": 1\n}\n', [1]),
        (b"", [1]),
    ],
)
def test_body_of_a_request_may_be_lines_an_array_or_one_object(body, numbers):
    assert [line.number for line in body_lines("x", body, 1000)] == numbers


def test_body_that_is_no_array_says_where():
    with pytest.raises(DataError, match="the array is not JSON"):
        body_lines("x", b'[{"a":1},', 1000)


def test_object_that_is_too_long_in_a_body_is_a_fault():
    (line,) = body_lines("x", b'{"a":"%s"}' % (b"x" * 1000), 1000)
    assert line.fault


def test_array_that_is_nested_too_deeply_is_refused():
    with pytest.raises(DataError, match="nested too deeply"):
        body_lines("x", b"[" + b'{"a":' * 500 + b"1" + b"}" * 500 + b"]", 10_000)
