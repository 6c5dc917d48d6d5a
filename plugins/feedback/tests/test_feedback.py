from __future__ import annotations

import asyncio
from fractions import Fraction
from itertools import permutations
from math import log2

import attrs
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judge, Judgment, Score, Subject, estimate
from dicast.testing import FakeJudge, FakeMetric, run_pipeline
from dicast_feedback import Classification, CodePipeline, MultiObjective, Retrieval, StringSimilarity

METRICS = (Retrieval(), StringSimilarity(), Classification(), MultiObjective(), CodePipeline())

ids = st.lists(st.integers(0, 9), max_size=8)


def judged(metric, output, reference=None) -> Score:
    return metric.score(Subject("row", "q1", output=output, reference=reference))


def value(metric, output, reference=None) -> float:
    return judged(metric, output, reference).value


# feedback/retrieval


def test_two_of_three_right_ids_give_f1_of_two_thirds_and_say_which():
    score = judged(Retrieval(), [1, 2, 4], [1, 2, 3])
    assert score.value == pytest.approx(2 / 3)
    assert score.feedback == "Retrieved 2 of 3 right ids. Missed: '3'. Wrong: '4'."
    assert [score.signals[name] for name in ("correct", "missed", "wrong")] == [2, 1, 1]


@pytest.mark.parametrize(
    ("measure", "expected"),
    [("precision", 2 / 5), ("recall", 2 / 3), ("f1", 0.5), ("mrr", 0.5)],
)
def test_the_value_is_the_measure_that_was_asked_for(measure, expected):
    score = judged(Retrieval(measure=measure), ["x", "a", "y", "b", "z"], ["a", "b", "c"])
    assert score.value == score.signals[measure] == pytest.approx(expected)
    assert set(score.signals) >= {"f1", "precision", "recall", "mrr", "ndcg"}


def test_ndcg_looks_at_grades_and_places():
    # The example of Wikipedia's "Discounted cumulative gain": DCG 6.861 of an ideal 8.740 for the documents at hand.
    grades = {"d1": 3, "d2": 2, "d3": 3, "d4": 0, "d5": 1, "d6": 2, "d7": 3, "d8": 2}
    ranked = ["d1", "d2", "d3", "d4", "d5", "d6"]
    assert value(Retrieval(measure="ndcg", k=6), ranked, grades) == pytest.approx(0.785, abs=5e-4)


def test_only_the_first_k_are_looked_at():
    score = judged(Retrieval(measure="precision", k=2), ["a", "x", "b", "c"], ["a", "b"])
    assert (score.value, score.signals["recall"]) == (0.5, 0.5)


def test_nothing_retrieved_and_nothing_right():
    nothing, graded = judged(Retrieval(), [], ["a"]).signals, judged(Retrieval(), ["a"], {"a": 0}).signals
    assert (nothing["precision"], nothing["recall"], nothing["f1"]) == (0, 0, 0)
    assert (graded["precision"], graded["recall"], graded["f1"], graded["ndcg"]) == (0, 1, 0, 0)


@pytest.mark.parametrize("reference", ["", " ", [], "[]"])
def test_a_list_of_right_ids_that_is_empty_is_missing(reference):
    assert judged(Retrieval(), ["a"], reference).kind == "missing_input"


def test_a_repeated_id_costs_precision_and_earns_nothing():
    score = judged(Retrieval(), ["a", "a"], ["a", "b"])
    assert (score.signals["precision"], score.signals["recall"]) == (0.5, 0.5)
    assert score.signals["ndcg"] == pytest.approx(1 / (1 + 1 / log2(3)))


@pytest.mark.parametrize("output", ["[1, 2]", [1, 2], ["1", "2"], [1.0, 2.0]])
def test_ids_are_compared_as_text_and_lists_may_be_json_text(output):
    assert value(Retrieval(), output, ["1", 2]) == 1.0


def test_a_single_id_is_a_list_of_one():
    assert value(Retrieval(measure="mrr"), ["b", "a"], "a") == 0.5


