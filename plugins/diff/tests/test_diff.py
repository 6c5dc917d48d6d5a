from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Score, Subject
from dicast_diff import Match

words = st.lists(st.sampled_from(["a", "b", "c", "dd"]), max_size=12)


def judged(output, reference, **options) -> Score:
    return Match(**options).score(Subject("row", "q1", output=output, reference=reference))


def test_hello_there_and_hello_world_share_half():
    score = judged("hello there", "hello world")
    assert score.value == 0.5
    assert score.confidence == 1.0
    assert score.details == "differs from word 2: 'there', not 'world'"


def test_white_space_does_not_matter_unless_exact():
    assert judged(" hello\n  world ", "hello world").value == 1.0
    assert judged("hello  world", "hello world", strictness="exact").value == 0.0
    assert judged("hello world", "hello world", strictness="exact").value == 1.0


def test_case_matters():
    assert judged("Hello", "hello").value == 0.0


def test_exact_says_where_the_texts_part():
    assert judged("abcX", "abcd", strictness="exact").details == "differs from character 4: 'X', not 'd'"
    assert judged("abc", "abcd", strictness="exact").details == "differs from character 4: the end, not 'd'"


@pytest.mark.parametrize("strictness", ["normalized_whitespace", "exact"])
def test_an_output_without_text_is_called_empty(strictness):
    options = {"strictness": strictness}
    assert judged("", "Yes, it is", **options).details == "the output is empty, not 'Yes, it is'"
    assert judged("  ", "Yes", **options).details == "the output is blank, not 'Yes'"
    assert judged({"a": ""}, "Yes", field="a", **options).details == "the output's field 'a' is empty, not 'Yes'"
    assert judged("Yes", "Yes it is").details == "differs from word 2: the end, not 'it is'"


def test_signals_say_what_a_credit_was_made_of():
    assert judged("a", "a").signals == {}
    assert judged("a b c", "a c").signals == {
        "common_words": 2,
        "output_words": 3,
        "reference_words": 2,
    }


def test_exact_says_at_which_place_values_differ():
    score = judged({"a": [1, {"b": True}]}, {"a": [1, {"b": 1}]}, strictness="exact")
    assert score.details == "differs at /a/1/b: true, not 1"


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.slow
@pytest.mark.parametrize("strictness", ["exact", "normalized_whitespace"])
def test_no_nesting_is_too_deep_to_be_equal(strictness):
    assert judged(nested(100_000), nested(100_000), strictness=strictness).value == 1.0
    assert judged("[" * 800 + "]" * 800, [nested(800)], strictness=strictness).value < 1.0


def test_values_that_cannot_be_written_down_have_no_words():
    assert judged(nested(100_000), [1], strictness="exact").value == 0.0
    failure = judged(nested(100_000), [1])
    assert isinstance(failure, Failure)
    assert "'q1' is nested too deep" in failure.message


@pytest.mark.parametrize("odd", ["\ud800", {"\ud800": "\udfff"}, b"bytes", {1: {2}}])
def test_odd_values_are_told_in_text_that_can_be_written(odd):
    for strictness in ("exact", "normalized_whitespace"):
        score = judged(odd, "x y", strictness=strictness)
        if isinstance(odd, dict) and strictness == "normalized_whitespace":
            assert "is an object with" in score.message
            score.message.encode()
        else:
            assert score.value == 0.0
            score.details.encode()


def test_too_many_words_to_align_are_a_failure_at_once():
    failure = judged("a " * 20_000_000, "b " * 100_000)
    assert isinstance(failure, Failure)
    assert failure.kind == "timeout"
    assert "20,000,000 words against 100,000" in failure.message
    assert judged("a " * 20_000_000, "b " * 100_000, strictness="exact").value == 0.0


def test_long_differences_are_cut():
    assert len(judged("x" * 1000, "y " * 1000).details) < 150


def test_order_counts():
    assert judged("b a", "a b").value == 0.5


