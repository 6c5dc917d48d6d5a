"""METRIC and ASI lines: their syntax, the value that counts, and that no stream is too long."""

from __future__ import annotations

import math
import re
import time
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast.toolkit.metric_lines import Measurements, MetricLines

LENIENT = re.compile(r"METRIC[ \t]+([\w.µ]+)=([-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?)[ \t]*\r?")
STRICT = re.compile(r"METRIC ([\w.]+)=([-+]?[0-9]*\.?[0-9]+)")


def read(text: str | bytes, syntax: str = "lenient") -> Measurements:
    lines = MetricLines(syntax)
    lines.feed(text if isinstance(text, bytes) else text.encode())
    return lines.result()


@pytest.mark.parametrize(
    ("line", "strict", "lenient"),
    [
        ("METRIC a=1", 1, 1),
        ("METRIC  a=1", None, 1),
        ("METRIC\ta=1", None, 1),
        ("METRIC a=1 ", None, 1),
        ("METRIC a=1\r", None, 1),
        (" METRIC a=1", None, None),
        ("metric a=1", None, None),
        ("METRICa=1", None, None),
        ("METRIC a=.5", 0.5, 0.5),
        ("METRIC a=+5", 5, 5),
        ("METRIC a=-0.5", -0.5, -0.5),
        ("METRIC a=5.", None, 5),
        ("METRIC a=1e3", None, 1000),
        ("METRIC a=1.5E-1", None, 0.15),
        ("METRIC a=0x10", None, None),
        ("METRIC a=1_000", None, None),
        ("METRIC a=1,000", None, None),
        ("METRIC a=NaN", None, None),
        ("METRIC a=Infinity", None, None),
        ("METRIC a=inf", None, None),
        ("METRIC a=1e999", None, None),
        ("METRIC a=" + "9" * 400, None, None),
        ("METRIC a=1 ms", None, None),
        ("METRIC a=", None, None),
        ("METRIC a==1", None, None),
        ("METRIC a b=1", None, None),
        ("METRIC a-b=1", None, None),
        ("METRIC a=١", None, None),
        ("METRIC a=.", None, None),
        ("METRIC a=--1", None, None),
        ("METRIC\na=3", None, None),
        ("METRIC a=1\x00", None, None),
    ],
)
def test_a_line_counts_or_does_not(line, strict, lenient):
    for syntax, expected in (("strict", strict), ("lenient", lenient)):
        assert read(f"{line}\n", syntax).metrics == ({} if expected is None else {"a": expected})


@pytest.mark.parametrize("syntax", ["strict", "lenient"])
def test_names_may_have_letters_of_any_alphabet(syntax):
    subjects = read("METRIC total_µs=15200\nMETRIC größe.1=2\nMETRIC a€=3\n", syntax)
    assert subjects.metrics == {"total_µs": 15200, "größe.1": 2}


def test_the_last_value_counts_in_the_order_of_first_occurrence():
    subjects = read("METRIC b=1\nMETRIC a=2\nnoise\nMETRIC b=3\nMETRIC b=nan\nMETRIC b=1e999\n")
    assert list(subjects.metrics.items()) == [("b", 3), ("a", 2)]


def test_names_that_mean_something_else_in_javascript_are_left_out():
    assert read("METRIC __proto__=1\nMETRIC constructor=2\nMETRIC prototype=3\nMETRIC a=4").metrics == {"a": 4}


def test_the_last_line_needs_no_newline():
    assert read("x\nMETRIC a=1").metrics == {"a": 1}


def test_bytes_that_are_no_utf_8_spoil_their_own_line_alone():
    assert read(b"\xff\xfe\nMETRIC a\xff=1\nMETRIC b=2\nASI note=\xff!\n") == Measurements(
        {"b": 2}, {"note": "\ufffd!"}
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("enabled=true", True),
        ("enabled=false", False),
        ("enabled=null", None),
        ("enabled=True", "True"),
        ("count=42", 42),
        ("ratio=3.14", 3.14),
        ("ratio=-3", -3),
        ("ratio=1e3", "1e3"),
        ("huge=" + "9" * 30, 1e30),
        ("huge=" + "9" * 5000, "9" * 5000),
        ('meta={"key":"value"}', {"key": "value"}),
        ('list=[1, "b", null]', [1, "b", None]),
        ('text="a\\nb"', "a\nb"),
        ("broken={notjson", "{notjson"),
        ("nan=[NaN]", "[NaN]"),
        ("deep=" + "[" * 300 + "]" * 300, "[" * 300 + "]" * 300),
        ("hint=try = twice \r", "try = twice"),
        ("a-b.c=x", "x"),
    ],
)
def test_an_asi_value_is_a_number_a_word_of_json_or_text(line, expected):
    name = line.partition("=")[0]
    (value,) = read(f"ASI {line}\n").asi.values()
    assert (value, type(value)) == (expected, type(expected))
    assert list(read(f"ASI {line}\n").asi) == [name]


