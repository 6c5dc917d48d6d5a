"""Requests that cost more than the estimate of their call: each is reserved before it is sent."""

from __future__ import annotations

import asyncio

import attrs
import pytest

import dicast
from dicast import ChatModel, ChatRequest, Cost, Judgment, Message, Reply, Usage
from dicast.testing import run_pipeline, sample
from dicast.toolkit.rate_limit import WIRE


@attrs.frozen
class Model:
    """A chat model with the costs of the *tries* of each call. The last try of a call succeeds; the highest cost so far is the estimate."""

    tries: tuple[tuple[str, ...], ...]
    unit: str = "usd"
    estimated: list = attrs.field(factory=lambda: [Cost("0.02")], eq=False)
    calls: list = attrs.field(factory=list, eq=False)

    def estimate(self, request):
        return max(self.estimated, key=lambda cost: cost.amount)

    async def complete(self, request):
        tries = self.tries[len(self.calls)]
        self.calls.append(tries)
        wire = WIRE.get()
        await asyncio.sleep(0.001)  # all requests of the moment are active
        for number, text in enumerate(tries, 1):
            cost = Cost(text, self.unit)
            self.estimated.append(Cost(text))
            if (failure := await wire.reserve(cost, wire.spent)) is not None:
                return attrs.evolve(failure, cost=wire.spent)
            if number == len(tries):
                return Reply("yes", "m-1", usage=Usage(30, 4), cost=wire.spent + cost)
            wire.spent += cost
        raise AssertionError("the last try returns")


@attrs.frozen
class Asking:
    """Asks *number* questions, all at once or one after the other. Its estimate is *fixed*, or follows the estimate of the model."""

    model: ChatModel
    number: int = 1
    at_once: bool = False
    fixed: str | None = None

    def estimate(self, subject):
        if self.fixed is not None:
            return Cost(self.fixed)
        return Cost(dicast.estimate(self.model, ChatRequest(())).amount * self.number)

    async def judge(self, subject, children):
        asked = [self.model.complete(ChatRequest((Message("user", str(at)),))) for at in range(self.number)]
        replies = await asyncio.gather(*asked) if self.at_once else [await call for call in asked]
        failures = [reply for reply in replies if not isinstance(reply, Reply)]
        cost = sum((reply.cost for reply in replies), Cost.zero(replies[0].cost.unit))
        if failures:
            return attrs.evolve(failures[0], cost=cost)
        return Judgment(0.5, 0.9, "llm", "m-1", cost, includes_replies=True)


def money(judge, cap="1 usd"):
    """Return the reserved, the released and the settled amounts of a run on one subject, in their order, and its failures."""
    done = run_pipeline(f"judges: [j]\nbudget: {{run: {cap}}}", subjects=[sample("x", id="1")], components={"j": judge})
    reserved = {event.payload["reservation_id"]: event.payload["amount"] for event in done.of("spend.reserved")}
    released = [reserved[event.payload["reservation_id"]] for event in done.of("spend.released")]
    settled = [event.payload["amount"] for event in done.of("spend.settled")]
    assert not done.of("spend.lost")
    return [*reserved.values()], released, settled, done.document["failures"]


REFUSED = {"throttled_no_heuristic": 1}


@pytest.mark.parametrize(
    ("tries", "cap", "expected"),
    [
        (("0.02",), "1", (["0.02"], [], ["0.02"], {})),
        (("0.05",), "0.05", (["0.02", "0.05"], ["0.02"], ["0.05"], {})),
        (("0.05",), "0.04", (["0.02"], ["0.02"], [], REFUSED)),
        # a second try is reserved with the cost of the first one
        (("0.005", "0.015"), "0.02", (["0.02"], [], ["0.020"], {})),
        (("0.015", "0.02"), "1", (["0.02", "0.035"], ["0.02"], ["0.035"], {})),
        (("0.015", "0.02"), "0.05", (["0.02"], [], ["0.015"], REFUSED)),
    ],
)
def test_a_try_above_the_estimate_is_reserved_before_it_is_sent(tries, cap, expected):
    assert money(Asking(Model((tries,))), f"{cap} usd") == expected


@pytest.mark.parametrize(
    ("costs", "at_once", "expected"),
    [
        (("0.05", "0.05"), False, (["0.04", "0.10"], ["0.04"], ["0.10"], {})),
        (("0.05", "0.05"), True, (["0.04", "0.10"], ["0.04"], ["0.10"], {})),
        (("0.05", "0.07"), False, (["0.04", "0.10", "0.07"], ["0.04"], ["0.05", "0.07"], {})),
    ],
)
def test_several_questions_are_reserved_together_and_a_later_cost_by_itself(costs, at_once, expected):
    model = Model(tuple((cost,) for cost in costs))
    assert money(Asking(model, 2, at_once)) == expected


def test_all_active_requests_are_reserved_if_the_judge_does_not_know_their_cost():
    model = Model((("0.05",), ("0.05",)))
    judge = Asking(model, 2, at_once=True, fixed="0.04")
    assert money(judge) == (["0.04", "0.10"], ["0.04"], ["0.10"], {})


def test_a_failed_try_next_to_another_request_reserves_both():
    model = Model((("0.01", "0.03"), ("0.01", "0.03")))
    assert money(Asking(model, 2, at_once=True)) == (["0.04", "0.08"], ["0.04"], ["0.08"], {})


def test_a_call_without_a_reservation_in_the_unit_stays_without():
    model = Model((("7",),), unit="msat", estimated=[Cost("0.02")])
    assert money(Asking(model)) == (["0.02", "0"], [], ["0", "7"], {})  # a charge reserves nothing
