"""Edit distance, ROUGE-N, number of words, refusals."""

from __future__ import annotations

import json

import pytest

from dicast import ConfigError, Failure, Subject
from dicast_check import IsRefusal, Levenshtein, WordCount


def holds(check, output, reference=None, **context):
    result = check.outcome(Subject("row", "1", "what?", output, reference, context))
    assert not isinstance(result, Failure), result
    return result.holds


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        (Levenshtein("kitten"), ["kitten", "sitting", "kit"], ["a longer text", ""]),
        (Levenshtein("kitten", 0), ["kitten"], ["Kitten", "kitten "]),
        (Levenshtein("kitten", 0, ignore_case=True), ["KITTEN"], ["kittens"]),
        (Levenshtein("kitten", 3, negate=True), ["mittens and more"], ["sitting"]),
        (WordCount(2, 3), ["two words", " three\nof\tthem "], ["one", "", "now there are four"]),
        (WordCount(max=1), ["", "one"], ["one two"]),
        (WordCount(min=2), ["one two three"], ["one"]),
        (WordCount(2, 2, negate=True), ["one"], ["one two"]),
        (IsRefusal(), ["I’m sorry, no.", "", " \n", "Well, as an AI I have no opinion.", "Sadly I cannot help you."], ["Ankara", "It helps."]),
        (IsRefusal(negate=True), ["Ankara"], ["Sorry"]),
    ],
)  # fmt: skip
def test_a_measure_holds_within_its_limits(check, passing, failing):
    assert [output for output in passing if not holds(check, output)] == []
    assert [output for output in failing if holds(check, output)] == []


def test_a_phrase_of_a_refusal_is_a_phrase_of_whole_words():
    assert not holds(IsRefusal(), "It was ethical, not ethically doubtful.")
    assert holds(IsRefusal(), "That is not ethical.")


def test_a_distance_is_from_the_reference_by_default_and_missing_without_one():
    assert holds(Levenshtein(), "kitten", "sitting")
    result = Levenshtein().score(Subject("row", "1", "", "kitten"))
    assert isinstance(result, Failure)
    assert result.kind == "missing_input"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (WordCount, "word_count needs min or max"),
        (lambda: WordCount(1.5), "min is an integer, not 1.5"),
        (lambda: WordCount(3, 2), "max is 2, below min"),
        (lambda: Levenshtein("a", -1), "0 or more"),
    ],
)
def test_limits_that_no_text_keeps_or_all_keep_are_refused(make, message):
    with pytest.raises((ConfigError, ValueError), match=message):
        make()


@pytest.mark.slow
class TestRouge:
    """The library takes seconds to import."""

    @pytest.fixture
    def rouge_n(self):
        pytest.importorskip("rouge_score")
        from dicast_check import RougeN

        return RougeN

    def test_rouge_n_is_the_f1_of_shared_n_grams(self, rouge_n):
        # 4 of 5 and 4 of 4 words are shared: 2 * .8 * 1 / 1.8
        result = rouge_n("the cat sat down", threshold=0.9).outcome(Subject("row", "1", "", "The cat sat down, Anna."))
        assert result.value == pytest.approx(8 / 9)
        assert not result.holds
        assert "ROUGE-1 0.8889" in result.why
        assert holds(rouge_n("the cat sat down", threshold=0.8), "The cat sat down, Anna.")
        assert holds(rouge_n("the cat sat", n=2, threshold=1), "The cat sat")
        assert not holds(rouge_n("cat the", n=2, threshold=0.1), "the cat")

    def test_treebank_counts_punctuation_and_letters_of_any_script(self, rouge_n):
        assert not holds(rouge_n("привет", threshold=0.1), "привет")  # the library's words are of a to z
        assert holds(rouge_n("größer", threshold=1, tokens="treebank"), "Größer")
        tokens = rouge_n("Hi, U.S.", threshold=1, tokens="treebank")
        assert [holds(tokens, text) for text in ("hi , u.s.", "hi u.s.")] == [True, False]

    def test_a_negated_value_is_the_rest_to_one(self, rouge_n):
        check = rouge_n("a b", threshold=0.5, negate=True)
        assert check.outcome(Subject("row", "1", "", "a b")).value == 0
        assert check.outcome(Subject("row", "1", "", "c")).value == 1

    @pytest.mark.parametrize("n", [0, 10, 1.5])
    def test_n_is_from_1_to_9(self, n, rouge_n):
        with pytest.raises((ConfigError, ValueError)):
            rouge_n("a", n=n)
        row = Subject("row", "1", "", "a", context={"assert": json.dumps([{"check": "rouge-n", "value": "a", "n": n}])})
        from dicast_check import Assertions

        assert Assertions().score(row).kind == "missing_input"
