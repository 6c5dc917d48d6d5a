"""Results of evaluators: one rule for preflight, scoring and ``dicast evaluator validate``."""

from __future__ import annotations

import json
import math

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from dicast_evaluator.cli import evaluator
from dicast_evaluator.result import BadResult, problem, read

MESSAGES = {
    '"not a dict"': "evaluator output must be a JSON object",
    "[]": "evaluator output must be a JSON object",
    "{}": "evaluator output missing required 'score' field",
    '{"score": "not-a-number"}': "evaluator output 'score' must be numeric",
    '{"score": null}': "evaluator output 'score' must be numeric",
    '{"score": [1]}': "evaluator output 'score' must be numeric",
    '{"score": Infinity}': "evaluator output 'score' must be finite",
    '{"score": NaN}': "evaluator output 'score' must be finite",
    '{"score": "nan"}': "evaluator output 'score' must be finite",
    '{"score": -0.01}': "evaluator output 'score' must be between 0.0 and 1.0",
    '{"score": 1.01}': "evaluator output 'score' must be between 0.0 and 1.0",
}


@pytest.mark.parametrize("text", MESSAGES)
def test_the_command_says_what_is_wrong_and_exits_with_2(text):
    done = CliRunner().invoke(evaluator, ["validate"], input=text)
    assert (done.exit_code, done.stderr) == (2, f"Error: {MESSAGES[text]}\n")
    done = CliRunner().invoke(evaluator, ["validate", "--json"], input=text)
    assert (done.exit_code, json.loads(done.stdout)["error"]["message"]) == (2, MESSAGES[text])


@pytest.mark.parametrize("text", ["", "no", '{"score": 1} {"score": 1}', "[" * 100_000])
def test_what_is_no_json_is_refused(text):
    done = CliRunner().invoke(evaluator, ["validate"], input=text)
    assert done.exit_code == 2
    assert done.stderr.startswith("Error: evaluator output is not valid JSON")


@pytest.mark.parametrize("text", ['{"score": 0}', '{"score": 1.0, "more": []}', '{"score": "0.5"}', '{"score": true}'])
def test_a_result_is_valid(text):
    done = CliRunner().invoke(evaluator, ["validate"], input=text)
    assert (done.exit_code, done.stdout) == (0, "valid\n")


def test_any_finite_number_is_valid_in_the_range_any():
    assert CliRunner().invoke(evaluator, ["validate", "--score-range", "any"], input='{"score": -1.5}').exit_code == 0
    done = CliRunner().invoke(evaluator, ["validate", "--score-range", "any"], input='{"score": NaN}')
    assert done.exit_code == 2


values = st.one_of(st.floats(), st.integers(), st.booleans(), st.text(), st.none(), st.lists(st.floats(), max_size=2))


@given(
    st.one_of(values, st.dictionaries(st.sampled_from(["score", "other"]), values)), st.sampled_from(["unit", "any"])
)
def test_scoring_takes_what_the_validator_accepts_and_nothing_else(value, score_range):
    message = problem(value, score_range)
    if message is not None:
        with pytest.raises(BadResult):
            read(value, score_range)
        return
    result = read(value, score_range)
    assert math.isfinite(result.score)
    assert score_range == "any" or 0.0 <= result.score <= 1.0
    assert "score" not in result.side_information
