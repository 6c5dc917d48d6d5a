"""Tests of the judge."""

from __future__ import annotations

import json
import re

import attrs
from dicast import ChatRequest, Reply
from dicast.testing import FakeChatModel, JudgeConformance, run_pipeline, sample


@attrs.frozen
class Grade:
    """Answer of a model: a verdict with *score*."""

    score: float

    def __call__(self, request: ChatRequest) -> Reply:
        """Return the verdict with the seal of *request*."""
        seal = re.search(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)
        assert seal is not None
        verdict = {"seal": seal[1], "score": self.score, "confidence": 0.9, "rationale": "It names the fault."}
        return Reply(json.dumps(verdict), "fake-1")


class TestFits(JudgeConformance):
    judge = "apology/fits"
    options = {"model": "grader"}
    components = {"grader": FakeChatModel(Grade(0.75))}


def test_the_model_reads_both_texts_and_its_score_is_the_verdict() -> None:
    model = FakeChatModel(Grade(0.25))
    subject = sample("It is late.", input="My lamp is broken.")
    run = run_pipeline("judges: [apology/fits: {model: grader}]", subjects=[subject], components={"grader": model})
    (verdict,) = run.verdicts
    assert (verdict.score, verdict.confidence, verdict.judge_model) == (0.25, 0.9, "fake-1")
    (request,) = model.asked
    assert all(text in request.messages[-1].content for text in ("My lamp is broken.", "It is late."))


def test_no_model_is_asked_about_a_reply_to_nothing() -> None:
    model = FakeChatModel(Grade(1.0))
    subject = sample("We are sorry.", input=None)
    run = run_pipeline("judges: [apology/fits: {model: grader}]", subjects=[subject], components={"grader": model})
    assert (run.exit_code, len(model.asked)) == (3, 0)
    assert [event.payload["failure_mode"] for event in run.of("eval.failed")] == ["missing_input"]