def test_an_object_is_no_list_of_ids():
    score = judged(Retrieval(), {"ids": [1]}, [1])
    assert (score.value, score.details) == (0.0, "the output is an object, not a list of ids")
    assert value(Retrieval(field="ids"), {"ids": [1]}, [1]) == 1.0


def test_a_grade_that_is_no_number_is_a_failure_that_names_it():
    answer = judged(Retrieval(), ["a"], {"a": "high"})
    assert isinstance(answer, Failure)
    assert answer.message == "the reference of 'q1' grades 'a' with 'high'; a grade is a number from 0 on"


def test_long_lists_are_cut_in_the_feedback():
    assert "and 990 more" in judged(Retrieval(), [], list(range(1000))).feedback


def test_wrong_options_of_retrieval_are_refused():
    with pytest.raises(ConfigError, match="unknown measure 'ndgc'.*did you mean 'ndcg'"):
        Retrieval(measure="ndgc")
    with pytest.raises(ConfigError, match="k is 0"):
        Retrieval(k=0)


@given(ids, st.lists(st.integers(0, 9), min_size=1, max_size=8, unique=True))
def test_precision_recall_and_f1_are_the_textbooks(retrieved, right):
    signals = judged(Retrieval(), retrieved, right).signals
    correct = len(set(retrieved) & set(right))
    precision = Fraction(correct, len(retrieved)) if retrieved else Fraction(0)
    recall = Fraction(correct, len(right)) if right else Fraction(1)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else Fraction(0)
    expected = (precision, recall, f1)
    assert [signals[name] for name in ("precision", "recall", "f1")] == pytest.approx(
        [float(result_) for result_ in expected]
    )


@given(
    st.lists(st.sampled_from("abcde"), max_size=5, unique=True),
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 3)),
    st.none() | st.integers(1, 5),
)
@example(["a"], {"a": 0}, None)
def test_ndcg_is_the_gain_over_the_best_of_all_orders(ids, grades, k):
    def dcg(order):
        return sum(grades.get(grade_, 0) / log2(place + 1) for place, grade_ in enumerate(order[:k], 1))

    best = max(map(dcg, permutations(grades)), default=0)
    expected = dcg(ids) / best if best else 0
    assert value(Retrieval(measure="ndcg", k=k), ids, grades) == pytest.approx(expected)


@given(ids.filter(bool), ids.filter(bool))
def test_f1_is_symmetric_where_nothing_repeats(left, right):
    left, right = list(dict.fromkeys(left)), list(dict.fromkeys(right))
    assert value(Retrieval(), left, right) == value(Retrieval(), right, left)


# feedback/string_similarity


def test_other_case_scores_95():
    score = judged(StringSimilarity(), "Hello World", "hello world")
    assert score.value == 0.95
    assert score.signals == {"equal": False, "equal_ignoring_case": True}


@pytest.mark.parametrize(
    ("output", "reference", "expected"),
    [
        (" same\n", "same", 1.0),
        ("", "word", 0.0),
        ("the cat sat", "The cat sat down", 6 / 7),
        ("a a a b", "A", 2 / 3),
        ({"a": 1}, {"a": 1.0}, 2 * 1 / 4),
    ],
)
def test_similarity_is_the_f1_of_different_words(output, reference, expected):
    assert value(StringSimilarity(), output, reference) == pytest.approx(expected)


def test_missing_and_extra_words_are_named():
    score = judged(StringSimilarity(), "the cat sat", "a cat sat")
    assert score.feedback == "Expected 'a cat sat', got 'the cat sat'. Missing words: 'a'. Extra words: 'the'."
    assert (score.signals["missing_words"], score.signals["extra_words"]) == (1, 1)


texts = st.lists(st.sampled_from(["a", "A", "b", "ß", "SS", " ", "dd"]), max_size=8).map(" ".join) | st.text()
texts = texts.filter(str.strip)