def test_of_asi_lines_the_last_valid_one_counts():
    assert read("ASI a=1\nASI b=2\n ASI a=5\nASI a= \nASI c=\f\nASI =5\nASI a b=5\nASI a=3\n").asi == {
        "a": 3,
        "b": 2,
        "c": "\f",
    }


ALPHABET = st.text('METRIC ASIabµ=.-+0159eE\n\r\t_{"]', max_size=30)
LINES = st.lists(st.one_of(ALPHABET, st.from_regex(LENIENT, fullmatch=True), ALPHABET.map("METRIC a={}".format)))


@given(LINES, st.lists(st.integers(0, 400), max_size=8), st.sampled_from(["lenient", "strict"]))
def test_any_cut_of_a_stream_gives_what_the_rule_says_line_by_line(lines, cuts, syntax):
    data = "\n".join(lines).encode()
    pattern, expected = LENIENT if syntax == "lenient" else STRICT, {}
    for line in "\n".join(lines).split("\n"):
        if (match := pattern.fullmatch(line)) and math.isfinite(float(match[2])):
            expected[match[1]] = float(match[2])
    result, places = MetricLines(syntax), [0, *sorted(cuts), len(data)]
    for start, end in zip(places, places[1:], strict=False):
        result.feed(data[start:end])
    assert list(result.result().metrics.items()) == list(expected.items())


FEW = st.lists(
    st.tuples(st.sampled_from(["a", "b", "total_µs", "zz"]), st.sampled_from(["1", "2.5", "nan", "1e999", "7."]))
)


@settings(max_examples=20)
@given(FEW, FEW, FEW)
def test_a_stream_full_of_metrics_is_read_like_a_short_one(first, second, third):
    large = [*first, *(("a", str(n)) for n in range(9_000)), *second, *(("b", str(n)) for n in range(9_000)), *third]
    expected, result = {}, MetricLines()
    for name, value in large:
        if value not in ("nan", "1e999"):
            expected[name] = float(value)
    data = "".join(f"METRIC {name}={value}\n" for name, value in large).encode()
    for start in range(0, len(data), 70_000):
        result.feed(data[start : start + 70_000])
    assert list(result.result().metrics.items()) == list(expected.items())


def test_what_is_too_long_to_keep_is_counted():
    long = b"x" * 3_000_000
    subjects = read(b"METRIC a=1\n" + long + b"\nMETRIC b=" + b"1" * 2_000_000 + b"\nASI c=" + long + b"\nMETRIC d=4\n")
    assert subjects == Measurements({"a": 1, "d": 4}, {}, dropped=2)
    large = b"".join(b"METRIC %s%d=1\n" % (b"n" * 100_000, number) for number in range(200))
    assert read(large).dropped == 200 - len(read(large).metrics) > 0


def test_no_line_takes_time_out_of_proportion():
    begin = time.process_time()
    for hard in (
        b"METRIC a=" + b"1" * 900_000 + b"x\n",
        b"METRIC " + b"a" * 900_000 + b"\n",
        b"METRIC" + b" " * 900_000 + b"\n",
    ):
        assert read(hard * 3).metrics == {}
    assert time.process_time() - begin < 5


def test_a_long_stream_takes_little_memory_and_time():
    pieces = [
        b"step 17: loss 0.25, 3 of 9 done\n" * 2_000,
        b"METRIC loss=0.25\nMETRIC step=17\n" * 2_000,
        b"." * 64_000,
    ]
    lines, size = MetricLines(), sum(map(len, pieces)) * 100
    for piece in pieces:
        lines.feed(piece)
    tracemalloc.start()
    try:
        for piece in pieces * 10:
            lines.feed(piece)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    begin = time.process_time()
    for piece in pieces * 100:
        lines.feed(piece)
    assert size / (time.process_time() - begin) > 100_000_000 / 10, (
        "a tenth of the figure, for slow machines under load"
    )
    assert lines.result().metrics == {"loss": 0.25, "step": 17}


def test_an_unknown_syntax_is_named():
    with pytest.raises(ValueError, match="'loose' is no syntax of METRIC lines, choose lenient or strict"):
        MetricLines("loose")  # type: ignore[arg-type]  # a wrong one
