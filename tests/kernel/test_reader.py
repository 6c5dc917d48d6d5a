"""The pipeline file: strict YAML, includes, overrides, variables, and the place of every value."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from dicast import ConfigError
from dicast._kernel.pipeline.read import read_document
from dicast._kernel.pipeline.yaml_nodes import dotted, split
from dicast.toolkit.yaml import reader as composer

METRICS = """\
source: {rows/csv: {path: qa.csv}}
metrics:
  - proxy/format
  - llm/judge: {as: helpful, model: grader}
  - proxy/keywords:
"""


def data(source, overrides=(), environ=None):
    return read_document(source, overrides, environ or {}).data


def value(text):
    return data(f"x: {text}\n")["x"]


def problems(source, overrides=(), environ=None):
    try:
        return read_document(source, overrides, environ or {}).problems
    except ConfigError as error:
        return error.problems


def the_problem(*arguments):
    (problem,) = problems(*arguments)
    return problem


def at(message):
    return message.line, message.column


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def writer(name, content):
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return writer


# Scalars


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((word, None) for word in ["", "~", "null", "Null", "NULL"]),
        *((word, True) for word in ["true", "True", "TRUE"]),
        *((word, False) for word in ["false", "False", "FALSE"]),
        ("12", 12), ("-3", -3), ("+4", 4), ("012", 12), ("0o17", 15), ("0xFf", 255),
        (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-1.5E-2", -0.015),
        ("!!str 12", "12"), ("!!int 12", 12), ("!!float 12", 12.0), ("!!null ''", None), ("!!str", ""), ("! 12", "12"),
    ],
)  # fmt: skip
def test_core_schema_scalars(text, expected):
    assert value(text) == expected
    assert type(value(text)) is type(expected)


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "yes",
        "on",
        "off",
        "y",
        "n",
        "No",
        "tRUE",
        "nULL",
        "12:30",
        "2001-01-01",
        "1_000",
        "0b11",
        "0O17",
        ".",
        ".e1",
        "e3",
        "1e",
        "+-1",
        "inf",
        "nan",
        "=",
        "1.2.3",
        "0x",
        "12a",
    ],
)
def test_everything_else_is_text(text):
    assert value(text) == text


@pytest.mark.parametrize("text", ["12", "true", "null", "1.5", "", "~", "<<"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_quoted_scalars_are_text(text, quote):
    assert value(f"{quote}{text}{quote}") == text


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", ".NaN", "1e999", "9" * 5000])
def test_numbers_must_be_finite_and_readable(text):
    problem = the_problem(f"a: 1\nx: {text}\n")
    assert at(problem) == (2, 4)
    assert problem.path == "x"


@pytest.mark.parametrize("text", ["!foo 1", "!!python/tuple [1]", "!!set {a}", "!!int x", "!!bool 1", "!!map [1]"])
def test_other_tags_are_refused(text):
    problem = the_problem(f"x: {text}\n")
    assert at(problem) == (1, 4)
    assert f"the tag {text.split()[0]} does not fit" in problem.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])).map(lambda text: text.replace("$", "S")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc:# -'\"{[1~\n", max_size=5), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


class Quoting(yaml.SafeDumper):
    """Quotes all text: PyYAML writes YAML 1.1, in which a plain 0E0 is text; in 1.2 it is a number."""


Quoting.add_representer(str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


@given(json_values)
@example("0E0")
def test_what_yaml_writes_is_read_back(content):
    text = yaml.dump({"x": content}, Dumper=Quoting, allow_unicode=False)
    assert data(text) == {"x": content}


@given(json_values)
def test_a_mapping_is_read_as_it_is(content):
    assert data({"x": content}) == {"x": content}


@given(st.lists(st.text('abc/_.[]"1 \\\n', max_size=4) | st.integers(0, 99), min_size=1))
def test_a_rendered_path_is_an_override_path(path):
    assert split(dotted(path)) == tuple(map(str, path))


def test_paths_are_rendered_for_people():
    assert dotted(("metrics", 1, "proxy/format", "field")) == "metrics[1].proxy/format.field"
    assert dotted(("judges", 0, "v1.2")) == 'judges[0]."v1.2"'


# Places


def test_every_value_and_key_has_its_place():
    document = read_document("a: 1\nmetrics:\n  - proxy/format\n  - proxy/keywords: {forbiden: [TODO]}\n", (), {})

    def place(*path, key=False):
        place = document.place(path, key=key)
        return place.line, place.column

    assert place("a") == (1, 4)
    assert place("a", key=True) == (1, 1)
    assert place("metrics") == (3, 3)
    assert place("metrics", 0) == place("metrics", 0, key=True) == (3, 5)
    option = ("metrics", 1, "proxy/keywords", "forbiden")
    assert place(*option, key=True) == (4, 22)
    assert place(*option) == (4, 32)
    assert place(*option, 0) == (4, 33)
    assert place("metrics", 1, "proxy/keywords", "missing", key=True) == (4, 5)
    assert place("metrics", 0, "proxy/format") == (3, 5)
    assert place("nothing", 1) == (1, 1)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 5), st.sampled_from(["\n", "\r\n"]))
def test_places_count_lines_and_columns_from_one(indents, blank, newline):
    lines = ["# ä 💡"] * blank + [f"k{n}:{' ' * (indent + 1)}{{é: {n}}}" for n, indent in enumerate(indents)]
    document = read_document(newline.join(lines), (), {})
    for number, indent in enumerate(indents):
        place = document.place((f"k{number}", "é"))
        assert (place.line, place.column) == (blank + number + 1, len(f"k{number}:") + indent + 1 + len("{é: ") + 1)


def test_a_file_is_named_as_the_user_wrote_it(write):
    path = write("conf/p.yaml", b"\xef\xbb\xbfname: x\r\nb: y\r\n")
    document = read_document(path, (), {})
    assert document.data == {"name": "x", "b": "y"}
    assert document.file == "conf/p.yaml"
    assert document.base == Path.cwd() / "conf"
    place = document.place(("b",))
    assert (place.file, place.line, place.column, place.base) == ("conf/p.yaml", 2, 4, document.base)


def test_text_and_mappings_stand_in_the_current_directory():
    text, mapping = read_document("a: 1"), read_document({"a": [1]})
    assert (text.file, text.base) == ("<text>", Path.cwd())
    assert (mapping.file, mapping.base) == ("<mapping>", Path.cwd())
    assert mapping.place(("a", 0)).line is None


def test_the_pure_python_parser_gives_the_same(monkeypatch):
    text = "a: &x {b: [1, no]}\nc: *x\nd: |\n  text\n"
    fast = read_document(text, (), {})
    monkeypatch.setattr(composer, "_LOADER", yaml.SafeLoader)
    slow = read_document(text, (), {})
    assert (slow.data, slow.root) == (fast.data, fast.root)


# Mappings, aliases, syntax


def test_duplicate_keys_name_both_lines():
    problem = the_problem("a: 1\nm:\n  k: 1\n  l: 2\n  k: 3\n")
    assert at(problem) == (5, 3)
    assert "lines 3 and 5" in problem.message
    assert problem.path == "m.k"


@pytest.mark.parametrize("key", ["200", "1.5", "true", "~", "[a]", "{b: c}", "? [a]\n"])
def test_keys_must_be_text(key):
    problem = the_problem(f"{key}: 1\n")
    assert problem.line == 1
    assert "a key must be text" in problem.message


def test_a_bare_template_says_to_quote_it():
    assert "quote text that begins with {" in the_problem("user: {{ input }}\n").message


def test_merge_keys_are_refused():
    problem = the_problem("d: &d {a: 1}\nx:\n  <<: *d\n")
    assert at(problem) == (3, 3)
    assert "write the keys out" in problem.message


def test_aliases_copy_values_and_stand_where_they_are_used():
    document = read_document("a: &a {k: [1]}\nb: *a\n", (), {})
    assert document.data == {"a": {"k": [1]}, "b": {"k": [1]}}
    assert document.data["a"]["k"] is not document.data["b"]["k"]
    assert (document.place(("b",)).line, document.place(("b", "k")).line) == (2, 1)


def test_recursive_and_unknown_aliases_are_refused():
    inside, unknown = problems("a: &a [*a]\nb: *nope\n")
    assert (at(inside), at(unknown)) == ((1, 8), (2, 4))


def test_an_alias_bomb_ends_quickly():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]
    began = time.process_time()
    assert "more than 100,000 values" in the_problem("\n".join(lines)).message
    assert time.process_time() - began < 5


@pytest.mark.parametrize("text", ["[" * 5000, "{a: " * 5000, "- " * 5000, "&a [" * 5000])
def test_deep_nesting_ends_with_an_error(text):
    assert "nested deeper" in the_problem(f"x:\n  {text}\n").message


def test_aliases_cannot_nest_deeper_than_text():
    chain = ["a0: &a0 " + "[" * 60 + "]" * 60]
    chain += [f"a{n}: &a{n} {'[' * 60}*a{n - 1}{']' * 60}" for n in range(1, 30)]
    assert "nested deeper" in the_problem("\n".join(chain)).message


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a:\n\t- b\n", (2, 1), "spaces, not tabs"),
        ("a: b: c\n", (1, 5), "quote"),
        ("a: @b\n", (1, 4), "begins with @"),
        ("a: [b, ${A}]\n", (1, 9), "as '${NAME}'"),
        ("a: {b: ${A}}\n", (1, 9), "as '${NAME}'"),
        ("a: [1\n", (2, 1), "expected ',' or ']'"),
        ("a: 1\nb: é\x07\n", (2, 5), "U+0007"),
        ("a: \ud800\n", (1, 4), "U+D800"),
        ("a: 1\n---\nb: 2\n", (2, 1), "second YAML document"),
        ("", (1, 1), "empty"),
        ("# only a comment\n", (1, 1), "empty"),
        ("---\n", (2, 1), "empty"),
        ("\n- a\n", (2, 1), "not a list"),
        ("support.yaml", (1, 1), "pathlib.Path"),
    ],
)
def test_unreadable_text_says_where_and_what_to_do(text, place, words):
    problem = the_problem(text)
    assert words in problem.message
    assert at(problem) == place
    assert problem.file == "<text>"


def test_a_mapping_must_be_plain_data():
    assert data({"a": (1, Path("x"))}) == {"a": [1, "x"]}
    endless: dict[str, object] = {}
    endless["a"] = endless
    for bad in ({"a": {1: 2}}, {"a": object()}, {"a": float("nan")}, {"a": b"x"}, endless):
        assert the_problem(bad).file == "<mapping>"


# Files


def test_a_missing_file_names_the_nearest(write):
    write("support.yaml", "a: 1")
    problem = the_problem(Path("suport.yaml"))
    assert (problem.file, problem.hint) == ("suport.yaml", "support.yaml")


def test_a_directory_is_no_file(tmp_path):
    assert the_problem(tmp_path).message == "cannot read the file: this is a folder. Name a file in it."


def test_bytes_that_are_not_utf8_are_located(write):
    problem = the_problem(write("p.yaml", "a: 1\nb: é".encode() + b"\xff\n"))
    assert at(problem) == (2, 5)
    assert "byte 10 (0xff)" in problem.message


def test_a_huge_file_is_refused(write):
    assert "16 MiB" in the_problem(write("p.yaml", b"#" * (16 * 2**20 + 1))).message


@pytest.mark.slow
def test_a_large_list_is_read_in_reasonable_time(write):
    path = write("p.yaml", "x:\n" + "  - some words of text\n" * 90_000)
    began = time.process_time()
    assert len(data(path)["x"]) == 90_000
    assert time.process_time() - began < 20


# Include


def test_include_merges_mappings_and_replaces_lists(write):
    write("shared/one.yaml", "scoring: {threshold: 0.1, rollouts: 3}\nmetrics: [a/a, b/b]\nname: one\n")
    write("shared/two.yaml", "scoring: {rollouts: 5, aggregation: mean}\nname: two\nsource: {a/a: {path: rows.csv}}\n")
    main = write("p.yaml", "include: [shared/one.yaml, shared/two.yaml]\nscoring: {threshold: 0.9}\nmetrics: [c/c]\n")
    document = read_document(main, (), {})
    assert document.data == {
        "scoring": {"threshold": 0.9, "rollouts": 5, "aggregation": "mean"},
        "metrics": ["c/c"],
        "name": "two",
        "source": {"a/a": {"path": "rows.csv"}},
    }
    path = document.place(("source", "a/a", "path"))
    assert (path.file, path.line, path.base) == ("shared/two.yaml", 3, Path.cwd() / "shared")
    assert document.place(("scoring", "threshold")).file == "p.yaml"
    assert document.base == Path.cwd()


def test_include_is_relative_to_the_file_it_stands_in(write):
    write("a/b/deep.yaml", "deep: true\n")
    write("a/mid.yaml", "include: b/deep.yaml\nmid: true\n")
    assert data(write("p.yaml", "include: a/mid.yaml\n")) == {"deep": True, "mid": True}
    assert data("include: a/mid.yaml\n") == data({"include": ["a/mid.yaml"]}) == {"deep": True, "mid": True}


def test_another_component_replaces_the_included_one(write):
    write("shared.yaml", "source: {rows/csv: {path: a.csv, kind: row}}\n")
    assert data("include: shared.yaml\nsource: {rows/jsonl: {path: b}}") == {"source": {"rows/jsonl": {"path": "b"}}}
    assert data("include: shared.yaml\nsource: {rows/csv: {path: b}}")["source"]["rows/csv"] == {
        "path": "b",
        "kind": "row",
    }


def test_include_cycles_name_the_chain(write):
    write("b.yaml", "include: c.yaml\n")
    write("c.yaml", f"include: ../{Path.cwd().name}/a.yaml\n")
    problem = the_problem(write("a.yaml", "x: 1\ninclude: b.yaml\n"))
    assert (problem.file, problem.line, problem.column) == ("c.yaml", 1, 10)
    assert "a.yaml -> b.yaml -> c.yaml -> a.yaml" in problem.message


def test_a_file_included_along_two_ways_is_no_cycle(write):
    for number in range(15):
        write(f"f{number}.yaml", f"include: [f{number + 1}.yaml, ./f{number + 1}.yaml]\nk{number}: 1\n")
    write("f15.yaml", "last: 1\n")
    assert data(Path("f0.yaml"))["last"] == 1


def test_a_missing_include_is_reported_where_it_is_named(write):
    write("shared.yaml", "a: 1\na: 2\n")
    first, second = problems(write("p.yaml", "x: 1\ninclude:\n  - shred.yaml\n  - shared.yaml\n"))
    assert (first.file, at(first), first.hint) == ("p.yaml", (3, 5), "shared.yaml")
    assert (second.file, at(second)) == ("shared.yaml", (2, 1))


def test_include_takes_names_only():
    assert at(the_problem("include: {a: b}\n")) == (1, 10)
    assert at(the_problem("include: [3]\n")) == (1, 11)


# Variables


def test_variables_are_expanded_in_values_and_never_parsed_again():
    environ = {"A": "12", "B": "x: ${A}", "EMPTY": ""}
    text = "a: ${A}\nb: '${A}-${B}'\nc: $${A}\nd: [\"${NO:-e}\", '${EMPTY:-f}', '${NO:-}']\n${A}: $A\n"
    expected = {"a": "12", "b": "12-x: ${A}", "c": "${A}", "d": ["e", "f", ""], "${A}": "$A"}
    assert data(text, (), environ) == expected
    assert data({"a": "${A}"}, {"b": "${A}"}, environ) == {"a": "12", "b": "12"}


def test_an_unset_variable_names_the_nearest():
    problem = the_problem("m: {url: 'http://${JUDGE_ULR}/v1'}\n", (), {"JUDGE_URL": "secret", "HOME": "/"})
    assert (at(problem), problem.path, problem.hint) == ((1, 10), "m.url", "JUDGE_URL")
    assert "JUDGE_ULR is not set" in problem.message
    assert "secret" not in str(problem)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("JUDGE_KEY", None),
        ("JUDGE_UR", "JUDGE_URL"),
        ("JUDGEURL", "JUDGE_URL"),
        ("JUGDE_URL", "JUDGE_URL"),
        ("OTHER", None),
    ],
)
def test_a_variable_with_a_word_of_its_own_is_no_misspelt_one(name, nearest):
    assert the_problem(f"m: {{url: '${{{name}}}'}}\n", (), {"JUDGE_URL": "x", "HOME": "/"}).hint == nearest


@pytest.mark.parametrize("text", ["${", "${}", "${a b}", "${1}", "x ${A"])
def test_a_malformed_variable_says_how_to_write_it(text):
    assert "$${" in the_problem({"a": text}, (), {"A": "1"}).message


def test_an_include_may_use_a_variable(write):
    write("ci.yaml", "a: 1\n")
    assert data("include: ${STAGE}.yaml\n", (), {"STAGE": "ci"}) == {"a": 1}


# Overrides


@pytest.mark.parametrize(
    ("override", "path", "expected"),
    [
        ("scoring.threshold=0.7", ("scoring", "threshold"), 0.7),
        ("name=no", ("name",), "no"),
        ("name='12'", ("name",), "12"),
        ("name=a=b", ("name",), "a=b"),
        ("name=", ("name",), None),
        ("gate={min_score: 0.5}", ("gate", "min_score"), 0.5),
        ("source.rows/csv.path=b.csv", ("source", "rows/csv", "path"), "b.csv"),
        ("source.path=b.csv", ("source", "rows/csv", "path"), "b.csv"),
        ("metrics.0.proxy/format.field=x", ("metrics", 0, "proxy/format", "field"), "x"),
        ("metrics[0].field=x", ("metrics", 0, "proxy/format", "field"), "x"),
        ("metrics.proxy/format.timeout=5", ("metrics", 0, "proxy/format", "timeout"), 5),
        ("metrics.helpful.model=other", ("metrics", 1, "llm/judge", "model"), "other"),
        ("metrics.llm/judge.model=other", ("metrics", 1, "llm/judge", "model"), "other"),
        ("metrics.helpful.llm/judge.model=other", ("metrics", 1, "llm/judge", "model"), "other"),
        ("metrics[2].weight=2", ("metrics", 2, "proxy/keywords", "weight"), 2),
        ("metrics[1]=a/b", ("metrics", 1), "a/b"),
        ('metrics."helpful"."model"=x', ("metrics", 1, "llm/judge", "model"), "x"),
    ],
)
def test_overrides_reach_their_value(override, path, expected):
    document = read_document(METRICS, [override], {})
    result = document.data
    for step in path:
        result = result[step]
    assert result == expected
    place = document.place(path)
    assert (place.file, place.line, place.column, place.base) == ("--set", None, None, Path.cwd())


def test_an_override_leaves_the_rest_in_place():
    document = read_document(METRICS, {"metrics.helpful.timeout": 5, "metrics[0].field": "x"}, {})
    assert document.data["metrics"] == [
        {"proxy/format": {"field": "x"}},
        {"llm/judge": {"as": "helpful", "model": "grader", "timeout": 5}},
        {"proxy/keywords": None},
    ]
    assert document.place(("metrics", 0, "proxy/format"), key=True).line == 3
    assert document.place(("metrics", 1, "llm/judge", "model")).file == "<text>"


def test_later_overrides_win_and_unset_variables_may_be_overridden():
    assert data("url: ${URL}\n", ["url=a", "url=b"]) == {"url": "b"}


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("threshold", "has no '='"),
        ("a..b=1", "cannot read the path"),
        ("=1", "cannot read the path"),
        ("metrics[7].field=1", "has 3 items"),
        ("source.rows/csv.path.x=1", "is text: 'qa.csv'"),
        ("source.rows/jsonl.path=x", "source={rows/jsonl: {}}"),
        ("scoring={a: 1, a: 2}", "given twice"),
        ("scoring=[1", "not valid YAML"),
        ("a.user={{ input }}", "write --set 'a.user=\"{{ input }}\"'"),
        ("a.user={{ input", "write --set 'a.user=\"{{ input\"'"),
        (
            "a.user=@x",
            "'@x' is not valid YAML: found character that cannot start any token; if it is text, write --set",
        ),
        ("a.user=Say: a: b", "write --set 'a.user=\"Say: a: b\"'"),
        ("scoring=.inf", "finite"),
        ("include=x.yaml", "include"),
    ],
)
def test_a_wrong_override_is_reported(override, words):
    problem = the_problem(METRICS, [override])
    assert words in problem.message
    assert (problem.file, problem.line) == ("--set", None)


def test_an_unknown_label_names_the_nearest():
    problem = the_problem(METRICS, ["metrics.helpfull.model=x"])
    assert (problem.path, problem.hint) == ("metrics.helpfull.model", "helpful")


def test_an_ambiguous_label_asks_for_the_index():
    problem = the_problem("metrics: [a/a, b/b, a/a]\n", ["metrics.a/a.weight=2"])
    assert "metrics[0], metrics[2]" in problem.message


# All at once


def test_all_problems_are_reported_at_once_in_order(write):
    write("inc.yaml", "i: [\n")
    text = "include: inc.yaml\na: ${ONE}\nb: 1\nb: 2\nc: .nan\nd: ${TWO}\nc: 3\n"
    reports = problems(write("p.yaml", text), ["x", "metrics=["])
    assert [(problem.file, problem.line) for problem in reports if problem.file == "p.yaml"] == [
        ("p.yaml", 2), ("p.yaml", 4), ("p.yaml", 5), ("p.yaml", 6), ("p.yaml", 7),
    ]  # fmt: skip
    assert {problem.file for problem in reports} == {"p.yaml", "inc.yaml", "--set"}
    with pytest.raises(ConfigError, match=re.escape("p.yaml:4:1: the key 'b' is given twice, in lines 3 and 4")):
        read_document(Path("p.yaml"), (), {})
    assert json.dumps([problem.value for problem in reports])
