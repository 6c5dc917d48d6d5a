"""Every place that reads YAML reads the same values, and refuses the same texts with the same words."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import pytest

import dicast
from dicast import RequestError
from dicast._kernel.pipeline.read import read_document as read_pipeline
from dicast._kernel.pipeline.rubrics import read_rubric
from dicast._promptfoo.configuration import read_node as read_promptfoo
from dicast.toolkit import yaml
from dicast_heuristic.places import place_of
from dicast_proxy.definitions import read_definitions
from dicast_rows import Jsonl, Yaml
from dicast_tasksets import Files
from dicast_workload.documents import read_document as read_workload

ROOT = Path(__file__).parents[2]


def of_pipeline(path: Path):
    return read_pipeline(path, (), {}).data["x"]


def of_include(path: Path):
    main = path.with_name("main.yaml")
    main.write_text(f"include: {path.name}\n")
    return read_pipeline(main, (), {}).data["x"]


def of_text(path: Path):
    return read_pipeline(path.read_text(encoding="utf-8"), (), {}).data["x"]


def of_rubric(path: Path):
    return read_rubric(path.name, path.read_text(encoding="utf-8")).data["x"]


def of_promptfoo(path: Path):
    return read_promptfoo(path).find(("x",)).plain()


def of_rows(path: Path):
    source = Yaml(path)
    source.check()
    return next(iter(source.subjects())).context["x"]


def of_tasks(path: Path):
    source = Files(path)
    source.check()
    return next(iter(source.subjects())).context["metadata"]["extra"]["x"]


def of_workload(path: Path):
    problems: list[dicast.Problem] = []
    document = read_workload(path, path.name, problems)
    if problems:
        raise dicast.ConfigError(problems)
    return document.data["x"]


def of_optimize(path: Path):
    document = pytest.importorskip("dicast_optimize.document").read_document(path)
    if document.problems:
        raise dicast.ConfigError(document.problems)
    return document.data["x"]


def of_definitions(path: Path):
    return read_definitions(path)["x"]


PLAIN = "x: @\n"
PLACES: dict[Callable[[Path], object], str] = {
    of_pipeline: PLAIN,
    of_include: PLAIN,
    of_text: PLAIN,
    of_rubric: "id: r\nversion: v1\nx: @\n",
    of_promptfoo: PLAIN,
    of_rows: "- output: a\n  x: @\n",
    of_tasks: "id: t\ngoal: g\nmetadata:\n  extra:\n    x: @\n",
    of_workload: "name: w\nx: @\n",
    of_optimize: PLAIN,
    of_definitions: PLAIN,
}
VALUES = {
    "0x1F": 31, "0o17": 15, "017": 17, "0b1": "0b1", "yes": "yes", "no": "no", "on": "on", "y": "y", "1_000": "1_000", "12e3": 12000.0,
    ".5": 0.5, "5.": 5.0, "+3": 3, "-0x1F": "-0x1F", "~": None, "null": None, "": None, "true": True, "False": False, "2001-01-01": "2001-01-01",
    "12:30:45": "12:30:45", "1.0": 1.0, "'12'": "12", '"null"': "null", "1,5": "1,5", "12345678901234567890": 12345678901234567890,
    "18446744073709551615": 2**64 - 1, "-9223372036854775808": -(2**63), "0xFFFFFFFFFFFFFFFF": 2**64 - 1, "0.1": 0.1, "1e22": 1e22,
    "[&a {k: 1}, *a]": [{"k": 1}, {"k": 1}], "{a:\t1}": {"a": 1}, "!!str 12": "12", "!!float 3": 3.0, "! 12": "12", "'<<'": "<<",
}  # fmt: skip
REFUSED = {
    "18446744073709551616": "the number 18446744073709551616 needs more than 64 bits",
    "-9223372036854775809": "the number -9223372036854775809 needs more than 64 bits",
    "0x1FFFFFFFFFFFFFFFF": "the number 0x1FFFFFFFFFFFFFFFF needs more than 64 bits",
    "12345678901234567890.5": "the number 12345678901234567890.5 needs more than 64 bits",
    "1e999": "1e999 is not a finite number",
    ".nan": ".nan is not a finite number",
    "-.inf": "-.inf is not a finite number",
    "{k: 1, k: 2}": "the key 'k' is given twice",
    "{1: a}": "a key must be text, not a number; write '1'",
    "{[a]: b}": "a key must be text, not a list",
    "[&a {k: 1}, {<<: *a}]": "merge keys (<<) are not YAML 1.2",
    "*nowhere": "the alias *nowhere names no anchor before it",
    "&a [*a]": "the alias *a is inside the value it names",
    "!!python/name:os.system a": "the tag !!python/name:os.system does not fit here",
    "!!int a": "the tag !!int does not fit here",
    "!!timestamp 2001-01-01": "the tag !!timestamp does not fit here",
    "[" * 101 + "]" * 101: "nested deeper than 100 levels",
    "a: b": "not valid YAML: mapping values are not allowed in this context",
    "@home": "not valid YAML: found character that cannot start any token",
    "[1": "not valid YAML: did not find expected ',' or ']'",
}


def written(tmp_path: Path, read: Callable[[Path], object], text: str, prefix: bytes = b"", suffix: str = "") -> Path:
    path = tmp_path / "file.yaml"
    path.write_bytes(prefix + (PLACES[read].replace("@", text) + suffix).encode())
    return path


@pytest.mark.parametrize("read", PLACES)
def test_every_place_reads_the_same_values(read, tmp_path):
    for text, expected in VALUES.items():
        value = read(written(tmp_path, read, text))
        assert (value, type(value)) == (expected, type(expected)), text


@pytest.mark.parametrize("read", PLACES)
def test_every_place_refuses_the_same_texts_at_their_place(read, tmp_path):
    line = PLACES[read].partition("@")[0].count("\n") + 1
    for text, message in REFUSED.items():
        with pytest.raises(RequestError) as caught:
            read(written(tmp_path, read, text))
        (problem,) = caught.value.problems[:1]
        assert message in problem.message, text
        assert problem.line in ((line, line + 1, line + 2) if text == "[1" else (line,)), text
        assert problem.column is not None or read is of_text, text


@pytest.mark.parametrize("read", PLACES)
def test_every_place_takes_a_byte_order_mark_and_windows_line_ends(read, tmp_path):
    path = written(tmp_path, read, "0x1F", b"\xef\xbb\xbf")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read(path) == 31


@pytest.mark.parametrize("read", [read for read in PLACES if read not in (of_text, of_rubric)])
def test_every_place_refuses_text_that_is_not_utf8(read, tmp_path):
    path = written(tmp_path, read, "caf\N{LATIN SMALL LETTER E WITH ACUTE}")
    path.write_bytes(path.read_bytes().decode().encode("cp1252"))
    with pytest.raises(RequestError, match="not UTF-8"):
        read(path)


@pytest.mark.parametrize("read", [read for read in PLACES if read is not of_rows])
def test_a_second_document_is_refused_where_a_file_is_one(read, tmp_path):
    with pytest.raises(RequestError, match="a second YAML document begins here"):
        read(written(tmp_path, read, "1", suffix="---\nid: a\n"))


def test_rows_are_the_items_of_all_documents(tmp_path):
    path = tmp_path / "rows.yaml"
    path.write_text("- {output: a}\n- {output: b}\n---\noutput: c\n---\n")
    assert [row.output for row in Yaml(path).subjects()] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "number", ["12345678901234567890", "18446744073709551616", "12345678901234567890.5", "1e22", "1e999"]
)
def test_numbers_read_the_same_from_yaml_and_from_json(tmp_path, number):
    def read(source):
        try:
            source.check()
            return next(iter(source.subjects())).output
        except RequestError as error:
            return "refused" if "64 bits" in str(error) or "finite" in str(error) or "not JSON" in str(error) else error

    (tmp_path / "rows.yaml").write_text(f"- output: {number}\n")
    (tmp_path / "rows.jsonl").write_text(f'{{"output": {number}}}\n')
    assert read(Yaml(tmp_path / "rows.yaml")) == read(Jsonl(tmp_path / "rows.jsonl"))


def test_a_heuristic_rubrics_values_have_the_places_of_the_same_reader():
    assert place_of("a: &a {b: 0x1F}\nc: *a\n", "c.b") == (1, 11)
    assert place_of("a: 1\na: 2\n", "a") == (1, 4)


@pytest.mark.parametrize(
    "text", ["0x1F", "0o17", "12e3", "no", "null", "1e999", "18446744073709551616", "<<", "a: b", " x", "12:30:45", ""]
)
def test_written_text_is_read_back_as_text(text):
    assert yaml.read_yaml(yaml.write_yaml({"x": text}), "x").plain() == {"x": text}


@pytest.mark.slow
def test_no_other_module_reads_yaml():
    """PyYAML is imported by the reader and the two writers."""
    result = {
        str(path.relative_to(ROOT))
        for folder in (ROOT / "framework", *ROOT.glob("plugins/*/src"), *ROOT.glob("contrib/*/src"))
        for path in folder.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "yaml" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "yaml")
    }
    assert result == {
        "framework/dicast/_init/written.py",
        "framework/dicast/toolkit/yaml/reader.py",
        "framework/dicast/toolkit/yaml/__init__.py",
    }


@pytest.mark.parametrize("number", [12345678901234567890, 2**64 - 1, -(2**63), 9007199254740993, 1.5])
def test_an_expected_number_is_compared_alike_from_yaml_and_json(tmp_path, number):
    (tmp_path / "o.jsonl").write_text(json.dumps({"id": "a", "output": {"n": number}}) + "\n")
    tasks = {
        "name": "t",
        "version": "1.0.0",
        "tasks": [{"id": "a", "goal": "sum", "expected": {"fields": {"n": {"value": number}}}}],
    }
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    (tmp_path / "tasks.yaml").write_text(yaml.write_yaml(tasks))
    for name in ("tasks.json", "tasks.yaml"):
        source = {"tasksets/files": {"path": str(tmp_path / name), "outputs": str(tmp_path / "o.jsonl")}}
        ledger = {"ledger/sqlite": {"path": str(tmp_path / "l.db")}}
        done = dicast.run({"source": source, "metrics": ["tasksets/expected"], "ledger": ledger})
        assert done.score["mean"] == 1.0, name
