from __future__ import annotations

import math

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dicast.toolkit.flat import flat

RESPONSE = {"content": "4", "metrics": {"score": 4, "usage": {"prompt_tokens": 7}}}


def test_a_record_has_the_columns_of_document_002_in_their_order():
    record = {
        "row": {"id": "q1", "input": "2+2?", "APPID": "7"},
        "response": RESPONSE,
        "responses": {"analysis": RESPONSE, "tone": {"content": "kind", "metrics": {}}},
        "metrics": {"score": 0.82, "scores": {"analysis": 0.71}, "score_flags": {"analysis": True}},
        "retry": {"attempts": 2, "max_attempts": 3, "history": [{"attempt": 1, "error": "timeout"}]},
        "security_level": "official",
        "determinism_level": "high",
    }
    assert list(flat(record).items()) == [
        ("id", "q1"),
        ("input", "2+2?"),
        ("APPID", "7"),
        ("llm_content", "4"),
        ("llm_content_metric_score", 4),
        ("llm_content_metric_usage_prompt_tokens", 7),
        ("llm_analysis", "4"),
        ("llm_analysis_metric_score", 4),
        ("llm_analysis_metric_usage_prompt_tokens", 7),
        ("llm_tone", "kind"),
        ("metric_score", 0.82),
        ("metric_scores_analysis", 0.71),
        ("metric_score_flags_analysis", True),
        ("retry_attempts", 2),
        ("retry_max_attempts", 3),
        ("retry_history", '[{"attempt":1,"error":"timeout"}]'),
        ("security_level", "official"),
    ]


def test_the_case_of_nested_metrics():
    metrics = {"score": 0.82, "scores": {"analysis": 0.71}, "score_flags": {"analysis": True}}
    assert list(flat({"metrics": metrics})) == ["metric_score", "metric_scores_analysis", "metric_score_flags_analysis"]


def test_without_criteria_there_is_the_one_response():
    assert flat({"row": {"id": "1"}, "response": {"content": "yes", "metrics": {}}, "metrics": {}}) == {
        "id": "1",
        "llm_content": "yes",
    }


def test_lists_stay_lists_and_empty_mappings_vanish():
    assert flat({"metrics": {"tags": ["a", "b"], "scores": {}, "deep": {"deeper": {}}}}) == {"metric_tags": ["a", "b"]}


def test_a_missing_value_keeps_its_column_and_a_missing_text_has_none():
    assert flat({"response": {"content": None}, "metrics": {"scores": {"tone": None}}}) == {"metric_scores_tone": None}


def test_a_number_that_is_not_finite_is_missing():
    assert flat({"row": {"a": math.nan}, "metrics": {"b": math.inf}}) == {"a": None, "metric_b": None}


def test_two_values_of_one_name_both_stay():
    metrics = {"scores": {"a": 1}, "scores_a": 2}
    assert flat({"row": {"metric_scores_a": 0}, "metrics": metrics}) == {
        "metric_scores_a": 0,
        "metric_scores_a_2": 1,
        "metric_scores_a_3": 2,
    }
    record = {"response": {"content": "x"}, "responses": {"content": {"content": "y"}}}
    assert flat(record) == {"llm_content": "x", "llm_content_2": "y"}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab_", max_size=3), inner, max_size=3),
    max_leaves=8,
)


def leaves(value) -> int:
    return sum(map(leaves, value.values())) if isinstance(value, dict) else 1


@given(st.dictionaries(st.text("ab_", max_size=3), VALUES, max_size=4))
def test_no_value_is_lost_and_none_comes_twice(metrics):
    result = flat({"metrics": metrics})
    assert len(result) == leaves(metrics)
    assert all(name.startswith("metric_") for name in result)
    assert orjson.loads(orjson.dumps(result, option=orjson.OPT_NON_STR_KEYS)) is not None
