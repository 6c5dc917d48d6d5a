"""``rows/json``, ``rows/yaml`` and ``rows/parquet``."""

from __future__ import annotations

import asyncio
import gzip
import importlib.util
import io
import json
import random
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import dicast_rows.rows
from dicast import ConfigError, DataError, RunContext, Subject, run
from dicast.toolkit.scanning import Scanner
from dicast_rows import Json, Jsonl, Parquet, Yaml

ADVICE = (
    "save the file as UTF-8, or set its encoding: cp1252 or iso8859-15 might fit "
    "(encoding: cp1252; dicast init --encoding cp1252)"
)


@pytest.fixture
def written(tmp_path):
    def write(data: str | bytes) -> Path:
        path = tmp_path / "rows"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


def read(source) -> list[Subject]:
    assert len(source.check()) == 64
    return list(source.subjects())


def faults(source) -> list[str]:
    with pytest.raises(DataError) as caught:
        source.check()
    return [str(problem).removeprefix(str(source.path)) for problem in caught.value.problems]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.text(max_size=6)
    | st.sampled_from(['"]}', "\\", "{[", "\u2028"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ROWS = st.lists(st.dictionaries(st.sampled_from(["input", "output", "x", "context"]), VALUES), min_size=1, max_size=4)


@given(ROWS, st.sampled_from([None, 2]), st.booleans(), st.sampled_from([1, 5, 4096]))
def test_array_has_the_rows_of_json_lines_whatever_its_layout_and_wherever_it_is_cut(
    tmp_path_factory, rows, indent, ascii_only, size
):
    folder = tmp_path_factory.mktemp("json")
    (folder / "lines").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (folder / "array").write_text(json.dumps(rows, indent=indent, ensure_ascii=ascii_only), encoding="utf-8")
    inside = {"a": [0, "]", {"b.c": rows}], "rows": 1}
    (folder / "inside").write_text(json.dumps(inside, indent=indent), encoding="utf-8")
    expected = read(Jsonl(folder / "lines"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dicast_rows.rows, "_CHUNK", size)
        assert read(Json(folder / "array")) == expected
        assert read(Json(folder / "inside", at="a.2.b.c")) == expected


class Quoting(yaml.SafeDumper):
    """A dumper that quotes texts, because some plain texts are numbers in YAML 1.2, such as 0E0."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@given(ROWS, st.booleans(), st.booleans(), st.booleans())
def test_yaml_has_the_rows_of_json_lines_as_a_list_and_as_documents(tmp_path_factory, rows, flow, documents, quick):
    folder = tmp_path_factory.mktemp("yaml")
    (folder / "lines").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    text = yaml.dump_all(rows if documents else [rows], Dumper=Quoting, default_flow_style=flow, width=20)
    (folder / "yaml").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "__with_libyaml__", quick and yaml.__with_libyaml__)
        assert read(Yaml(folder / "yaml")) == read(Jsonl(folder / "lines"))


def test_what_is_behind_a_break_of_yaml_is_not_read(written):
    *_, broken = faults(Yaml(written("- [x]\n- a: [1\n- b: 2\n- [y]\n")))
    assert "not valid YAML" in broken
    assert "byte 0xff is not UTF-8" in faults(Yaml(written(b"- a: \xff\n")))[0]


@given(st.binary(max_size=40) | st.text('[]{}",:\\ 1n\n', max_size=40).map(str.encode))
def test_scanner_takes_any_bytes_to_their_end(data):
    scanner = Scanner(iter([data[:7], data[7:]]), 2**20)
    while scanner.peek():
        assert scanner.value() or any(map(scanner.skip, (b",", b":", b"]", b"}")))
    assert scanner.line == data.count(b"\n") + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            '[{"output": 1},\n [2],\n "x",\n {"a" 1}, {"output": 2}]',
            [
                ":2: item 2: it is an array, it must be a JSON object",
                ":3: item 3: it is a string, it must be a JSON object",
                ":4: item 4: it is not JSON: unexpected character, expected ':' after key",
            ],
        ),
        (
            '[{}, 12345678901234567890123, {"n": 12345678901234567890123}]',
            [
                ":1: item 2: it is a single value, it must be a JSON object",
                ":1: item 3: the number 12345678901234567890123 cannot be recorded exactly in 64 bits; write it as a string",
            ],
        ),
        ('[{"id": "a"}, {"id": "a"}]', [": item 2: duplicate id 'a', first in item 1"]),
        (
            "[{}\n{},\n]",
            [":2:1: item 2: a comma is missing before it", ":2:3: item 3: there is no value after the comma"],
        ),
        ("[,{}]", [":1:2: item 1: there is no value"]),
        ("[{}", [":1: the array, or a value around it, has no end"]),
        ("[{}}", [":1: the array, or a value around it, has no end"]),
        ("[{}] x", [":1: there is text after the end of the document; remove it"]),
        ("[]", [": there are no subjects in this input"]),
        ("", [":1: the document is empty, it must be an array (at)"]),
        (
            '{"n": 1, "rows": [], "more": []}',
            [":1: the document is an object, it must be an array; there are arrays at rows, more: write at: rows (at)"],
        ),
        (
            '{"a": 1}\n{"a": 2}',
            [
                ":1: the document is an object, it must be an array; more objects follow: one object a line is read by rows/jsonl"
            ],
        ),
        (b'[{"a": "\xff"}]', [f":1: byte 0xff is not UTF-8; {ADVICE}"]),
        (gzip.compress(random.Random(1).randbytes(10**6).hex().join(['[{"a": "', '"}]']).encode())[:-9], None),
    ],
)
def test_json_names_all_that_is_wrong_with_its_place(written, text, expected):
    problems = faults(Json(written(text)))
    if expected is None:
        assert any("the data cannot be read to its end" in fault for fault in problems)
    else:
        assert problems == expected


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("data.rowz", "the document has nothing at 'data.rowz'; it has n, rows, did you mean 'rows'? (at)"),
        ("list.7", "the document has nothing at 'list.7'; the array there has 1 items (at)"),
        ("data.n", "the value at 'data.n' is a single value, it must be an array (at)"),
        ("data.n.x", "there is nothing at 'data.n.x': a single value has no 'x'"),
        (
            "data",
            "the value at 'data' is an object, it must be an array; there are arrays at data.rows: write at: data.rows (at)",
        ),
    ],
)
def test_path_that_leads_to_no_array_says_what_is_there(written, at, message):
    path = written('{"list": [{}], "data": {"n": 1, "rows": [{}]}}')
    assert faults(Json(path, at=at)) == [f":1: {message}"]


def test_paths_and_bounds_of_json_are_checked(written):
    with pytest.raises(ConfigError, match="is not a path into a document"):
        Json("x", at="a..b")
    problems = faults(Json(written('[{"a": 1},\n{"a": "' + "x" * 99 + '"}]'), max_item_bytes=50))
    assert problems == [":2: a value is longer than max_item_bytes (50)"]


def test_one_hundred_bad_items_are_named_and_the_others_counted(written):
    problems = faults(Json(written(json.dumps([1] * 120))))
    assert (len(problems), problems[-1]) == (101, ": … and 20 more")


YAML = """\
# comments are no rows
- &base {input: q, output: no, when: 2026-01-31, n: 0x1f, f: .5, t: true, "y": ~}
- base: *base
  output: |
    two
    lines
---
input: r
output: "1"
---
"""


def test_yaml_values_are_those_of_its_core_schema_with_anchors(written):
    first, second, third = read(Yaml(written(YAML)))
    context = {"when": "2026-01-31", "n": 31, "f": 0.5, "t": True, "y": None}
    assert first == Subject("row", "1", "q", "no", None, context)
    row = {"base": {"input": "q", "output": "no", **context}}
    assert second == Subject("row", "2", None, "two\nlines\n", None, row)
    assert (third.id, third.input, third.output) == ("3", "r", "1")


BOMB = "- &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"- &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "- a: 1\n- [x]\n- text\n",
            [
                ":2: item 2: it is a list, it must be a mapping",
                ":3: item 3: it is a single value, it must be a mapping",
            ],
        ),
        ("- a: 1\n  a: 2\n", [":2:3: item 1: the key 'a' is given twice, in lines 1 and 2; keep one (a)"]),
        (
            "- a: .nan\n- b: !!python/name:os.system x\n",
            [
                ":1:6: item 1: .nan is not a finite number; quote it if it is text (a)",
                ":2:6: item 2: the tag !!python/name:os.system does not fit here; remove it (b)",
            ],
        ),
        (
            "- a: 12345678901234567890123\n- b: !!int x\n",
            [
                ":1:6: item 1: the number 12345678901234567890123 needs more than 64 bits, so it cannot be recorded exactly; write it as a string (a)",
                ":2:6: item 2: the tag !!int does not fit here; remove it (b)",
            ],
        ),
        (
            "- &a {x: 1}\n- <<: *a\n",
            [":2:3: item 2: merge keys (<<) are not YAML 1.2; write the keys out, or name a whole value with an alias"],
        ),
        ("- id: a\n- id: a\n", [": item 2: duplicate id 'a', first in item 1"]),
        ("# nothing\n", [": there are no subjects in this input"]),
        (
            "- a\n- " + "[" * 5000 + "]" * 5000,
            [
                ":1: item 1: it is a single value, it must be a mapping",
                ":2:104: nested deeper than 100 levels ([0][0][0])",
            ],
        ),
        ("- a: " + "{a: " * 5000, [":1:406: nested deeper than 100 levels (a.a.a)"]),
        ("- &a {b: *a}\n", [":1:10: item 1: the alias *a is inside the value it names (b)"]),
    ],
)
def test_yaml_names_all_that_is_wrong_with_its_place(written, text, expected):
    assert faults(Yaml(written(text))) == expected


@pytest.mark.slow
def test_aliases_that_expand_without_bounds_are_refused(written):
    assert "more than 1,000,000 values, aliases expanded" in faults(Yaml(written(BOMB)))[-1]


def parquet(path: Path, columns, **options: object) -> Path:
    import pyarrow as pa
    from pyarrow import parquet as pq

    pq.write_table(pa.table(columns), path, **options)
    return path


def test_parquet_rows_are_json_data(tmp_path):
    import pyarrow as pa

    columns = {
        "output": ["a", None, "c"],
        "id": [7, 8, 9],
        "day": [date(2026, 1, 31)] * 3,
        "price": [Decimal("1.50")] * 3,
        "meta": [{"k": [1.5]}] * 3,
        "map": pa.array([[("a", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    }
    source = Parquet(parquet(tmp_path / "x", columns, row_group_size=2), batch_rows=2)
    context = {"day": "2026-01-31", "price": "1.50", "meta": {"k": [1.5]}, "map": {"a": 1}}
    expected = [Subject("row", id, None, output, None, context) for id, output in (("7", "a"), ("8", None), ("9", "c"))]
    assert read(source) == expected
    plain = source.check()
    source.path.write_bytes(gzip.compress(source.path.read_bytes()))
    assert read(source) == expected
    assert source.check() == plain


def test_parquet_names_all_that_is_wrong(tmp_path):
    path = tmp_path / "x"
    source = Parquet(parquet(path, {"id": ["a", "a", "b"], "s": [1.0, float("nan"), 2.0]}), fields={"output": "outptu"})
    has = "the row has no 'outptu'; it has id, s (outptu)"
    nan = "the column 's' is nan, which JSON does not have; write the file with null, a text, or without it (s)"
    assert faults(source) == [f": row 1: {has}", f": row 2: {nan}", f": row 3: {has}"]
    assert faults(Parquet(parquet(path, {"id": ["a", "a"]}))) == [": row 2: duplicate id 'a', first in row 1"]
    assert "the column 'b' holds bytes" in faults(Parquet(parquet(path, {"b": [b"x"]})))[0]
    path.write_bytes(b"PAR1 not")
    assert "the file cannot be read as Parquet" in faults(Parquet(path))[0]


def test_a_missing_pyarrow_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"rows/parquet needs pyarrow, which is not installed: .*parquet"):
        Parquet("x")


@pytest.mark.parametrize(("source", "data"), [(Json, b'[{"id": "a"}, {"id": "b"}]'), (Yaml, b"- id: a\n- id: b\n")])
def test_standard_input_and_gzip_are_read(monkeypatch, tmp_path, source, data):
    async def ids() -> list[str]:
        async with source("-").open(RunContext("r", "n", tmp_path)) as rows:
            rows.check()
            return [subject.id for subject in rows.subjects()]

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(data))))
    assert asyncio.run(ids()) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "data"),
    [("json", '{"data": [{"question": "q", "answer": "a"}]}'), ("yaml", "- {question: q, answer: a}\n")],
)
def test_rows_of_documents_are_judged_and_columns_that_do_not_fit_are_named(written, tmp_path, monkeypatch, name, data):
    monkeypatch.chdir(tmp_path)
    options = {"path": str(written(data)), **({"at": "data"} if name == "json" else {})}
    pipeline = {"source": {f"rows/{name}": options}, "metrics": ["proxy/length"]}
    with pytest.raises(DataError, match="map them: fields: {input: question, output: answer}"):
        run(pipeline)
    options["fields"] = {"input": "question", "output": "answer"}
    assert run(pipeline).scored == 1
