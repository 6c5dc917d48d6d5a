"""Scores of other tools as they are in a file: values, raw numbers and categories, one scale for each name."""

from __future__ import annotations

from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from dicast.toolkit.recorded_scores import ScoreScales, with_unique_names

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
ANSWERS = (
    st.none()
    | st.booleans()
    | st.floats()
    | st.integers()
    | TEXTS
    | st.lists(st.integers(0, 9))
    | st.dictionaries(TEXTS, TEXTS)
)


@given(TEXTS, ANSWERS)
def test_every_answer_is_one_value_one_raw_number_or_one_category(name, answer):
    score = ScoreScales().score(name, answer)
    if answer is None:
        assert score is None
        return
    assert [score.value, score.raw, score.text].count(None) == 2
    if isinstance(answer, bool | int | float) and isfinite(answer if abs(answer) < 1e308 else float("inf")):
        assert float(answer) == (score.value if score.raw is None else score.raw)
        assert (score.raw is None) is (0 <= answer <= 1)


@given(st.lists(st.floats(-10, 10), min_size=1))
def test_after_a_first_pass_all_numbers_of_a_name_have_one_scale(numbers):
    scales = ScoreScales()
    for number in numbers:
        scales.score("stars", number)
    second = [scales.score("stars", number) for number in numbers]
    is_raw = any(not 0 <= number <= 1 for number in numbers)
    assert {score.raw is not None for score in second} == {is_raw}


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3"]), max_size=8))
def test_names_of_a_subject_are_unique_and_none_is_lost(names):
    scales = ScoreScales()
    scores = list(with_unique_names([*(scales.score(name, 1) for name in names), None]))
    assert len(scores) == len(names) == len({score.name for score in scores})
    assert {score.name for score in scores} >= set(names)


def test_a_truth_value_is_one_or_zero_and_an_empty_text_a_category():
    scales = ScoreScales()
    assert scales.score("ok", True).value == 1.0
    assert scales.score("ok", False).value == 0.0
    assert scales.score("tone", "").text == '""'
    assert scales.score("nan", float("nan")).text == "nan"
    assert scales.score(" ", 1).name == "score"
