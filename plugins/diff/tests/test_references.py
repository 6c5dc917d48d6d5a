"""A reference may be a list: the best answer counts, or the mean, or the list is one value."""

from __future__ import annotations

import asyncio

import pytest

from dicast import Cost, Failure, Judgment, Score, Subject
from dicast_diff import Json, Match, Numeric, Similarity

METRICS = [Match(), Match("exact"), Similarity()]


def judged(metric, output, reference) -> Score | Failure:
    return metric.score(Subject("row", "q1", "asked", output, reference))


@pytest.mark.parametrize("metric", METRICS)
def test_the_best_of_several_references_counts(metric):
    score = judged(metric, "City of Paris", ["Paris", "City of Paris", "Lyon"])
    assert (score.value, score.details) == (1.0, "reference 2 of 3: 'City of Paris'")
    assert score.signals["references"] == {"mode": "any", "count": 3, "best": 2}


def test_the_details_name_the_closest_reference():
    score = judged(Match(), "the big city", ["a city", "the city", "x"])
    assert score.value == pytest.approx(4 / 5)
    assert score.details.endswith("(reference 2 of 3)")


@pytest.mark.parametrize(
    "metric", [Match(references="all"), Match("exact", references="all"), Similarity(references="all")]
)
def test_the_mean_over_all_references(metric):
    alone = [judged(metric, "Paris", reference_).value for reference_ in ("Paris", "Lyon")]
    score = judged(metric, "Paris", ["Paris", "Lyon"])
    assert score.value == pytest.approx(sum(alone) / 2)
    assert score.signals["references"] == {"mode": "all", "count": 2, "scores": pytest.approx(alone)}


def test_a_whole_list_is_one_value():
    assert judged(Match(references="whole"), "Paris", ["Paris"]).value == 0.0
    assert judged(Match(references="whole"), '["Paris"]', ["Paris"]).value == 1.0


@pytest.mark.parametrize("references", ["any", "all", "whole"])
@pytest.mark.parametrize("make", [Match, Similarity])
def test_next_to_an_output_that_is_a_list_the_list_is_one_value(make, references):
    assert judged(make(references=references), ["a", "b"], ["a", "b"]).value == 1.0
    assert judged(make(references=references), ["a"], ["a", "b"]).value < 1.0
    assert judged(make(field="x", references=references), {"x": ["a", "b"]}, ["a", "b"]).value == 1.0


def test_a_list_as_json_text_may_be_the_whole_list_or_one_of_it():
    assert judged(Match(), '["a", "b"]', ["a", "b"]).value == 1.0
    assert judged(Match(), "[1]", ["[1]", "one"]).value == 1.0
    assert judged(Match(), "[draft]", ["[draft]"]).value == 1.0


@pytest.mark.parametrize("metric", [*METRICS, Numeric(), Json()])
@pytest.mark.parametrize("reference", [None, "", " \t", []])
def test_a_blank_reference_is_missing(metric, reference):
    result = judged(metric, "", reference)
    assert isinstance(result, Failure)
    assert result.kind == "missing_input"


@pytest.mark.parametrize("metric", [*METRICS, Numeric()])
def test_blank_references_of_a_list_are_left_out_and_counted(metric):
    assert judged(metric, "7", [None, "7", " "]).signals["references"] == {
        "mode": "any",
        "count": 3,
        "best": 2,
        "blank": 2,
    }
    assert judged(metric, "7", [None, " "]).kind == "missing_input"


def test_numbers_are_compared_with_each_reference():
    assert judged(Numeric(), "42.0", ["41", 42]).value == 1.0
    assert judged(Numeric(references="all"), "42", [41, 42]).value == 0.5
    unusable = judged(Numeric(), "42", ["many", 42])
    assert (unusable.value, unusable.signals["references"]["unusable"]) == (1.0, 1)
    assert judged(Numeric(references="all"), "42", ["many", 42]).kind == "missing_input"
    assert judged(Numeric(references="whole"), "42", [42]).kind == "missing_input"


def test_a_list_is_one_value_to_json():
    assert judged(Json(), ["a", "b"], ["a", "b"]).value == 1.0
    assert judged(Json(), "a", ["a"]).value == 0.0


def test_code_is_compared_with_each_reference():
    assert judged(Match("ast_equivalent"), "x=1", ["y = 1", "x = 1"]).value == 1.0


class Strict:
    """A judge that calls two texts alike if one ends with the other."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, subject, children):
        self.asked.append(subject.id)
        alike = subject.output.endswith(subject.reference) or subject.reference.endswith(subject.output)
        return Judgment(float(alike), 1.0, "llm", cost=Cost("0.01"))


def test_a_judge_is_asked_about_one_reference_after_the_other_until_one_is_right():
    judge = Strict()
    score = asyncio.run(judged(Match("semantic", judge=judge), "in Paris", ["Lyon", "Paris", "Rome"]))
    assert (score.value, score.cost) == (1.0, Cost("0.04"))
    assert len(judge.asked) == len({*judge.asked}) == 4
    assert score.signals["references"]["best"] == 2
    every = asyncio.run(judged(Match("semantic", judge=Strict(), references="all"), "in Paris", ["Lyon", "Paris"]))
    assert (every.value, every.cost) == (0.5, Cost("0.04"))