@given(texts, texts)
def test_similarity_is_symmetric_in_0_to_1_and_follows_the_rule(left, right):
    result = value(StringSimilarity(), left, right)
    assert result == value(StringSimilarity(), right, left)
    left_text, other = left.strip(), right.strip()
    if left_text == other:
        assert result == 1.0
    elif left_text.casefold() == other.casefold():
        assert result == 0.95
    else:
        first, second = set(left_text.casefold().split()), set(other.casefold().split())
        assert result == pytest.approx(2 * len(first & second) / (len(first) + len(second)))


def test_the_most_similar_of_several_references_counts_and_is_named():
    score = judged(StringSimilarity(), "a red fox", ["a blue fox", "a fox", "x"])
    assert score.value == pytest.approx(4 / 5)
    assert score.feedback.endswith("(Reference 2 of 3.)")
    assert value(StringSimilarity(references="all"), "a", ["a", "b"]) == 0.5
    assert value(StringSimilarity(), ["a"], ["a"]) == 1.0
    assert judged(StringSimilarity(), "a", " ").kind == "missing_input"


def test_one_of_several_classes_is_right():
    labels = ("spam", "ham", "eggs")
    score = judged(Classification(labels=labels), "ham", ["spam", "ham"])
    assert (score.value, score.signals["expected"], score.signals["references"]["best"]) == (1.0, "ham", 2)
    assert score.feedback == "Correct: 'ham'. (Reference 2 of 2.)"
    assert value(Classification(references="all"), "ham", ["spam", "ham"]) == 0.5
    assert judged(Classification(labels=labels), "ham", ["ham", "hma"]).kind == "missing_input"
    assert judged(Classification(labels=labels), "ham", " ").kind == "missing_input"


# feedback/classification


def test_the_right_class_scores_1_and_another_0_with_both_named():
    assert value(Classification(), " spam\n", "spam") == 1.0
    score = judged(Classification(), "ham", "spam")
    assert (score.value, score.feedback) == (0.0, "Expected 'spam', got 'ham'.")
    assert score.signals == {"correct": False}
    score = judged(Classification(labels=["spam", "ham"]), "ham", "spam")
    assert score.signals == {"correct": False, "known": True, "predicted": "ham", "expected": "spam"}


@pytest.mark.parametrize(("output", "reference"), [(7, "7"), ("7", 7.0), (True, "true")])
def test_classes_are_compared_as_text(output, reference):
    assert value(Classification(), output, reference) == 1.0


def test_case_matters():
    assert value(Classification(), "Spam", "spam") == 0.0


def test_an_output_that_is_no_class_is_told_the_classes():
    score = judged(Classification(labels=["spam", "ham"]), "It is spam.", "spam")
    assert (score.signals["known"], score.signals["predicted"]) == (False, None)
    assert score.feedback.endswith("Answer with one of 'spam', 'ham'.")


def test_a_reference_that_is_no_class_is_a_failure_with_the_nearest():
    answer = judged(Classification(labels=["spam", "ham"]), "spam", "spma")
    assert isinstance(answer, Failure)
    assert "did you mean 'spam'" in answer.message


@pytest.mark.parametrize(("stated", "repeated"), [(0.9, 0.9), (1, 1.0), ("high", None), (True, None), (2, None)])
def test_a_stated_confidence_is_repeated_and_changes_nothing(stated, repeated):
    metric = Classification(field="label", confidence_field="sure")
    score = judged(metric, {"label": "a", "sure": stated}, "a")
    assert (score.value, score.confidence, score.signals.get("confidence")) == (1.0, 1.0, repeated)


def test_wrong_labels_are_refused():
    for labels in (["a", "a"], [""], "a"):
        with pytest.raises(ConfigError, match="labels are"):
            Classification(labels=labels)


@given(st.sampled_from("abc"), st.sampled_from("abc"))
def test_classification_is_symmetric(left, right):
    assert value(Classification(), left, right) == value(Classification(), right, left) == float(left == right)


# feedback/multi_objective


