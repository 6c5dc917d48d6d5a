from __future__ import annotations

import json
import random
from collections import Counter

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score, Subject
from dicast_diff import Json

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, 1.0, 0.5]) | st.sampled_from("ab/~*")
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab/~*"), inner), max_leaves=12
)


def judged(output, reference, **options):
    return Json(**options).score(Subject("row", "q1", output=output, reference=reference))


def value(output, reference, **options) -> float:
    return judged(output, reference, **options).value


def canonical(value, *, ignore_order):
    """An oracle: equal for values that count as the same."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return repr(value)
    if isinstance(value, int | float):
        return repr(float(value))
    if isinstance(value, dict):
        return json.dumps(
            {key: canonical(item, ignore_order=ignore_order) for key, item in value.items()}, sort_keys=True
        )
    items = [canonical(item, ignore_order=ignore_order) for item in value]
    return json.dumps(["list", *(sorted(items) if ignore_order else items)])


def test_keys_in_any_order_and_numbers_in_any_form_are_the_same():
    assert value('{"a": 1, "b": [1.0, null]}', {"b": [1, None], "a": 1.0}) == 1.0


@pytest.mark.parametrize(("output", "reference"), [(True, 1), ([0], [False]), ("1", "true"), ('"1"', 1), ([], {})])
def test_values_of_different_types_are_not(output, reference):
    assert value(output, reference) == 0.0


def test_the_details_name_the_places_that_differ():
    output = {"a": {"x": 1, "y/z": "left"}, "list": [1, 2, 3], "more": True}
    score = judged(output, {"a": {"x": 2, "y/z": "right"}, "list": [1, 2], "less": {}})
    assert (
        score.details
        == "5 differences: /a/x: 1, not 2; /a/y~1z: 'left', not 'right'; /list/2 is not in the reference: 3; and 2 more"
    )
    assert score.signals == {
        "is_json": True,
        "equal": False,
        "differences": 5,
        "paths": ["/a/x", "/a/y~1z", "/list/2", "/more", "/less"],
    }


def test_a_difference_of_the_whole_is_told_as_such():
    assert judged([1], {"a": 1}).details == "1 difference: the whole value: a list of 1, not an object of 1"


def test_order_counts_unless_it_is_ignored():
    assert value([1, 2, 2], [2, 1, 2]) == 0.0
    assert value([1, 2, 2], [2, 1, 2], ignore_order=True) == 1.0
    assert value([1, 2, 2], [2, 1, 1], ignore_order=True) == 0.0
    assert value([{"a": [1, 2]}, [3]], [[3], {"a": [2, 1]}], ignore_order=True) == 1.0
    assert value([1, True], [True, True], ignore_order=True) == 0.0


def test_of_unordered_lists_the_items_that_only_one_has_are_told():
    score = judged({"l": [1, 2, 3, 3]}, {"l": [3, 1, 4, 5]}, ignore_order=True)
    assert score.signals["paths"] == ["/l/1", "/l/3", "/l/2", "/l/3"]
    assert "/l/1 is not in the reference: 2" in score.details
    first = judged(
        [{"id": 1, "n": "a"}, {"id": 2, "n": "b"}], [{"id": 2, "n": "c"}, {"id": 1, "n": "a"}], ignore_order=True
    )
    assert first.details == "1 difference: /1/n: 'b', not 'c'"


@pytest.mark.parametrize(
    "ignore", [["meta.time", "items.*.id"], ["/meta/time", "/items/*/id"], ["meta", "*.*.id"], ["*"]]
)
@pytest.mark.parametrize("ignore_order", [False, True])
def test_ignored_places_do_not_count(ignore, ignore_order):
    output = {"meta": {"time": 1}, "items": [{"id": 1, "n": 1}, {"id": 2, "n": 2}]}
    reference = {"meta": {}, "items": [{"id": 3, "n": 1}, {"n": 2}]}
    assert value(output, reference, ignore_order=ignore_order) == 0.0
    assert value(output, reference, ignore=ignore, ignore_order=ignore_order) == 1.0


@pytest.mark.parametrize("wrong", [[""], ["/"], ["a", "."], "a"])
def test_paths_that_name_nothing_are_refused(wrong):
    with pytest.raises(ConfigError, match="ignore"):
        Json(ignore=wrong)


def test_text_that_is_no_json_scores_0_and_as_a_reference_fails():
    score = judged('{"a": 1,', {"a": 1})
    assert score.value == 0.0
    assert score.details.startswith("not JSON: ")
    assert "line 1 column" in score.details
    assert score.signals == {"is_json": False}
    failure = judged({"a": 1}, "{'a': 1}")
    assert isinstance(failure, Failure)
    assert failure.kind == "missing_input"
    assert "the reference of 'q1' is not JSON" in failure.message


def test_many_differences_are_counted_to_a_thousand():
    score = judged(list(range(5000)), list(range(1, 5001)))
    assert score.signals["differences"] == 1000
    assert len(score.signals["paths"]) == 20
    assert score.details.startswith("1,000 differences or more: ")
    assert len(score.details) < 300


def test_a_field_is_compared_alone():
    assert value({"args": {"a": 1}, "x": 2}, {"a": 1}, field="args") == 1.0
    assert "'args'" in judged({}, {"a": 1}, field="args").details


@pytest.mark.slow
@pytest.mark.parametrize("ignore_order", [False, True])
def test_no_nesting_is_too_deep(ignore_order):
    deep = other = 1
    for level in range(100_000):
        deep, other = ([deep], [other]) if level % 2 else ({"a": deep}, {"a": other})
    assert value(deep, other, ignore_order=ignore_order) == 1.0
    score = judged(deep, [deep], ignore_order=ignore_order)
    assert score.value == 0.0
    assert len(score.details) < 400
    assert len(judged({"k" * 10**6: 1}, {}).signals["paths"][0]) == 201
    text = "[" * 100_000 + "]" * 100_000
    assert judged(text, [1]).details.startswith("not JSON: ")


@pytest.mark.parametrize("odd", ["\ud800", b"bytes", {"\ud800": 1}, {1: 2}, {1.5}, object()])
def test_what_is_no_json_is_different_and_can_be_told(odd):
    for ignore_order in (False, True):
        score = judged({"a": [odd, 1]}, {"a": [2, 3]}, ignore_order=ignore_order)
        assert score.value == 0.0
        score.details.encode()
        orjson.dumps(dict(score.signals))


@pytest.mark.slow
def test_unordered_megabytes_are_compared_in_time_that_grows_with_them():
    rows = [{"id": number, "tags": [number % 7, number % 3], "on": number % 2 == 0} for number in range(20_000)]
    shuffled = random.Random(1).sample(rows, len(rows))
    assert value(rows, shuffled, ignore_order=True) == 1.0


@given(values, values, st.booleans())
def test_the_score_is_that_of_the_canonical_forms_and_symmetric(first, other, ignore_order):
    score = judged({"v": first}, {"v": other}, ignore_order=ignore_order)
    equal = canonical(first, ignore_order=ignore_order) == canonical(other, ignore_order=ignore_order)
    assert score.value == float(equal)
    assert score == judged({"v": first}, {"v": other}, ignore_order=ignore_order)
    assert score.value == value({"v": other}, {"v": first}, ignore_order=ignore_order)


@given(values, st.randoms())
def test_a_shuffled_value_is_the_same_without_order(first, draw):
    def shuffled(item):
        if isinstance(item, list):
            return draw.sample([shuffled(item_) for item_ in item], len(item))
        return {key: shuffled(item_) for key, item_ in item.items()} if isinstance(item, dict) else item

    assert value({"v": first}, {"v": shuffled(first)}, ignore_order=True) == 1.0


@given(st.lists(scalars, max_size=6), st.lists(scalars, min_size=1, max_size=6))
def test_items_that_only_one_list_has_are_all_told(first, other):
    score = judged(first, other, ignore_order=True)
    keys = [Counter(canonical(item, ignore_order=True) for item in side) for side in (first, other)]
    extra, lacking = (keys[0] - keys[1]).total(), (keys[1] - keys[0]).total()
    expected = 1 if extra == lacking == 1 else extra + lacking
    assert score.signals.get("differences", 0) == expected


@given(values)
def test_any_value_against_itself_as_text_scores_1(first):
    assert isinstance(judged(orjson.dumps({"v": first}).decode(), {"v": first}), Score)
    assert value(orjson.dumps({"v": first}).decode(), {"v": first}) == 1.0
