"""``llm/jury``: the answers of several judges as one verdict."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Cost, Failure, Judgment, Subject
from dicast.testing import FakeJudge, JudgeConformance, run_pipeline
from dicast_llm.jury import Jury

ROW = Subject("row", "1", "q", "a")


def says(score: float, confidence: float = 1.0, **fields: object) -> FakeJudge:
    return FakeJudge(Judgment(score, confidence, **fields))


def ask(jury: Jury) -> Judgment | Failure:
    return asyncio.run(jury.judge(ROW, ()))


def verdict(*scores: float, combine: str = "mean", weights: list[float] | None = None) -> Judgment:
    answer = ask(Jury(tuple(says(score) for score in scores), combine, weights))
    assert isinstance(answer, Judgment)
    return answer


class TestContract(JudgeConformance):
    judge = "llm/jury"
    options: ClassVar = {"judges": ["one", "two"], "combine": "weighted", "weights": [1.0, 2.0]}
    components: ClassVar = {"one": FakeJudge(Judgment(0.9, 0.8)), "two": FakeJudge(Judgment(0.7, 0.6))}


@pytest.mark.parametrize(
    ("combine", "scores", "weights", "score", "agreement"),
    [
        ("mean", (1.0, 0.5), None, 0.75, 0.5),
        ("mean", (0.3, 0.3, 0.3), None, 0.3, 1.0),
        ("mean", (1.0, 0.0), None, 0.5, 0.0),
        ("median", (0.0, 0.9, 1.0), None, 0.9, 1 - 2 * 0.449691252),
        ("median", (0.2, 0.4), None, 0.3, 0.8),
        ("weighted", (1.0, 0.0), [3, 1], 0.75, 1 - 2 * 0.433012702),
        ("weighted", (0.5, 0.5, 1.0), [1, 1, 2], 0.75, 0.5),
        ("majority", (0.5, 0.9, 0.0), None, 1.0, 2 / 3),
        ("majority", (0.49, 0.1, 1.0), None, 0.0, 2 / 3),
        ("majority", (0.9, 0.1), None, 0.5, 0.5),
        ("majority", (0.9, 0.8), None, 1.0, 1.0),
    ],
)
def test_scores_are_combined(combine, scores, weights, score, agreement):
    result = verdict(*scores, combine=combine, weights=weights)
    assert result.score == pytest.approx(score)
    assert result.signals["agreement"] == pytest.approx(agreement)
    assert result.confidence == pytest.approx(agreement)


def test_disagreement_lowers_the_mean_confidence():
    result = ask(Jury([says(1.0, 0.9), says(0.8, 0.7)]))
    assert result.confidence == pytest.approx(0.8 * (1 - 2 * 0.1))


def test_confidences_are_weighted_like_the_scores():
    result = ask(Jury([says(0.6, 0.2), says(0.6, 0.8)], "weighted", [1, 3]))
    assert result.confidence == pytest.approx(0.65)


def test_the_verdict_rests_on_the_weakest_of_those_that_voted():
    panel = [says(0.5, judge_kind="llm"), says(0.5, judge_kind="human")]
    assert ask(Jury(tuple(panel))).basis == "model"
    assert ask(Jury((*panel, says(0.5, judge_kind="heuristic")))).basis == "heuristic"
    assert ask(Jury((*panel, FakeJudge(Failure("refused", "no"))))).basis == "model"


def test_every_vote_is_told_and_no_rationale_with_it():
    @attrs.frozen
    class Named(FakeJudge):
        name = "gpt"

    vote = Judgment(0.5, 0.7, "llm", "gpt-4o", signals={"rationale_redacted": "it leaks"})
    result = ask(Jury([Named(vote), says(0.5), FakeJudge(Failure("timeout", "too late"))]))
    assert result.signals["votes"] == [
        {"judge": "gpt", "score": 0.5, "confidence": 0.7, "judge_kind": "llm", "judge_model": "gpt-4o"},
        {"judge": "judges[1]", "score": 0.5, "confidence": 1.0, "judge_kind": "evaluator", "judge_model": None},
        {"judge": "judges[2]", "failure": "timeout"},
    ]
    assert "leaks" not in str(result)
    assert (result.judge_kind, result.rubric.id, result.rubric.version) == ("jury", "jury", "1.0.0")


def test_judges_with_the_most_votes_need_not_all_answer():
    result = ask(Jury([says(0.2), says(0.4), FakeJudge(Failure("refused", "no"))], "weighted", [1, 1, 50]))
    assert result.score == pytest.approx(0.3)


def test_no_majority_of_answers_is_the_failure_that_most_had():
    late, bad = Failure("timeout", "late", retryable=True, cost=Cost("0.01")), Failure("judge_output_invalid", "bad")
    result = ask(Jury([says(1.0, cost=Cost("0.1")), FakeJudge(late), FakeJudge(bad), FakeJudge(bad)]))
    assert isinstance(result, Failure)
    assert (result.kind, result.retryable, result.cost.amount) == ("judge_output_invalid", True, Cost("0.11").amount)
    assert "3 of 4 judges failed (1 x timeout, 2 x judge_output_invalid)" in result.message


def test_half_of_the_answers_is_no_majority():
    assert ask(Jury([says(1.0), FakeJudge(Failure("timeout", "late"))])).kind == "timeout"


def test_a_cap_that_left_no_room_is_named():
    capped = Failure("throttled_no_heuristic", "no room", throttled_reason="session_cap")
    assert ask(Jury([FakeJudge(capped), FakeJudge(capped)])).throttled_reason == "session_cap"


def test_cost_is_the_sum_and_units_are_not_mixed():
    costly = [says(1.0, cost=Cost("0.1")), says(1.0, cost=Cost("0.2")), says(1.0, cost=Cost(5, "msat"))]
    assert ask(Jury(costly)).cost == Cost("0.3")


def test_judges_are_asked_at_the_same_time():
    together = asyncio.Barrier(5)

    class Meets(FakeJudge):
        async def judge(self, subject, metrics):
            await asyncio.wait_for(together.wait(), 30)
            return await super().judge(subject, metrics)

    assert ask(Jury([Meets(Judgment(1.0)) for _ in range(5)])).score == 1.0


def test_a_judge_that_raises_ends_the_others():
    slow = FakeJudge(seconds=30)
    with pytest.raises(ZeroDivisionError):
        ask(Jury([FakeJudge(ZeroDivisionError()), slow]))


@attrs.frozen
class Only:
    accepts: tuple[str, ...]

    def judge(self, subject, children):
        return Judgment(1.0)


def test_accepts_what_all_judges_accept():
    assert Jury([Only(("turn", "row")), Only(()), Only(("row", "session"))]).accepts == ("row",)
    assert Jury([Only(()), Only(())]).accepts == ()
    with pytest.raises(ConfigError, match="no subject kind in common: turn · row"):
        Jury([Only(("turn",)), Only(("row",))])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"combine": "weighted"}, "needs weights"),
        ({"weights": [1, 1]}, "are for combine: weighted, and combine is mean"),
        ({"combine": "weighted", "weights": [1]}, "2 judges need as many weights, not 1"),
        ({"combine": "weighted", "weights": [1, 0]}, "positive"),
        ({"combine": "weighted", "weights": [1, float("inf")]}, "finite"),
    ],
)
def test_weights_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Jury([says(1.0), says(0.0)], **options)


def test_one_judge_is_no_jury():
    with pytest.raises(ConfigError, match="at least 2 judges, not 1"):
        run_pipeline("judges: [{llm/jury: {judges: [one]}}]", components={"one": says(1.0)})


def test_a_run_asks_and_charges_each_judge():
    text = "judges: [{llm/jury: {as: panel, judges: [one, two], combine: median}}]"
    first, two = says(0.4, 0.5, cost=Cost("0.01")), says(0.6, 0.5, cost=Cost("0.02"))
    done = run_pipeline(text, subjects=[ROW], components={"one": first, "two": two})
    (result,) = done.verdicts
    assert (result.score, result.confidence, result.judge_kind) == (0.5, pytest.approx(0.4), "jury")
    assert [vote["judge"] for vote in result.signals["votes"]] == ["judges[0]", "judges[1]"]
    assert str(result.judge_cost_usd) == "0.03"
    assert done.document["cost"]["usd"] == "0.03"


shares = st.floats(0, 1)
panels = st.lists(st.tuples(shares, shares, st.floats(1e-6, 1e6)), min_size=2, max_size=7)
ways = st.sampled_from(["mean", "median", "majority", "weighted"])


def combined(votes, way):
    weights = [weight for _, _, weight in votes] if way == "weighted" else None
    return ask(Jury([says(score, confidence) for score, confidence, _ in votes], way, weights))


@given(panels, ways)
def test_score_and_confidence_stay_among_those_of_the_votes(votes, way):
    result = combined(votes, way)
    scores = [score for score, _, _ in votes]
    if way != "majority":
        assert min(scores) <= result.score <= max(scores)
    assert 0 <= result.confidence <= max(confidence for _, confidence, _ in votes)


@given(panels, ways, st.randoms())
def test_order_of_the_judges_does_not_matter(votes, way, random):
    shuffled = random.sample(votes, len(votes))
    first, other = combined(votes, way), combined(shuffled, way)
    assert (first.score, first.confidence) == (other.score, other.confidence)


@given(panels, ways, shares, st.data())
def test_a_better_vote_never_lowers_the_score(votes, way, raised, data):
    place = data.draw(st.integers(0, len(votes) - 1))
    score, *rest = votes[place]
    better = [*votes[:place], (max(score, raised), *rest), *votes[place + 1 :]]
    assert combined(better, way).score >= combined(votes, way).score


@given(st.lists(shares, min_size=2, max_size=7), ways, shares)
def test_equal_votes_agree_wholly(confidences, way, score):
    result = combined([(score, confidence, 1.0) for confidence in confidences], way)
    assert result.signals["agreement"] == 1.0
