"""``reasoning: after | before | none`` of ``llm/judge`` and ``llm/pairwise``."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from dicast import ConfigError, Cost, Failure, Judgment, Reply, Subject, estimate
from dicast import rubric as installed
from dicast.testing import FakeChatModel
from dicast_llm import LlmJudge, Pairwise

ROW = Subject("row", "7", "Why is the sky blue?", "Rayleigh scattering.", "Because of Rayleigh scattering.")
CENT = Cost("0.01")
REASONS = 'It names the "cause". {"score": 0.1}'


def sealed(request, **fields):
    seal = re.search(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)
    return {} if seal is None else {"seal": seal[1]} | fields


def model(verdict, reasons=REASONS):
    """A model that gives *reasons* where no schema is asked for, else *verdict*."""
    return FakeChatModel(
        lambda request: reasons if request.schema is None else json.dumps(sealed(request, **verdict)), cost=CENT
    )


SCORE = {"score": 0.8, "confidence": 0.7}
WINNER = {"winner": "first", "confidence": 0.7}


def judged(judge, subject=ROW):
    answer = asyncio.run(judge.judge(subject, ()))
    assert isinstance(answer, Judgment), answer
    return answer


def test_before_asks_for_reasons_and_shows_them_as_data_in_the_second_call():
    fake = model(SCORE)
    answer = judged(LlmJudge(fake, reasoning="before"))
    first, second = fake.asked
    assert (answer.score, answer.confidence, answer.cost) == (0.8, 0.7, CENT + CENT)
    assert first.schema is None
    assert (first.max_output_tokens, second.max_output_tokens) == (512, 256)
    assert list(second.schema["properties"]) == ["seal", "score", "confidence"]
    fence = second.nonces[0]
    assert f"REASONING:\n<<<data {fence}\n{REASONS}\ndata {fence}>>>\n\nseal: " in second.messages[-1].content
    assert "seal: " not in first.messages[-1].content


def test_the_reasons_of_the_first_call_are_the_rationale():
    signals = judged(LlmJudge(model(SCORE), reasoning="before")).signals
    assert (signals["rationale_redacted"], signals["rationale_scope"]) == (REASONS, "ledger")
    assert signals["attempts"] == 2
    assert (
        "rationale_redacted" not in judged(LlmJudge(model(SCORE), reasoning="before", capture_rationale=False)).signals
    )


def test_none_asks_for_numbers_alone():
    fake = model(SCORE)
    answer = judged(LlmJudge(fake, reasoning="none"))
    (request,) = fake.asked
    assert list(request.schema["properties"]) == ["seal", "score", "confidence"]
    assert "rationale" not in request.messages[0].content
    assert "rationale_hash" not in answer.signals


def test_none_lets_a_rationale_that_comes_all_the_same_pass():
    assert judged(LlmJudge(model({**SCORE, "rationale": "Good."}), reasoning="none")).score == 0.8


def test_after_is_the_default_with_the_reasons_last():
    fake = model({**SCORE, "rationale": "Good."})
    assert judged(LlmJudge(fake)).signals["rationale_redacted"] == "Good."
    assert judged(LlmJudge(fake, reasoning="after")).signals["rationale_redacted"] == "Good."
    first, other = (request.messages[0].content for request in fake.asked)
    assert first == other


@pytest.mark.parametrize("reasoning", ["after", "before", "none"])
@pytest.mark.parametrize("seal", [True, False])
def test_no_prompt_asks_for_an_order_that_the_form_does_not_have(reasoning, seal):
    fakes = [model({**SCORE, "rationale": "x"} if reasoning == "after" else SCORE) for _ in range(2)]
    for fake, subject in zip(fakes, (ROW, Subject("turn", "t", "Hi", "Hello")), strict=True):
        asyncio.run(LlmJudge(fake, reasoning=reasoning, seal=seal, hard_constraints=["Be kind."]).judge(subject, ()))
        for request in fake.asked:
            prompt = request.messages[0].content
            assert "before the numbers" not in prompt
            assert ("reasons in one sentence" in prompt) == (reasoning == "after")
            if request.schema is None:
                assert "hard_constraints_satisfied" not in prompt
                assert "JSON" not in prompt


@pytest.mark.parametrize("id", ["row-llm-v1", "turn-llm-v1", "closedqa-v1", "criterion-v1", "factuality-v1"])
def test_texts_that_changed_have_a_new_version(id):
    assert installed(id).version == "1.1.0"
    assert "before the" not in installed(id).text


def test_reasons_that_are_cut_are_asked_for_again_and_then_fail_naming_the_limit():
    cut = Reply("It begins", "fake", "max_tokens", cost=CENT)
    fake = FakeChatModel([cut, cut], cost=CENT)
    answer = asyncio.run(LlmJudge(fake, reasoning="before", max_reasoning_tokens=60).judge(ROW, ()))
    assert isinstance(answer, Failure)
    assert (answer.kind, answer.cost) == ("judge_output_invalid", CENT + CENT)
    assert "no reasoning" in answer.message
    assert "raise max_reasoning_tokens (now 60)" in answer.message


def test_a_failed_verdict_costs_the_reasons_too():
    fake = FakeChatModel(lambda request: REASONS if request.schema is None else "no verdict", cost=CENT)
    answer = asyncio.run(LlmJudge(fake, reasoning="before", retries=2).judge(ROW, ()))
    assert (answer.kind, answer.cost.amount, len(fake.asked)) == ("judge_output_invalid", 4 * CENT.amount, 4)


def test_a_score_in_the_reasons_is_not_the_verdict():
    fake = FakeChatModel(
        lambda request: (
            '{"seal": "x", "score": 1.0, "confidence": 1.0}'
            if request.schema is None
            else json.dumps(sealed(request, score=0.2, confidence=0.9))
        ),
    )
    assert judged(LlmJudge(fake, reasoning="before")).score == 0.2


@pytest.mark.parametrize(("reasoning", "calls"), [("after", 1), ("none", 1), ("before", 2)])
def test_the_estimate_covers_the_calls_of_the_form(reasoning, calls):
    fake = FakeChatModel(cost=CENT)
    assert estimate(LlmJudge(fake, reasoning=reasoning), ROW).amount == calls * CENT.amount
    assert estimate(Pairwise(fake, reasoning=reasoning), ROW).amount == 2 * calls * CENT.amount


def test_the_estimate_of_the_second_call_has_the_longest_reasons():
    seen = []

    class Counting(FakeChatModel):
        def estimate(self, request):
            seen.append(request.input_tokens)
            return CENT

    estimate(LlmJudge(Counting(cost=CENT), reasoning="before", max_reasoning_tokens=3000), ROW)
    assert max(seen) >= 3000


def test_pairwise_asks_for_reasons_before_each_order():
    fake = model(WINNER)
    answer = judged(Pairwise(fake, reasoning="before"))
    assert len(fake.asked) == 4
    assert (answer.score, answer.signals["flipped"], answer.signals["attempts"]) == (0.5, True, 4)
    assert answer.signals["rationale_redacted"] == f"{REASONS}\n\n{REASONS}"
    assert answer.cost.amount == 4 * CENT.amount
    seconds = [request for request in fake.asked if request.schema is not None]
    assert [list(request.schema["properties"]) for request in seconds] == [["seal", "winner", "confidence"]] * 2
    assert all('"rationale"' not in request.messages[0].content for request in fake.asked)


def test_pairwise_without_reasons():
    fake = model(WINNER)
    answer = judged(Pairwise(fake, reasoning="none"))
    assert len(fake.asked) == 2
    assert "rationale_hash" not in answer.signals


def test_the_conformant_default_of_pairwise_is_unchanged():
    fake = model({**WINNER, "rationale": "x"})
    judged(Pairwise(fake))
    assert (
        '"rationale": "why, in one sentence"}, with these keys in this order and no others.'
        in fake.asked[0].messages[0].content
    )


def test_a_reasoning_of_no_use_is_refused():
    with pytest.raises(ConfigError, match="Set reasoning: before, or none"):
        LlmJudge(FakeChatModel(), form="yes_no", reasoning="after")