def test_scores_in_the_output_are_weighed():
    output = {"latency": 0.7, "accuracy": {"score": 0.9, "feedback": "nearly"}}
    assert value(MultiObjective(), output) == pytest.approx(0.8)
    score = judged(MultiObjective(weights={"accuracy": 3}), output)
    assert score.value == pytest.approx(0.85)
    assert score.feedback == "[accuracy] 0.900: nearly\n[latency] 0.700\nOverall: 0.850, the weighted mean."
    assert score.signals == {"scores": {"accuracy": 0.9, "latency": 0.7}, "weights": {"accuracy": 3, "latency": 1.0}}


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("good", "is no object of objectives and scores: 'good'"),
        ({}, "is no object"),
        ({"a": 1.5}, "'a' in the output of 'q1' is '1.5', not a number from 0 to 1"),
        ({"a": True}, "is 'true', not a number"),
        ({"a": {"feedback": "x"}}, "is 'null', not a number"),
        ({"b": 1}, "has no objective 'a'"),
    ],
)
def test_scores_that_are_none_are_a_failure_that_says_where(output, says):
    answer = judged(MultiObjective(weights={"a": 2}) if "b" in output else MultiObjective(), output)
    assert isinstance(answer, Failure)
    assert says in answer.message


def test_objectives_are_asked_in_the_order_of_names():
    metric = MultiObjective(
        objectives={"wording": StringSimilarity(), "class": Classification()}, weights={"wording": 3}
    )
    score = judged(metric, "Hello", "hello")
    assert score.value == pytest.approx(0.95 * 3 / 4)
    assert score.feedback.splitlines()[0] == "[class] 0.000: Expected 'hello', got 'Hello'."
    assert list(score.signals["scores"]) == ["class", "wording"]


def test_a_judge_may_be_an_objective_and_its_confidence_counts():
    metric = MultiObjective(objectives={"good": FakeJudge(Judgment(0.5, 0.6)), "same": StringSimilarity()})
    score = asyncio.run(metric.score(Subject("row", "q1", output="a", reference="a")))
    assert (score.value, score.confidence) == (0.75, pytest.approx(0.8))


def test_a_metric_with_an_option_named_judge_is_no_judge():
    metric = MultiObjective(objectives={"a": _MayAsk(), "b": _MayAsk(FakeJudge(Judgment(0.5)))})
    assert judged(metric, "x").signals["scores"] == {"a": 1.0, "b": 0.25}
    assert estimate(metric, Subject("row", "1", output="x")) == Cost("0.02")


@attrs.frozen
class _MayAsk:
    """A metric with a judge that it may ask, like ``diff/match``."""

    tier = "truth"

    judge: Judge | None = None

    def estimate(self, subject):
        return Cost("0.01")

    def score(self, subject):
        return Score(1.0 if self.judge is None else 0.25)


def test_an_objective_that_fails_is_named_and_later_ones_are_not_paid_for():
    broken = FakeMetric(Failure("missing_input", "no reference", cost=Cost("0.2")))
    answer = judged(MultiObjective(objectives={"a": FakeMetric(Score(1.0, cost=Cost("0.1"))), "b": broken}), "x")
    assert (answer.kind, answer.message, answer.cost) == ("missing_input", "objective 'b': no reference", Cost("0.3"))
    judge = FakeJudge()
    metric = MultiObjective(objectives={"b": broken, "c": judge})
    assert isinstance(asyncio.run(metric.score(Subject("row", "q1", output="x"))), Failure)
    assert not judge.asked


def test_an_objective_that_gives_no_score_is_named():
    answer = judged(MultiObjective(objectives={"a": _Silent()}), "x")
    assert (answer.kind, answer.message) == ("invalid_score", "objective 'a' returned None, not a Score")


class _Silent:
    tier = "proxy"

    def score(self, subject):
        return None


