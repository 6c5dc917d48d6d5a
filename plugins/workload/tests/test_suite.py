"""Workload files: permitted content, and errors with their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError
from dicast.testing import run_pipeline
from dicast_workload.documents import read_document
from dicast_workload.suite import Suite


def problems(folder: Path, text: str):
    file = folder / "workload.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        Suite.read([file])
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("turns: []", 1, 1, "the workload needs a 'name', which its runs call it by (name)"),
        ("", 1, 1, "the workload needs a 'name'"),
        ("name: ''", 1, 7, "the workload needs a 'name'"),
        ("name: 3", 1, 7, "name is a text, not 3 (name)"),
        ("- x", 1, 1, "the file is a mapping, not ['x']"),
        ("name: a\nevalute: {}", 2, 1, "unknown key 'evalute', did you mean 'evaluate'? (evalute)"),
        ("name: a\nturns: [{prompts: x}]", 2, 10, "unknown key 'prompts', did you mean 'prompt'? (turns[0].prompts)"),
        ("name: a\nturns: 3", 2, 8, "turns is a list, not 3"),
        ("name: a\nturns:\n  - 5", 3, 5, "turns[0] is a mapping, not 5"),
        (
            "name: a\nturns: [{expect: {max_tool_call: 1}}]",
            2,
            19,
            "unknown expect keys: ['max_tool_call'], did you mean 'max_tool_calls'?",
        ),
        ("name: a\nexpect: {min_llm_calls: -1}", 2, 25, "min_llm_calls is a whole number, 0 or more, not -1"),
        ("name: a\nexpect: {max_hard_failures: 1.5}", 2, 29, "max_hard_failures is a whole number, 0 or more, not 1.5"),
        ("name: a\nexpect: {max_total_cost_usd: lots}", 2, 30, "max_total_cost_usd is an amount in usd"),
        ("name: a\nexpect: {stop_reason: 1}", 2, 23, "stop_reason is a text, not 1"),
        ("name: a\nexpect: [x]", 2, 9, "expect is a mapping, not ['x']"),
        ("name: a\nsignal_strength: hgh", 2, 18, "signal_strength is 'high' or 'marginal', not 'hgh', did you mean 'high'?"),
        (
            "name: a\nevaluate:\n  rubrik: llm\n  more: 1",
            4,
            3,
            "unknown evaluate keys: ['more', 'rubrik'] (evaluate.more)",
        ),
        ("name: a\nevaluate: {rubrik: llm}", 2, 12, "unknown evaluate keys: ['rubrik'], did you mean 'rubric'?"),
        ("name: a\nevaluate: {rubric: hybird}", 2, 20, "rubric is 'heuristic' or 'llm' or 'hybrid', not 'hybird'"),
        ("name: a\nevaluate: {weight_per_turn: -.5}", 2, 29, "weight_per_turn is a number, 0 or more, not -0.5"),
        ("name: a\nevaluate: {weight_per_turn: true}", 2, 29, "weight_per_turn is a number, 0 or more, not True"),
        ("name: a\nevaluate: {grounding_tokens: ['']}", 2, 30, "grounding_tokens is a list of texts that are not empty"),
        ("name: a\nevaluate: {partial_credit: {enabled: yes}}", 2, 38, "enabled is true or false, not 'yes'"),
        ("name: a\nevaluate: {partial_credit: {criterion: magic}}", 2, 40, "criterion is 'test_pass_count_ratio', not 'magic'"),
        ("name: a\nevaluate: {partial_credit: {map: cubic}}", 2, 34, "map is 'linear' or 'stepped', not 'cubic'"),
        ("name: a\nevaluate: {partial_credit: {mp: 1}}", 2, 29, "unknown partial_credit keys: ['mp'], did you mean 'map'?"),
        ("name: a\nname: b", 2, 1, "the key 'name' is given twice"),
        ("name: a\n{x: 1}: 2", 2, 1, "a key must be text"),
        ("name: a\n? [x]\n: 2", 2, 3, "a key must be text"),
        ("name: [", 2, 1, "not valid YAML"),
        ("name: *a", 1, 7, "the alias *a names no anchor before it"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(tmp_path, text, line, column, message):
    (problem,) = problems(tmp_path, text)
    assert (problem.line, problem.column) == (line, column)
    assert message in str(problem)


def test_everything_that_is_wrong_with_all_files_is_said_at_once(tmp_path):
    (tmp_path / "a.yaml").write_text("name: a\nturnz: []\nevaluate: {rubric: 1, more: 2}")
    (tmp_path / "b.yml").write_text("names: b")
    (tmp_path / "notes.txt").write_text("not read")
    with pytest.raises(ConfigError) as caught:
        Suite.read([tmp_path, tmp_path / "c.yaml"])
    places = [(Path(problem.file).name, problem.line, problem.column) for problem in caught.value.problems]
    assert places == [("a.yaml", 2, 1), ("a.yaml", 3, 20), ("a.yaml", 3, 23), ("b.yml", 1, 1), ("c.yaml", None, None)]


def test_a_pipeline_that_names_a_wrong_suite_is_refused_before_anything_is_read(tmp_path):
    (tmp_path / "runs.jsonl").write_text("not even JSON")
    (tmp_path / "a.yaml").write_text("name: a\nevaluate: {rubrik: llm}")
    source = f"workload/runs: {{path: {tmp_path}/runs.jsonl, workloads: {tmp_path}/a.yaml}}"
    with pytest.raises(ConfigError) as caught:
        run_pipeline(f"source: {{{source}}}\njudges: [heuristic/workload]")
    assert "a.yaml:2:12: unknown evaluate keys: ['rubrik'], did you mean 'rubric'?" in str(caught.value)


def test_workloads_are_found_in_folders_and_lists(tmp_path):
    (tmp_path / "suite" / "deep" / "workspace").mkdir(parents=True)
    for name, file in {"a": "a.yaml", "b": "deep/workload.yaml", "c": "deep/other.yaml", "d": "../d.yml"}.items():
        (tmp_path / "suite" / file).write_text(f"name: {name}")
    assert list(Suite.read([tmp_path / "suite"]).workloads) == ["a", "b"]
    assert list(Suite.read([tmp_path / "d.yml", tmp_path / "suite"]).workloads) == ["d", "a", "b"]
    assert dict(Suite.read([]).workloads) == {}


def test_a_folder_without_workloads_and_a_file_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="the folder has no workloads"):
        Suite.read([tmp_path])
    (tmp_path / "mend.yaml").write_text("name: mend")
    with pytest.raises(ConfigError, match=r"no such file or folder, did you mean 'mend\.yaml'"):
        Suite.read([tmp_path / "mnd.yaml"])


def test_two_workloads_of_one_name_are_refused_naming_both(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text("name: mend")
    with pytest.raises(ConfigError, match=r"b\.yaml: the workload 'mend' is in .*a\.yaml already"):
        Suite.read([tmp_path])


def test_what_the_harness_keeps_in_the_file_is_left_to_it(tmp_path):
    file = tmp_path / "workload.yaml"
    file.write_text("name: a\nworkspace: ./files\ntimeout: 30\nturns: [{prompt: x, attachments: [y]}]")
    (definition,) = Suite.read([file]).workloads.values()
    assert (definition.prompts, definition.signal_strength) == (("x",), "high")


def test_null_is_as_good_as_nothing(tmp_path):
    keys = ("rubric", "weight_per_turn", "grounding_tokens", "partial_credit", "expect_substring_in_final_response")
    file = tmp_path / "workload.yaml"
    file.write_text(
        f"name: a\nturns:\nexpect:\nsuite_version:\nevaluate: {{{', '.join(f'{key}: null' for key in keys)}}}"
    )
    (definition,) = Suite.read([file]).workloads.values()
    assert definition.evaluate == dict.fromkeys(keys)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("'12'", "12"),
        ("12", 12),
        ("0.50", 0.5),
        ("1e3", 1000.0),
        ("true", True),
        ("~", None),
        ("2026-01-02", "2026-01-02"),
        ("1_000", "1_000"),
        ("0b1", "0b1"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("[1, {b: c}]", [1, {"b": "c"}]),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path, text, value):
    (tmp_path / "x.yaml").write_text(f"a: {text}")
    values = []
    document = read_document(tmp_path / "x.yaml", "x.yaml", values)
    assert document.data == {"a": value}
    assert type(document.data["a"]) is type(value)
    assert not values


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a: &a [*a]", "[" * 60 + "]" * 60, "x: &x [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "".join(
        f"x{n}: &x{n} [{', '.join([f'*x{n - 1}' if n else '*x'] * 9)}]\n" for n in range(9)), "[" * 5000],
)  # fmt: skip
def test_a_file_made_to_exhaust_the_reader_is_refused(tmp_path, text):
    assert len(problems(tmp_path, text)) >= 1


def test_a_file_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"name: \xff")
    with pytest.raises(ConfigError, match=r"x\.yaml:1:7: byte 6 \(0xff\) is not UTF-8"):
        Suite.read([tmp_path / "x.yaml"])


@settings(deadline=None)  # files are written
@given(st.text(max_size=80) | st.from_regex(r"(name|turns|expect|evaluate): ?[\[{]?[a-z_: ,]{0,30}[\]}]?\n?"))
def test_any_text_is_a_workload_or_refused_in_words(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("suite") / "w.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    refused = []
    try:
        Suite.read([file])
    except ConfigError as error:
        refused = [problem.message for problem in error.problems]
    assert all(refused)
