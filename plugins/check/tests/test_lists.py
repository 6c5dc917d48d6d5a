"""Lists of checks: sets with thresholds, named metrics, judges."""

from __future__ import annotations

import attrs
import pytest

from dicast import Cost, Failure, Judgment, Rubric, Subject
from dicast.testing import run_pipeline
from dicast_check import Assertions


def row(output, *items, **fields):
    return Subject("row", "1", "what?", output, context={"assert": list(items), **fields})


def contains(value, **options):
    return {"check": "contains", "value": value, **options}


def test_a_set_holds_when_all_its_items_do_or_their_mean_reaches_its_threshold():
    both = {"check": "assert-set", "assert": [contains("a"), contains("b")]}
    half = {**both, "threshold": 0.5}
    assert Assertions().score(row("a b", both)).value == 1
    result = Assertions().score(row("a", both, contains("a")))
    assert result.value == 0.5
    assert result.details == "assert-set (contains: the output does not contain 'b')"
    assert Assertions().score(row("a", half)).value == 1
    result = Assertions().score(row("c", half))
    assert result.value == 0
    assert "assert-set 0 of 0.5 (contains:" in result.details
    assert Assertions().score(row("a", {**half, "check": "not-assert-set"})).value == 0


def test_weights_count_inside_and_outside_of_a_set():
    inner = {"check": "assert_set", "weight": 3, "threshold": 0.7, "assert": [contains("a", weight=3), contains("b")]}
    assert Assertions().score(row("a", inner, contains("c"))).value == 0.75
    assert Assertions(threshold=0.5).score(row("a", inner, contains("c"))).value == pytest.approx(0.75 * 3 / 4)


def test_a_threshold_of_the_list_takes_the_mean_of_values_and_none_asks_for_all():
    assert Assertions().default_pass_at == 1
    assert Assertions(threshold=0.4).default_pass_at == 0.4


def test_items_of_one_metric_have_their_mean_in_the_signals():
    result = Assertions().score(
        row("a", contains("a", metric="fact"), contains("b", metric="fact", weight=3), contains("a"))
    )
    assert result.signals == {"failed": 1, "checks": 3, "metrics": {"fact": 0.25}}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"check": "assert-set", "assert": []}, "item 1: assert-set needs assert, a list of one item or more"),
        ({"check": "assert-set", "assert": [contains("a")], "threshold": 2}, "threshold is in [0, 1], not 2"),
        ({"check": "assert-set", "assert": [{"check": "nope"}]}, "item 1: assert-set: item 1: there is no check 'nope'"),
        ({"check": "llm-rubric", "value": "kind"}, "llm-rubric asks a judge; give check/assertions one: judges: {llm_rubric:"),
        ({"check": "word-cuont"}, "there is no check 'word-cuont', did you mean 'word_count'?"),
        ({"check": "python", "file": "a.py"}, "python needs function"),
        ({"check": "levenshtein", "value": "a", "threshold": "5"}, "threshold is a number, not '5'"),
        (contains("a", metric=3), "metric is a text, not 3"),
    ],
)  # fmt: skip
def test_an_item_of_no_use_is_missing_input_and_named(item, message):
    result = Assertions().score(row("a", item))
    assert isinstance(result, Failure)
    assert result.kind == "missing_input"
    assert message in result.message


def test_a_list_that_is_nested_without_end_is_refused():
    item = contains("a")
    for _ in range(30):
        item = {"check": "assert-set", "assert": [item]}
    assert "nested more than 20 deep" in Assertions().score(row("a", item)).message


@attrs.frozen
class Grader:
    """Judge that scores .8 if the output has the criterion or is the reference, else .2."""

    def estimate(self, subject):
        return Cost("0.01")

    def judge(self, subject, children):
        if subject.output == "broken":
            return Failure("judge_output_invalid", "no JSON", cost=Cost("0.01"))
        expected = subject.context.get("criterion", subject.reference)
        score = 0.8 if expected in subject.output else 0.2
        return Judgment(score, 0.9, judge_kind="llm", judge_model="m", rubric=Rubric("r", "1", ""), cost=Cost("0.01"))