@pytest.mark.parametrize(
    ("weights", "says"),
    [({"txet": 1}, "did you mean 'text'"), ({"text": -1}, "from 0 on"), ({"text": 0}, "nothing is left to score")],
)
def test_wrong_weights_are_refused(weights, says):
    with pytest.raises(ConfigError, match=says):
        MultiObjective(objectives={"text": StringSimilarity()}, weights=weights)


def test_objectives_and_a_field_do_not_go_together():
    with pytest.raises(ConfigError, match="remove one"):
        MultiObjective(objectives={"text": StringSimilarity()}, field="answer")


@given(
    st.dictionaries(
        st.text(max_size=3), st.tuples(st.floats(0, 1), st.floats(0, 1e308, exclude_min=True)), min_size=1, max_size=5
    )
)
def test_the_weighted_mean_lies_between_the_scores_whatever_the_weights(objectives):
    scores = {name: score for name, (score, _) in objectives.items()}
    weights = {name: weight for name, (_, weight) in objectives.items()}
    result = value(MultiObjective(weights=weights), scores)
    assert min(scores.values()) - 1e-9 <= result <= max(scores.values()) + 1e-9
    total = sum(map(Fraction, weights.values()))
    exact = sum(Fraction(score) * Fraction(weights[name]) for name, score in scores.items()) / total
    assert result == pytest.approx(float(exact), abs=1e-9)


# feedback/code_pipeline


@pytest.mark.parametrize(
    ("output", "expected", "failed_at"),
    [
        ({"parse": True, "compile": True, "execute": True, "test": True}, 1.0, None),
        ({"parse": True, "compile": True, "execute": "ZeroDivisionError", "test": True}, 0.5, "execute"),
        ({"parse": False}, 0.0, "parse"),
        ({"parse": True}, 0.25, "compile"),
        ([{"stage": "parse", "success": True}, {"stage": "compile", "success": False, "error": "E1"}], 0.25, "compile"),
        ('{"parse": {"success": true}, "compile": {"error": "E1"}}', 0.25, "compile"),
    ],
)
def test_a_pipeline_stops_at_the_first_failed_stage(output, expected, failed_at):
    score = judged(CodePipeline(), output)
    assert (score.value, score.signals["failed_at"]) == (expected, failed_at)


def test_the_feedback_has_the_stages_up_to_the_error():
    output = {"parse": True, "compile": {"success": False, "error": "missing ;"}, "execute": True}
    score = judged(CodePipeline(), output)
    assert score.feedback == "parse: passed\ncompile: missing ;"
    assert (score.signals["last_passed"], score.details) == ("parse", "failed at compile: missing ;")
    assert "not reached" in judged(CodePipeline(), {"parse": True}).feedback


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("def f(): ...", "is no record of stages"),
        (
            {"complie": True},
            "has the stage 'complie'; stages are parse, compile, execute, test, did you mean 'compile'",
        ),
        ({"parse": 1}, "has for the stage 'parse' '1', not true"),
        ([True], "has in place 0 'true', not an object with a 'stage'"),
        ([{"stage": "parse"}, {"stage": "parse"}], "has the stage 'parse' twice"),
    ],
)
def test_what_is_no_record_of_stages_is_a_failure_that_says_where(output, says):
    answer = judged(CodePipeline(), output)
    assert (answer.kind, says in answer.message) == ("missing_input", True), answer.message


def test_stages_may_be_others():
    assert value(CodePipeline(stages=["build", "run"], field="ci"), {"ci": {"build": True, "run": "exit 1"}}) == 0.5
    for stages in ([], ["a", "a"], "build"):
        with pytest.raises(ConfigError, match="stages are"):
            CodePipeline(stages=stages)


@given(st.lists(st.booleans(), min_size=4, max_size=4))
def test_the_share_is_of_what_passed_before_the_first_failure(results):
    expected = (results.index(False) if False in results else 4) / 4
    assert value(CodePipeline(), dict(zip(("parse", "compile", "execute", "test"), results, strict=True))) == expected


# All of them


