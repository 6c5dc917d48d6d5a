"""The expectations of a task, compared with an output."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score
from dicast.testing import run_pipeline, sample
from dicast_tasksets import Expected


def score(output, *, field=None, **expected):
    return Expected(field=field).score(sample(output, context={"expected": expected}))


def values(output, **condition):
    result = score(output, fields={"x": condition})
    return result.value, result.signals


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        ({"value": "a"}, ["a"], ["b", None, 1, ["a"]]),
        ({"value": 1}, [1, 1.0], [True, "1", 2]),
        ({"value": None}, [None], [0, "", False]),
        ({"value": {"a": [1, {"b": None}]}}, [{"a": [1, {"b": None}]}], [{"a": [1, {"b": 0}]}, {"a": [1]}, {}]),
        ({"type": "string"}, ["", "a"], [1, None, []]),
        ({"type": "number"}, [1, 1.5], [True, "1", None]),
        ({"type": "integer"}, [1, 2.0], [1.5, True, "1"]),
        ({"type": "boolean"}, [True, False], [0, 1, None]),
        ({"type": "array"}, [[], [1]], [{}, "a"]),
        ({"type": "object"}, [{}, {"a": 1}], [[], "a"]),
        ({"type": "null"}, [None], [0, "", []]),
        ({"expected_type": "string"}, ["a"], [1]),
        ({"min": 1}, [1, 1.5], [0.5, True, "2", None]),
        ({"max": 1}, [1, -5], [1.5, False, "0"]),
        ({"pattern": "^a+$"}, ["a", "aaa"], ["ab", 1, None]),
    ],
)
def test_each_condition_of_a_field(condition, good, bad):
    (name,) = condition
    for value in good:
        assert values({"x": value}, **condition) == (1.0, {f"fields.x.{name}": True})
    for value in bad:
        assert values({"x": value}, **condition) == (0.0, {f"fields.x.{name}": False})
    assert values({"y": 1}, **condition) == (0.0, {f"fields.x.{name}": False})


def test_a_condition_that_is_null_is_none_and_a_null_alone_is_what_is_expected():
    conditions = {"value": None, "expected_type": "number", "min": 0, "max": None, "pattern": None}
    assert score({"n": 5}, fields={"n": conditions}).signals == {"fields.n.expected_type": True, "fields.n.min": True}
    assert score({"n": None}, fields={"n": {"value": None}}).value == 1
    assert score({"n": 5}, fields={"n": {"value": None}}).value == 0
    assert isinstance(score({"n": 5}, fields={"n": {"min": None}}), Failure)


def test_each_condition_has_the_same_share():
    result = score(
        {"s": 0.5, "deep": {"n": ["no"]}, "text": "it is a success"},
        fields={"s": {"type": "number", "min": 0, "max": 0.4}, "/deep/n/0": {"value": "no"}},
        required_patterns=["success", "^never$"],
        forbidden_patterns=["TODO"],
    )
    assert result.value == pytest.approx(4 / 6)
    assert result.details == "not as expected: fields.s.max, required[1]"
    assert result.signals == {
        "fields.s.type": True, "fields.s.min": True, "fields.s.max": False, "fields./deep/n/0.value": True,
        "required[0]": True, "required[1]": False, "forbidden[0]": True,
    }  # fmt: skip


def test_what_is_forbidden_makes_zero_and_nothing_but_that_makes_one():
    assert score("a TODO", required_patterns=["a"], forbidden_patterns=["TODO"]).value == 0.0
    assert score("all done", forbidden_patterns=["TODO"]).value == 1.0


def test_text_that_is_json_has_fields():
    assert score('{"x": 3}', fields={"x": {"value": 3}}).value == 1.0
    assert score("no json", fields={"x": {"value": 3}}).value == 0.0


def test_patterns_search_the_text_the_strings_of_an_object_or_a_field():
    assert score("line one\nline two", required_patterns=["(?m)^line two$"]).value == 1.0
    assert score({"a": ["x", {"b": "needle"}], "n": 42}, required_patterns=["(?m)^needle$", "42"]).value == 1.0
    assert score({"a": "x", "b": "needle"}, field="a", required_patterns=["needle"]).value == 0.0
    assert score({"a": "x"}, field="no.such", forbidden_patterns=["x"]).value == 1.0


def test_commands_are_counted_and_not_run():
    result = score("x", required_patterns=["x"], pass_commands=["rm -rf /", "b"])
    assert (result.value, result.signals) == (1.0, {"required[0]": True, "pass_commands": 2})


@pytest.mark.parametrize(
    ("context", "output", "message"),
    [
        ({}, "x", "nothing is expected of 'sample'"),
        ({"expected": {}}, "x", "nothing is expected of 'sample'"),
        ({"expected": {"pass_commands": ["a"]}}, "x", "nothing is expected of 'sample', beside commands to run"),
        ({"expected": {"required_patterns": ["a"]}}, None, "row 'sample' has no output"),
        ({"expected": {"required_pattern": ["a"]}}, "x", "has no 'required_pattern'"),
        ({"expected": {"required_patterns": ["(a"]}}, "x", "is no regular expression of RE2"),
        ({"expected": "yes"}, "x", "what is expected is an object, not 'yes' (context.expected)"),
        (
            {"expected": {"fields": {"f": {"min": "a"}}}},
            "x",
            "min is a number, not 'a' (context.expected.fields.f.min)",
        ),
    ],
)
def test_without_what_it_needs_it_is_a_failure(context, output, message):
    failure = Expected().score(sample(output, context=context))
    assert isinstance(failure, Failure)
    assert failure.kind == "missing_input"
    assert message in failure.message


def test_patterns_that_explode_elsewhere_do_not():
    began = time.process_time()
    assert score("a" * 1_000_000 + "b", required_patterns=["(a+)+$", "(a|aa)+$", "(.*a){20}$"]).value == 0.0
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "output",
    [
        "\ud800 lone",
        b"\xff\x00",
        {"x": b"x"},
        {1, 2},
        "",
        "\0\1\2",
        {"a": "\udfff"},
        [[[[1]]]],
        0,
        False,
        "[" * 100_000,
        '{"x":' * 1000,
    ],
)
def test_odd_outputs_end_in_a_score(output):
    result = score(
        output, fields={"x": {"type": "string"}}, required_patterns=["x", "\u00e9"], forbidden_patterns=["y"]
    )
    assert isinstance(result, Score)


@pytest.mark.slow
def test_deep_values_are_compared_without_recursion():
    deep = other = 1
    for _ in range(100_000):
        deep, other = [deep], [other]
    assert Expected().score(sample({"x": deep}, context={"expected": {"fields": {"x": {"value": other}}}})).value == 1.0
    result = score({"x": deep}, required_patterns=["^1$"])
    assert result.value == 1.0


def test_long_outputs_take_time_in_proportion():
    text = "lorem ipsum " * 4_000_000  # 48 MB
    began = time.process_time()
    assert score(text + "end", required_patterns=["ipsum end$", "dolor"]).value == 0.5
    assert time.process_time() - began < 20


def test_an_empty_field_is_refused():
    with pytest.raises(ConfigError, match="field is empty"):
        Expected(field="")


def test_rows_may_bring_what_is_expected_of_them():
    text = "metrics: [tasksets/expected]"
    subjects = [sample("a b", context={"expected": {"required_patterns": ["a", "c"]}})]
    assert run_pipeline(text, subjects=subjects).verdicts[0].score == 0.5


def test_a_missing_output_is_unscored_and_zero_on_request():
    """A missing output in a file has no score, unless the pipeline asks for 0."""
    expected = {"expected": {"required_patterns": ["a"]}}
    subjects = [sample("a", context=expected), sample(None, id="none", context=expected)]
    done = run_pipeline("metrics: [tasksets/expected]", subjects=subjects)
    assert (done.document["scored"], done.document["failures"], done.document["coverage"]) == (
        1,
        {"missing_input": 1},
        0.5,
    )
    zero = run_pipeline("metrics: [tasksets/expected: {on_failure: zero}]", subjects=subjects)
    assert [verdict.score for verdict in zero.verdicts] == [1.0, 0.0]


PATTERN = st.sampled_from(["a", "b+", "^c", "[0-9]{2}", "(?i)D$", "."])
FIELD = st.fixed_dictionaries(
    {},
    optional={
        "value": st.none() | st.integers() | st.text(max_size=3),
        "type": st.sampled_from(["string", "number", "null"]),
        "min": st.integers(-5, 0),
        "max": st.integers(0, 5),
        "pattern": PATTERN,
    },
).filter(bool)
OUTPUT = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(st.characters(codec=None), max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "z"]), inner, max_size=3),
    max_leaves=8,
)


@given(
    OUTPUT,
    st.fixed_dictionaries(
        {},
        optional={
            "fields": st.dictionaries(st.sampled_from(["x", "y", "x.y", "/x/0"]), FIELD, max_size=3),
            "required_patterns": st.lists(PATTERN, max_size=3),
            "forbidden_patterns": st.lists(PATTERN, max_size=2),
        },
    ),
)
def test_the_score_is_the_share_of_what_holds_and_the_same_again(output, expected):
    first, again = (Expected().score(sample(output, context={"expected": expected})) for _ in range(2))
    assert first == again
    if isinstance(first, Failure):
        assert output is None or not any(expected.values())
        return
    holds = [good for name, good in first.signals.items() if not name.startswith("forbidden")]
    clean = all(good for name, good in first.signals.items() if name.startswith("forbidden"))
    assert first.value == (sum(holds) / len(holds) if holds and clean else float(clean))
    json.dumps(dict(first.signals))


@given(OUTPUT.filter(lambda value: "nan" not in repr(value)))
def test_an_output_is_always_as_it_is(output):
    assert score({"x": output}, fields={"x": {"value": output}}).value == 1.0