def test_no_reference_is_a_failure_and_no_score():
    answer = judged("anything", None)
    assert isinstance(answer, Failure)
    assert answer.kind == "missing_input"
    assert "'q1'" in answer.message


@pytest.mark.parametrize("output", ["", "  "])
def test_no_output_scores_0(output):
    assert judged(output, "hello world").value == 0.0


@pytest.mark.parametrize("reference", [None, "", " \n", [], (), [None, " "]])
def test_a_reference_that_is_blank_or_an_empty_list_is_missing(reference):
    for metric in (Match(), Match("exact")):
        assert metric.score(Subject("row", "q1", "asked", "", reference)).kind == "missing_input"


@pytest.mark.parametrize("strictness", ["exact", "normalized_whitespace"])
@pytest.mark.parametrize(
    ("output", "reference"),
    [
        ({"a": 1, "b": [1, 2.0]}, {"b": [1.0, 2], "a": 1}),
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, '{ "a": 1 }'),
        ("42", 42),
        (True, True),
    ],
)
def test_values_are_compared_as_values(output, reference, strictness):
    assert judged(output, reference, strictness=strictness).value == 1.0


@pytest.mark.parametrize(
    ("output", "reference"), [({"a": True}, {"a": 1}), ([0], [False]), ([1, 2], [2, 1]), ({"a": 1}, {}), ("yes", True)]
)
def test_different_values_are_not_exact(output, reference):
    assert judged(output, reference, strictness="exact").value == 0.0


def test_different_objects_share_their_sorted_json_text():
    assert judged({"b": 2, "a": 1}, {"a": 1, "b": 3}).value == pytest.approx(0.75)


@pytest.mark.parametrize("field", ["answer.0", "/answer/0"])
def test_a_field_of_the_output_is_compared_with_the_whole_reference(field):
    assert judged({"answer": ["yes"]}, "yes", field=field).value == 1.0
    assert judged('{"answer": ["yes"]}', "yes", field=field).value == 1.0


def test_a_missing_field_scores_0_and_is_named():
    score = judged({"other": "yes"}, "yes", field="answer")
    assert score.value == 0.0
    assert "'answer'" in score.details


def test_wrong_options_are_refused():
    with pytest.raises(ConfigError, match="unknown strictness 'exakt'.* did you mean 'exact'"):
        Match(strictness="exakt")
    with pytest.raises(ConfigError, match="field is empty"):
        Match(field="")


def test_the_metric_is_a_picklable_value_of_tier_truth():
    assert pickle.loads(pickle.dumps(Match(field="a"))) == Match(field="a")
    assert Match.tier == "truth"


def longest_common_subsequence(first, second) -> int:
    """The textbook dynamic programme."""
    row = [0] * (len(second) + 1)
    for item in first:
        before = row
        row = [0]
        for index, other in enumerate(second):
            row.append(before[index] + 1 if item == other else max(before[index + 1], row[-1]))
    return row[-1]


@given(words, words.filter(bool))
def test_the_credit_is_that_of_the_longest_common_subsequence(output, reference):
    total = len(output) + len(reference)
    expected = 2 * longest_common_subsequence(output, reference) / total if total else 1.0
    assert judged(" ".join(output), " ".join(reference)).value == pytest.approx(expected)


@given(st.text().filter(str.strip), st.text().filter(str.strip))
def test_the_credit_is_symmetric_in_0_to_1_and_1_only_for_equal_words(output, reference):
    credit = judged(output, reference).value
    assert 0.0 <= credit <= 1.0
    assert credit == judged(reference, output).value
    assert (credit == 1.0) == (output.split() == reference.split())


def test_an_object_is_not_compared_as_text_with_a_text():
    failure = judged({"answer": "Lima", "stop_reason": "stop"}, "stop")
    assert failure.kind == "missing_input"
    assert "field: answer" in failure.message
    assert judged({"answer": "Lima"}, "Lima", field="answer").value == 1.0
    assert judged({"answer": "Lima"}, {"answer": "Lima"}).value == 1.0
    assert judged({"answer": "Lima"}, '{"answer": "Lima"}').value == 1.0