@pytest.mark.parametrize("metric", [Retrieval(), StringSimilarity(), Classification()])
def test_no_reference_is_a_failure(metric):
    answer = judged(metric, "anything")
    assert (answer.kind, "'q1'" in answer.message) == ("missing_input", True)


@pytest.mark.parametrize(
    "metric",
    [
        Retrieval(field="a.b"),
        StringSimilarity(field="/a/b"),
        Classification(field="a.b"),
        MultiObjective(field="a.b"),
        CodePipeline(field="a.b"),
    ],
)
def test_a_missing_field_scores_0_and_is_named(metric):
    score = judged(metric, {"a": {}}, "x")
    assert (score.value, score.details, score.signals) == (
        0.0,
        f"the output has no field {metric.field!r}",
        {"found": False},
    )
    assert judged(metric, None, "x").value == 0.0


def test_an_empty_field_is_refused():
    for metric in (Retrieval, StringSimilarity, Classification, MultiObjective, CodePipeline):
        with pytest.raises(ConfigError, match="field is empty"):
            metric(field="")


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


STRANGE = [
    b"\xff\x00",
    "\ud800",
    ["\ud800"],
    {"\ud800": 0.5},
    {1: 2},
    "[" * 100_000,
    nested(100_000),
    object(),
    {"a": "\ud800"},
]


@pytest.mark.parametrize("strange", STRANGE, ids=lambda value: type(value).__name__)
def test_strange_values_end_in_a_score_or_a_failure_that_can_be_written(strange):
    for metric in (*METRICS, Classification(field="a"), Retrieval(field="/0")):
        for output, reference in ((strange, "x"), ("x", strange)):
            answer = judged(metric, output, reference)
            if isinstance(answer, Score):
                orjson.dumps([answer.signals, answer.details, answer.feedback])
            else:
                assert "'q1'" in answer.message


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@given(json_values, json_values)
def test_any_two_values_get_the_same_answer_twice(output, reference):
    for metric in METRICS:
        answer = judged(metric, output, reference)
        assert isinstance(answer, Score | Failure)
        assert answer == judged(metric, output, reference)


def test_what_to_change_stands_in_the_verdict():
    text = "metrics: [feedback/classification, feedback/string_similarity: {weight: 2}]"
    done = run_pipeline(text, subjects=[Subject("row", "1", output="ham", reference="spam")])
    (verdict,) = done.verdicts
    assert [item.get("feedback", "")[:24] for item in verdict.scores] == ["Expected 'spam', got 'ham'."[:24]] * 2


PAID = """
metrics:
  truth:
    - feedback/multi_objective: {objectives: {good: grader, same: feedback/string_similarity}, weights: {same: 3}}
"""


def test_a_judge_that_is_an_objective_is_paid_for_once():
    judge = FakeJudge(Judgment(0.5, cost=Cost("0.02")), cost=Cost("0.03"))
    subject = Subject("row", "1", output="a", reference="a")
    done = run_pipeline(PAID, subjects=[subject], components={"grader": judge})
    (verdict,) = done.verdicts
    assert (verdict.score, str(verdict.judge_cost_usd)) == (0.875, "0.02")
    assert done.document["cost"]["usd"] == "0.02"


def test_an_objective_that_costs_is_refused_among_the_proxies():
    judge = FakeJudge(Judgment(0.5, cost=Cost("0.02")), cost=Cost("0.03"))
    with pytest.raises(ConfigError, match="costs money, but proxies always run; move it to 'truth'"):
        run_pipeline(PAID.replace("truth:", "proxy:"), subjects=[], components={"grader": judge})


@pytest.mark.parametrize("metric", [StringSimilarity(), Classification()])
def test_an_object_is_not_compared_as_text_with_a_text(metric):
    failure = metric.score(Subject("row", "1", output={"label": "spam", "score": 1}, reference="spam"))
    assert failure.kind == "missing_input"
    assert "is an object with label, score" in failure.message
    subject_ = attrs.evolve(metric, field="label")
    assert subject_.score(Subject("row", "1", output={"label": "spam"}, reference="spam")).value == 1.0