PIPELINE = (
    "metrics: [{check/assertions: {judges: {llm_rubric: grader, factuality: grader}}}]\nbudget: {session: 1 usd}\n"
)


def judged(*subjects):
    return run_pipeline(PIPELINE, subjects=subjects, components={"grader": Grader()})


def test_items_ask_the_judge_of_their_name_and_the_score_rests_on_a_model():
    items = [contains("a"), {"check": "llm-rubric", "value": "{{ topic }}"}, {"check": "factuality", "value": "a b"}]
    done = judged(row("a b", *items, topic="b"))
    (verdict,) = done.verdicts
    assert verdict.score == 1
    assert verdict.basis == "model"
    assert "0.02" in str(done.document["cost"])


def test_a_negated_item_holds_where_the_judge_says_no_and_its_threshold_counts():
    items = [{"check": "not-llm-rubric", "value": "x"}, {"check": "llm-rubric", "value": "a", "threshold": 0.9}]
    (verdict,) = judged(row("a", *items)).verdicts
    assert verdict.score == 0.5


def test_each_item_asks_about_a_subject_of_its_own_also_inside_of_sets():
    """A resumed run finds each reply by the id of its subject."""
    ids = []

    @attrs.frozen
    class Noting(Grader):
        def judge(self, subject, children):
            ids.append(subject.id)
            return super().judge(subject, children)

    item = {"check": "llm_rubric", "value": "a"}
    sets = [{"check": "assert-set", "assert": [item, item]}, {"check": "assert-set", "assert": [item]}, item]
    run_pipeline(PIPELINE, subjects=[row("a", *sets)], components={"grader": Noting()})
    assert ids == [f"1 (assertion {number}: llm_rubric)" for number in (1, 2, 3, 4)]


@attrs.frozen
class Estimating(Grader):
    """A grader with an estimated cost in *unit*."""

    unit: str = "usd"

    def estimate(self, subject):
        return Cost("0.01" if self.unit == "usd" else "10", self.unit)

    def judge(self, subject, children):
        return attrs.evolve(super().judge(subject, children), cost=self.estimate(subject))


def test_a_cap_that_has_room_for_the_judges_has_room_for_the_list():
    item = {"check": "llm_rubric", "value": "a"}
    text = PIPELINE.replace("session: 1 usd", "run: 0.01 usd")
    done = run_pipeline(text, subjects=[row("a", item)], components={"grader": Estimating()})
    assert done.document["scored"] == 1
    assert [event.payload["amount"] for event in done.of("spend.reserved")] == ["0.01"]


def test_judges_in_two_units_are_paid_in_both():
    items = [{"check": "llm_rubric", "value": "a"}, {"check": "factuality", "value": "a"}]
    text = PIPELINE.replace("factuality: grader", "factuality: other").replace("1 usd", "[1 usd, 100 msat]")
    graders = {"grader": Estimating(), "other": Estimating("msat")}
    done = run_pipeline(text, subjects=[row("a", *items)], components=graders)
    assert done.document["cost"] == {"usd": "0.01", "msat": "10"}
    assert done.document["overruns"] == 0


def test_a_row_without_items_for_a_judge_rests_on_truth():
    assert [verdict.basis for verdict in judged(row("a", contains("a"))).verdicts] == ["truth"]


def test_a_judge_that_fails_fails_the_row_and_what_was_paid_is_counted():
    done = judged(row("broken", contains("broken"), {"check": "llm_rubric", "value": "x"}))
    (event,) = done.of("eval.failed")
    assert event.payload["failure_mode"] == "judge_output_invalid"
    assert "llm_rubric: no JSON" in event.payload["error_message"]
    assert "0.01" in str(done.document["cost"])
    assert done.exit_code == 3
