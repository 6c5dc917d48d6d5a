from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Failure, Subject
from dicast_diff import Similarity
from dicast_diff.similarity import _SCORERS

SHORT = st.text(st.sampled_from("ab c\ud800é"), max_size=12)


def judged(output, reference, **options):
    return Similarity(**options).score(Subject("row", "q1", output=output, reference=reference))


@pytest.mark.parametrize(
    ("scorer", "value"),
    [
        ("ratio", 8 / 13),
        ("Indel", 8 / 13),
        ("Levenshtein", 4 / 7),
        ("Hamming", 4 / 7),
        ("Prefix", 0.0),
        ("Postfix", 0.0),
    ],
)
def test_scorers_are_rapidfuzzs(scorer, value):
    assert judged("kitten", "sitting", scorer=scorer).value == pytest.approx(value)


def test_words_may_come_in_any_order_where_the_scorer_says_so():
    assert judged("a fox jumps", "jumps a fox", scorer="token_sort_ratio").value == 1.0
    assert judged("a fox jumps", "jumps a fox").value < 1.0
    assert judged("the fox", "I saw the fox run", scorer="partial_ratio").value == 1.0


@pytest.mark.parametrize("name", ["jaro_winkler", "JAROWINKLER", "JaroWinkler"])
def test_the_case_of_a_scorers_name_does_not_matter(name):
    assert Similarity(scorer=name) == Similarity(scorer="JaroWinkler")


def test_an_unknown_scorer_names_the_nearest():
    with pytest.raises(ConfigError, match="unknown scorer 'levenstein'.* did you mean 'Levenshtein'"):
        Similarity(scorer="levenstein")
    with pytest.raises(ConfigError, match="did you mean 'token_sort_ratio'"):
        Similarity(scorer="token_sort")


def test_what_is_no_text_is_compared_as_json_text():
    assert judged({"b": 1, "a": 2}, '{"a": 2, "b": 1}').value == 1.0
    assert 0.5 < judged({"b": 1, "a": 2}, {"a": 2, "b": 3}).value < 1.0


def test_the_details_show_where_long_texts_begin_to_differ():
    score = judged("x" * 500 + "left", "x" * 500 + "right")
    assert score.details.endswith("alike: '…xxxxxxxxxxleft', not '…xxxxxxxxxxright'")
    assert score.signals == {"scorer": "ratio", "equal": False}


def test_a_missing_field_scores_0_and_no_reference_fails():
    assert "'answer'" in judged({}, "x", field="answer").details
    assert judged("x", None).kind == "missing_input"


def test_texts_that_would_take_too_long_are_a_failure_at_once():
    failure = judged("a b " * 2_500_000, "b a" * 100_000)
    assert isinstance(failure, Failure)
    assert failure.kind == "timeout"
    assert "10,000,000 and 300,000 characters" in failure.message
    assert judged("a" * 20_000, "b" * 20_000, scorer="partial_ratio").kind == "timeout"
    assert judged("a" * 100_000_000, "b").kind == "timeout"
    assert judged("a" * 10_000_000, "b" * 10_000_000, scorer="Hamming").value == 0.0


def test_the_metric_is_a_picklable_value_of_tier_truth():
    assert pickle.loads(pickle.dumps(Similarity(scorer="osa"))) == Similarity(scorer="OSA")
    assert Similarity.tier == "truth"


@pytest.mark.parametrize("scorer", _SCORERS)
@given(first=SHORT.filter(str.strip), other=SHORT.filter(str.strip))
def test_likeness_is_in_0_to_1_symmetric_and_the_same_each_time(scorer, first, other):
    score = judged(first, other, scorer=scorer)
    assert 0.0 <= score.value <= 1.0
    assert score == judged(first, other, scorer=scorer)
    assert score.value == pytest.approx(judged(other, first, scorer=scorer).value)
    assert judged(first, first, scorer=scorer).value == 1.0


def test_a_negation_is_more_similar_than_a_paraphrase():
    """The figures of the page: similarity measures the topic, not the truth."""
    wrong, right = "The drug is not safe for children.", "Children can take this medicine without danger."
    scores = [
        Similarity().score(Subject("row", "1", "", output, "The drug is safe for children.")).value
        for output in (wrong, right)
    ]
    assert [round(score, 2) for score in scores] == [0.94, 0.36]
