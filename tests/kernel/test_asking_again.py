"""Putting a question again: reserved when it happens, within the same caps, settled ask by ask."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dicast
from dicast import ChatModel, ChatRequest, Cost, Failure, Judge, Judgment, Message, Reply, Subject, Usage, maybe_await
from dicast.testing import run_pipeline

MOST, DID = Cost("0.02"), Cost("0.01")
"""What an ask may cost, and what it does cost."""


@attrs.frozen
class Model:
    """Says "no" to the first *bad* attempts of each subject, and "yes" after."""

    bad: int = 1
    did: Cost = DID
    hangs_at: int | None = None

    def estimate(self, request: ChatRequest) -> Cost:
        return MOST

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        if request.attempt == self.hangs_at:
            await asyncio.sleep(60)
        await asyncio.sleep(0)
        return Reply("no" if request.attempt < self.bad else "yes", "m-1", usage=Usage(30, 4), cost=self.did)


@attrs.frozen
class Asking:
    """Asks *at_once* questions at the same time, each until the model says "yes", at most *tries* times."""

    model: ChatModel
    tries: int = 3
    at_once: int = 1
    fallback: Judge | None = None

    def estimate(self, subject: Subject) -> Cost:
        item = dicast.estimate(self.model, ChatRequest(()))
        return Cost(item.amount * self.at_once)

    async def judge(self, subject, children):
        answers = await asyncio.gather(*(self._ask(f"{subject.text} {number}") for number in range(self.at_once)))
        cost = sum((answer.cost for answer in answers), Cost.zero())
        failed = next((answer for answer in answers if isinstance(answer, Failure)), None)
        return (
            Judgment(0.5, 0.9, "llm", "m-1", cost, includes_replies=True)
            if failed is None
            else attrs.evolve(failed, cost=cost)
        )

    async def _ask(self, text):
        cost = Cost.zero()
        for attempt in range(self.tries):
            reply = await maybe_await(self.model.complete(ChatRequest((Message("user", text),), attempt=attempt)))
            cost += reply.cost
            if isinstance(reply, Failure) or reply.text == "yes":
                return attrs.evolve(reply, cost=cost)
        return Failure("judge_output_invalid", "no use", cost=cost)


@attrs.frozen
class Cheap:
    """Costs nothing."""

    def judge(self, subject, children):
        return Judgment(0.25, 0.4, "heuristic")


def judged(judge, *, text="", subjects=1):
    rows = [Subject("row", str(number), output="text") for number in range(subjects)]
    return run_pipeline(f"judges: [j]\n{text}", subjects=rows, components={"j": judge})


def money(done, type_):
    return [event.payload["amount"] for event in done.of(type_)]


def test_one_ask_is_reserved_and_another_one_when_it_happens():
    done = judged(Asking(Model(bad=2)))
    assert money(done, "spend.reserved") == ["0.02", "0.02", "0.02"]
    assert money(done, "spend.settled") == ["0.01", "0.01", "0.01"]
    assert sum(event.payload["calls"] for event in done.of("spend.settled")) == 3
    assert done.verdicts[0].judge_cost_usd == Decimal("0.03")
    assert done.document["cost"]["usd"] == "0.03"


def test_a_question_that_is_not_put_again_is_reserved_once():
    done = judged(Asking(Model(bad=0)))
    assert (money(done, "spend.reserved"), money(done, "spend.settled")) == (["0.02"], ["0.01"])


def test_only_the_last_settlement_keeps_the_reply():
    done = judged(Asking(Model(bad=1)))
    assert [event.payload["reply"] is None for event in done.of("spend.settled")] == [True, False]


def test_what_is_held_is_used_up_before_more_is_reserved():
    done = judged(Asking(Model(bad=1, did=Cost("0.001")), at_once=2))
    assert money(done, "spend.reserved") == ["0.04"]  # of which the third ask needs .001 + .001 + .02
    assert money(done, "spend.settled") == ["0.004"]


def test_no_room_to_ask_again_ends_the_call_with_what_was_spent():
    done = judged(Asking(Model(bad=1)), text="budget: {run: 0.02 usd}")
    (failed,) = done.of("eval.failed")
    assert failed.payload["failure_mode"] == "throttled_no_heuristic"
    assert failed.payload["judge_cost_usd"] == "0.01"
    assert done.document["cost"]["usd"] == "0.01"
    assert [event.payload["reason"] for event in done.of("budget.throttled")] == ["run_cap"]


def test_no_room_to_ask_again_is_the_fallback_s_to_answer():
    done = judged(Asking(Model(bad=1), fallback=Cheap()), text="budget: {run: 0.02 usd}")
    (verdict,) = done.verdicts
    assert (verdict.score, verdict.judge_kind, verdict.judge_cost_usd) == (0.25, "heuristic", Decimal("0.01"))
    assert verdict.signals["throttled_reason"] == "run_cap"


def test_an_ask_that_ends_unheard_is_lost_and_what_came_before_is_settled():
    done = run_pipeline(
        "judges: [{j: {timeout: 0.3}}]",
        subjects=[Subject("row", "1", output="text")],
        components={"j": Asking(Model(bad=1, hangs_at=1))},
    )
    assert (money(done, "spend.settled"), money(done, "spend.lost")) == (["0.01"], ["0.02"])
    assert done.of("eval.failed")[0].payload["failure_mode"] == "timeout"


@pytest.mark.parametrize("subjects", [1, 6])
def test_asking_again_waits_for_room_that_others_hold(subjects):
    """Each of six subjects asks three times for .01; there is room for two reservations of .02 at once."""
    cap = 0.04 + 0.03 * (subjects - 1)
    done = judged(
        Asking(Model(bad=2)),
        subjects=subjects,
        text=f"executor: {{dicast/async: {{concurrency: 6}}}}\nbudget: {{run: {cap:.2f} usd}}",
    )
    assert done.document["scored"] == subjects
    assert done.document["cost"]["usd"] == f"{0.03 * subjects:.2f}"


@settings(deadline=None, max_examples=3 * settings.default.max_examples // 5)
@given(
    st.integers(1, 8), st.integers(1, 5), st.integers(0, 3), st.integers(1, 3), st.integers(1, 25), st.integers(0, 20)
)
def test_what_is_settled_and_held_never_exceeds_the_cap(subjects, concurrency, bad, at_once, cap, did):
    judge = Asking(Model(bad=bad, did=Cost(Decimal(did) / 1000)), at_once=at_once)
    text = f"executor: {{dicast/async: {{concurrency: {concurrency}}}}}\nbudget: {{run: {Decimal(cap) / 100} usd}}"
    done = judged(judge, subjects=subjects, text=text)
    reserved, spent = {}, Decimal(0)
    for event in done.events:
        payload = event.payload
        if event.type == "spend.reserved":
            reserved[payload["reservation_id"]] = Decimal(payload["amount"])
        elif event.type in ("spend.settled", "spend.lost"):
            reserved.pop(payload["reservation_id"], None)
            spent += Decimal(payload["amount"])
        elif event.type == "spend.released":
            del reserved[payload["reservation_id"]]
        else:
            continue
        assert spent + sum(reserved.values()) <= Decimal(cap) / 100
    assert not reserved
    assert Decimal(done.document["cost"]["usd"]) == spent
    billed = [event.payload["judge_cost_usd"] for event in (*done.of("eval.completed"), *done.of("eval.failed"))]
    assert sum(map(Decimal, billed)) == spent
