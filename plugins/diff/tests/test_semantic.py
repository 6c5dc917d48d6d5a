from __future__ import annotations

import asyncio

import pytest

from dicast import ConfigError, Cost, Failure, Judgment, Subject
from dicast.testing import FakeJudge, run_pipeline
from dicast_diff import Match

ROW = Subject("row", "q1", "What?", output="It is blue.", reference="The colour is blue.", session_id="s")
PIPELINE = "name: t\nmetrics: [{diff/match: {strictness: semantic, judge: grader}}]\n"


def ask(judge, subject=ROW, **options):
    return asyncio.run(Match(strictness="semantic", judge=judge, **options).score(subject))


def test_the_judge_is_asked_in_both_directions_and_the_lower_score_counts():
    judge = FakeJudge([Judgment(0.9, 0.8, "llm", "m"), Judgment(0.4, 0.6, "llm", "m")])
    score = ask(judge)
    forth, back = judge.asked
    assert (forth.output, forth.reference) == (ROW.output, ROW.reference)
    assert (back.output, back.reference) == (ROW.reference, ROW.output)
    assert forth.input == back.input == ROW.input
    assert forth.session_id == back.session_id == "s"
    assert forth.id != back.id
    assert (score.value, score.confidence) == (0.4, 0.6)
    assert score.details == "0.9 from output to reference, 0.4 from reference to output"
    assert score.signals["asked"] == 2
    assert score.signals["output_to_reference"] == {
        "score": 0.9,
        "confidence": 0.8,
        "judge_kind": "llm",
        "judge_model": "m",
    }
    assert score.signals["reference_to_output"]["score"] == 0.4


def test_the_score_does_not_depend_on_the_direction():
    def single(subject):
        return Judgment(0.9 if subject.output == ROW.output else 0.4)

    class Directed(FakeJudge):
        async def judge(self, subject, children=()):
            return single(subject)

    swapped = Subject("row", "q1", output=ROW.reference, reference=ROW.output)
    assert ask(Directed()).value == ask(Directed(), swapped).value == 0.4


def test_both_calls_are_paid_for():
    cost = Cost("0.02")
    judge = FakeJudge(Judgment(1.0, 1.0, "llm", "m", cost), cost=cost)
    done = run_pipeline(PIPELINE, subjects=[ROW], components={"grader": judge})
    (verdict,) = done.verdicts
    assert verdict.score == 1.0
    assert done.document["cost"] == {"usd": "0.04", "msat": "0"}
    assert len(judge.asked) == len(done.of("spend.settled")) == 2
    assert len(done.of("spend.reserved")) == 2


def test_a_cap_ends_in_a_failure_that_says_so():
    cost = Cost("0.06")
    judge = FakeJudge(Judgment(1.0, 1.0, "llm", "m", cost), cost=cost)
    done = run_pipeline(f"{PIPELINE}budget: {{run: 0.10 usd}}\n", subjects=[ROW], components={"grader": judge})
    (failed,) = done.of("eval.failed")
    assert failed.payload["failure_mode"] == "throttled_no_heuristic"
    assert done.document["cost"]["usd"] == "0.06"


def test_the_same_words_need_no_judge():
    judge = FakeJudge([])
    score = ask(judge, Subject("row", "q1", output="It  is\nblue.", reference="It is blue."))
    assert score.value == 1.0
    assert score.signals == {"asked": 0}
    judge.assert_all_asked()


def test_a_failure_in_one_direction_is_a_failure_with_all_it_cost():
    spent = Cost("0.01")
    answers = [Judgment(1.0, cost=spent), Failure("judge_output_invalid", "no", cost=spent)]
    failure = ask(FakeJudge(answers))
    assert isinstance(failure, Failure)
    assert failure.kind == "judge_output_invalid"
    assert failure.cost == Cost("0.02")


def test_an_exception_of_the_judge_is_raised_as_it_is():
    with pytest.raises(RuntimeError, match="broken"):
        ask(FakeJudge(RuntimeError("broken")))


def test_a_field_is_what_the_judge_is_shown():
    judge = FakeJudge()
    ask(judge, Subject("row", "q1", output={"answer": "blue"}, reference="azure"), field="answer")
    assert judge.asked[0].output == judge.asked[1].reference == "blue"


def test_no_reference_and_no_output_ask_nobody():
    judge = FakeJudge([])
    assert ask(judge, Subject("row", "q1", output="x")).kind == "missing_input"
    assert ask(judge, Subject("row", "q1", reference="x")).kind == "missing_input"


def test_a_judge_and_its_strictness_belong_together():
    with pytest.raises(ConfigError, match="asks a judge"):
        Match(strictness="semantic")
    with pytest.raises(ConfigError, match="judge belongs to strictness: semantic"):
        Match(judge=FakeJudge())


def test_the_score_rests_on_what_its_judge_rests_on():
    assert ask(FakeJudge(Judgment(0.9, judge_kind="llm"))).basis == "model"
    assert ask(FakeJudge(Judgment(0.9, judge_kind="human"))).basis == "human"
