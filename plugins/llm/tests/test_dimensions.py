"""Rubrics with dimensions: several numbers on scales of their own, one score."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Subject
from dicast.judging import Dimension, collapse
from dicast.testing import FakeChatModel, run_pipeline

NAMES = ("correctness", "completeness", "clarity", "consistency", "usefulness", "safety")
WEIGHTS = (0.20, 0.15, 0.15, 0.10, 0.20, 0.20)
NUMBERS = (8, 7, 9, 8, 7, 8)
RUBRIC = {
    "id": "quality-v1",
    "version": "1.0.0",
    "name": "Quality",
    "instructions": "You judge a report.",
    "dimensions": [
        {"name": name, "weight": weight, "scale": "1-10", "criteria": f"how much {name} it has"}
        for name, weight in zip(NAMES, WEIGHTS, strict=True)
    ],
    "target_score": 0.8,
}
ROW = Subject("row", "1", "Write it.", "Here it is.")


def says(numbers, **fields):
    def reply(request):
        (seal,) = re.findall(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)
        scores = dict(zip(NAMES, numbers, strict=False))
        return json.dumps({"seal": seal, "rationale": "So.", **scores, "score": 0.1, "confidence": 0.8} | fields)

    return reply


@pytest.fixture
def run(tmp_path):
    def run(rubric, model=None, options=""):
        (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(rubric), encoding="utf-8")
        text = f"judges: [{{llm/judge: {{model: scripted, rubric: '{tmp_path}/rubric.yaml'{options}}}}}]"
        model = model or FakeChatModel(says(NUMBERS))
        return run_pipeline(text, subjects=[ROW], components={"scripted": model}), model

    return run


def refused(run, rubric, **options):
    with pytest.raises(ConfigError) as error:
        run(rubric, **options)
    return str(error.value)


def with_dimension(**changes):
    first = {key: value for key, value in (RUBRIC["dimensions"][0] | changes).items() if value is not None}
    return RUBRIC | {"dimensions": [first, *RUBRIC["dimensions"][1:]]}


def test_dimensions_collapse_to_one_score_by_their_weights(run):
    done, model = run(RUBRIC)
    (verdict,) = done.verdicts
    assert verdict.score == pytest.approx(0.78, abs=1e-12)
    assert verdict.confidence == 0.8
    assert verdict.signals["dimensions"] == dict(zip(NAMES, map(float, NUMBERS), strict=True))
    assert (verdict.rubric_id, verdict.rubric_version) == ("quality-v1", "1.0.0")
    prompts = "\n".join(message.content for message in model.asked[0].messages)
    assert "You judge a report." in prompts
    assert "- correctness, 1 to 10: how much correctness it has" in prompts
    assert '"clarity": a number from 1 to 10' in prompts


def test_best_numbers_are_1_and_the_scales_may_differ(run):
    two = [
        {"name": "correctness", "weight": 0.75, "scale": "0-1"},
        {"name": "completeness", "weight": 0.25, "scale": "1-5"},
    ]
    done, _ = run(RUBRIC | {"dimensions": two}, FakeChatModel(says((1, 5))))
    assert done.verdicts[0].score == 1.0
    done, _ = run(RUBRIC | {"dimensions": two}, FakeChatModel(says((0.5, 1))))
    assert done.verdicts[0].score == pytest.approx(0.75 * 0.5 + 0.25 / 5)


@pytest.mark.parametrize("numbers", [(0, *NUMBERS[1:]), (11, *NUMBERS[1:]), ("8", *NUMBERS[1:]), (8, 7)])
def test_number_that_is_missing_or_off_its_scale_is_no_verdict(run, numbers):
    done, _ = run(RUBRIC, FakeChatModel(says(numbers)))
    (failed,) = done.of("eval.failed")
    assert failed.payload["failure_mode"] == "judge_output_invalid"
    assert done.verdicts == ()


def test_model_is_told_the_scales_as_a_schema(run):
    _, model = run(RUBRIC)
    properties = model.asked[0].schema["properties"]
    assert properties["clarity"] == {"type": "number", "minimum": 1, "maximum": 10}
    assert properties["score"] == {"type": "number", "minimum": 0, "maximum": 1}


def test_rubric_without_instructions_has_some(run):
    _, model = run({key: value for key, value in RUBRIC.items() if key != "instructions"})
    assert "by the dimensions below" in model.asked[0].messages[0].content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"weight": 0.15}, "the weights of the dimensions sum to 0.95, they must sum to 1"),
        ({"weight": None}, "dimensions[0].weight is missing; it is a number above 0, 1 at most"),
        ({"weight": -0.2}, "dimensions[0].weight is -0.2, it must be a number above 0, 1 at most"),
        ({"weight": True}, "dimensions[0].weight is True, it must be a number"),
        ({"weight": "0.2"}, "dimensions[0].weight is '0.2', it must be a number"),
        ({"scale": "10"}, "dimensions[0].scale is '10', it must be its lowest and its highest number"),
        ({"scale": "10-1"}, "dimensions[0].scale is '10-1', it must be"),
        ({"scale": 10}, "dimensions[0].scale is 10, it must be"),
        (
            {"scale": None},
            "dimensions[0].scale is missing; it is its lowest and its highest number, 0 or more, such as 1-10",
        ),
        ({"name": "score"}, "dimensions[0].name is 'score', it must be a text, and none of seal, rationale, score"),
        ({"name": "clarity"}, "two dimensions are called 'clarity'"),
        ({"wieght": 1}, "unknown key dimensions[0].wieght, did you mean 'weight'?"),
        ({"criteria": ["a"]}, "dimensions[0].criteria is ['a'], it must be a text"),
    ],
)
def test_wrong_dimension_is_told(run, changes, message):
    assert f"rubric quality-v1: {message}" in refused(run, with_dimension(**changes))


def test_everything_that_is_wrong_is_told_at_once(run):
    wrong = with_dimension(weight=None, scale="x") | {"instructoins": "…"}
    message = refused(run, wrong)
    assert "unknown key instructoins, did you mean 'instructions'?" in message
    assert "dimensions[0].weight" in message
    assert "dimensions[0].scale" in message


@pytest.mark.parametrize("dimensions", [[], {}, "clarity", None, ["clarity"]])
def test_dimensions_are_a_list_of_mappings(run, dimensions):
    assert "dimensions" in refused(run, RUBRIC | {"dimensions": dimensions})


def test_dimensions_stand_in_one_place(run):
    assert "has dimensions of its own" in refused(run, RUBRIC, options=", dimensions: {tone: 1}")


SCALES = st.tuples(st.integers(0, 5), st.integers(1, 20)).map(lambda ends: (float(ends[0]), float(sum(ends))))


@given(st.lists(st.tuples(SCALES, st.floats(0.001, 1), st.floats(0, 1)), min_size=1, max_size=10))
def test_score_is_bounded_and_between_the_dimensions(drawn):
    dimensions = [Dimension(str(n), weight, low, high) for n, ((low, high), weight, _) in enumerate(drawn)]
    values = {str(n): low + share * (high - low) for n, ((low, high), _, share) in enumerate(drawn)}
    score = collapse(dimensions, values)
    shares = [values[dimension.name] / dimension.high for dimension in dimensions]
    assert min(shares) <= score <= max(shares)
