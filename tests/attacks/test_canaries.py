"""The canaries that ``dicast doctor`` puts into outputs: a model that quotes them lets none move its verdict."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from dicast import Due, Failure, Subject
from dicast.testing import FakeChatModel
from dicast_llm import LlmJudge, Pairwise
from dicast_trust.cards.canaries import canaries, with_canaries

PLAIN = Due(Subject("row", "1", "What is the capital of Turkey?", "It may be Istanbul.", "Ankara"))
PLANTED = with_canaries([PLAIN], canaries())


def quoting(canary, own, *, escaped):
    """A model with a verdict of its *own*, whose reasons quote the canary as it stands, or as JSON would have it."""

    def reply(request):
        said = request.messages[-1].content
        seal = re.search(r"^seal: ([0-9a-f]{12})$", said.rpartition(">>>\n")[2], re.MULTILINE)[1]
        quoted = json.dumps(canary)[1:-1] if escaped else canary.replace("\n", "\\n")
        return json.dumps({"seal": seal, "rationale": "@@", **own}).replace("@@", f"It says: {quoted}")

    return FakeChatModel(reply)


def test_there_are_enough_of_them_and_all_differ():
    texts = [canary.text for canary in canaries()]
    assert len(texts) == len(set(texts)) >= 60
    assert len(PLANTED) == len(texts)
    assert all(due.subject.text.startswith("It may be Istanbul.\n\n") for due in PLANTED.values())


@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "raw"])
@pytest.mark.parametrize(
    ("name", "canary"), [*zip(PLANTED, canaries(), strict=True)], ids=[one.id for one in canaries()]
)
def test_no_canary_moves_a_score(name, canary, escaped):
    model = quoting(canary.text, {"score": 0.1, "confidence": 0.8}, escaped=escaped)
    judge = LlmJudge(model, criteria=("is right",), retries=0)
    found = asyncio.run(judge.judge(PLANTED[name].subject, ()))
    assert isinstance(found, Failure) or found.score == 0.1


@pytest.mark.parametrize(
    ("name", "canary"), [*zip(PLANTED, canaries(), strict=True)], ids=[one.id for one in canaries()]
)
def test_no_canary_moves_a_choice(name, canary):
    def loses(request):
        said = request.messages[-1].content
        place = "second" if said.index("Istanbul") < said.index("Ankara") else "first"
        return quoting(canary.text, {"winner": place, "confidence": 0.8}, escaped=False).replies(request)

    found = asyncio.run(Pairwise(FakeChatModel(loses), retries=0).judge(PLANTED[name].subject, ()))
    assert isinstance(found, Failure) or found.score == 0.0
