from __future__ import annotations

import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError
from dicast.testing.pipeline import Bench
from dicast_score_extractor import Scores


def build(tmp_path, **options):
    return Bench(tmp_path).build("extractor", "score_extractor/scores", options)


def record(**responses):
    """A record whose responses are given by criterion: metrics as a mapping, content as anything else."""
    replies = {
        name: {"content": "", "metrics": content_}
        if isinstance(content_, dict)
        else {"content": content_, "metrics": {}}
        for name, content_ in responses.items()
    }
    first = next(iter(replies.values()))
    return {"row": {"id": "1"}, "response": first, "responses": replies, "metrics": {}}


def alone(content, **metrics):
    """The record of a task without criteria."""
    return {"row": {"id": "1"}, "response": {"content": content, "metrics": metrics}, "metrics": {}}


def score(value, **options):
    """Return the score that the extractor reads from *value*, which the model reports."""
    return Scores(**options).extract(alone("", score=value))["scores"]["default"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (4, 4.0),
        ("3.5", 3.5),
        (" 85% ", 85.0),
        ("85 %", 85.0),
        (True, 1.0),
        (False, 0.0),
        ("-.5e1", -5.0),
        ("+7.", 7.0),
        (0, 0.0),
    ],
)
def test_numbers_and_texts_that_are_one_number_are_scores(value, expected):
    result = score(value)
    assert result == expected
    assert type(result) is float


@pytest.mark.parametrize(
    "value",
    [None, "", "%", "good", "3 or 4", "3/4", "85%%", "1,000", "1_000", "nan", "inf", "-inf", "1e999", "0x10", "３",
     math.nan, math.inf, 10**400, [4], {"value": 4}],
)  # fmt: skip
def test_anything_else_is_missing_and_never_a_number(value):
    assert score(value) is None
    assert Scores(allow_missing=True, threshold=0.5).extract(alone("", score=value)) == {}


def test_the_score_is_read_from_a_reply_that_is_json():
    assert Scores().extract(alone('{"score": 2.25}')) == {"scores": {"default": 2.25}}
    assert Scores().extract(alone({"score": "2.25"})) == {"scores": {"default": 2.25}}
    assert Scores().extract(alone('```json\n{"score": 2.25}\n```\n')) == {"scores": {"default": 2.25}}


@pytest.mark.parametrize("content", ["", "score: 4", "[4]", '["score"]', '{"score": NaN}', '{"rating": 4}', "4", None])
def test_a_reply_without_the_key_has_no_score(content):
    assert Scores().extract(alone(content)) == {"scores": {"default": None}}


def test_what_the_model_reports_comes_first_even_when_it_is_null():
    assert score(0.5) == 0.5
    reported = Scores().extract(alone('{"score": 9}', score=None))
    assert reported == {"scores": {"default": None}}


def test_replies_are_not_read_when_told_so():
    assert Scores(parse_json_content=False).extract(alone('{"score": 2.25}')) == {"scores": {"default": None}}


def test_each_criterion_has_its_score_and_its_flag():
    metrics = Scores(threshold=0.7).extract(record(a={"score": 0.72}, b={"score": 0.65}, c='{"score": 0.7}'))
    assert metrics == {
        "scores": {"a": 0.72, "b": 0.65, "c": 0.7},
        "score_flags": {"a": True, "b": False, "c": True},
    }


@pytest.mark.parametrize(("mode", "passing"), [("gte", [0.7, 0.8]), ("gt", [0.8]), ("lte", [0.6, 0.7]), ("lt", [0.6])])
def test_the_mode_says_on_which_side_of_the_threshold_a_score_passes(mode, passing):
    metrics = Scores(threshold=0.7, threshold_mode=mode).extract(
        record(**{str(value): {"score": value} for value in (0.6, 0.7, 0.8)})
    )
    assert [float(name) for name, passed in metrics["score_flags"].items() if passed] == passing


def test_a_missing_score_has_no_flag():
    metrics = Scores(threshold=0.7, flag_field="passed").extract(record(a={"score": None}, b={"score": 1}))
    assert metrics == {"scores": {"a": None, "b": 1.0}, "passed": {"b": True}}


def test_a_score_of_nothing_is_a_score_with_a_flag():
    metrics = Scores(threshold=0.0, threshold_mode="lte").extract(record(a={"score": 0}, b={"score": False}))
    assert metrics == {"scores": {"a": 0.0, "b": 0.0}, "score_flags": {"a": True, "b": True}}


def test_only_the_named_criteria_are_read():
    record_ = record(a={"score": 1}, b={"score": 2})
    assert Scores(criteria=("b", "no such")).extract(record_) == {"scores": {"b": 2.0}}
    assert Scores(criteria=()).extract(record_) == {"scores": {"a": 1.0, "b": 2.0}}


def test_two_extractors_of_different_criteria_share_no_leaf():
    assert Scores(threshold=1.0).writes == ("scores", "score_flags")
    assert Scores().writes == ("scores",)
    assert Scores(criteria=("a",), threshold=1.0, flag_field="ok").writes == ("scores.a", "ok.a")


def test_a_record_without_a_response_has_no_scores():
    assert Scores(threshold=0.5).extract({"row": {"id": "1"}, "metrics": {}}) == {}


@pytest.mark.parametrize(
    "options", [{"threshold_mode": "above"}, {"flag_field": "scores"}, {"flag_field": "A b"}, {"key": ""}]
)
def test_wrong_options_are_refused_when_the_pipeline_is_built(tmp_path, options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        build(tmp_path, **options)


def test_a_misspelt_mode_is_told_the_nearest(tmp_path):
    with pytest.raises(ConfigError) as caught:
        build(tmp_path, threshold_mode="gtee")
    assert caught.value.problems[0].hint == "gte"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_survives_as_number_as_text_and_in_json(value):
    assert score(value) == value
    assert score(repr(value)) == value
    assert score(f" {value!r}% ") == value
    assert Scores().extract(alone(orjson.dumps({"score": value}).decode())) == {"scores": {"default": value}}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(min_size=1, max_size=4), json_values | st.text(), min_size=1, max_size=4), st.booleans())
def test_whatever_a_model_says_scores_are_finite_or_missing(contents, allow_missing):
    replies = {name: {"content": content, "metrics": {}} for name, content in contents.items()}
    metrics = Scores(threshold=0.5, allow_missing=allow_missing).extract({"responses": replies})
    scores, flags = metrics.get("scores", {}), metrics.get("score_flags", {})
    assert all(value is None or math.isfinite(value) for value in scores.values())
    assert flags.keys() == {name for name, value in scores.items() if value is not None}
    assert allow_missing or scores.keys() == contents.keys()
    orjson.dumps(metrics)
