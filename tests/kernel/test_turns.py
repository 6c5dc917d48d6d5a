"""Calls inside components count against ``concurrency``: no more of them are under way, or have money reserved, at once."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from dicast import ChatModel, ChatRequest, Cost, Judge, Judgment, Message, Reply, Subject
from dicast.testing import run_pipeline, sample

CENT = Cost("0.01", pricing_version="list 1")


@attrs.frozen
class Model:
    """Takes a while to answer, and counts how many requests it has at once."""

    now: list[int] = attrs.field(factory=lambda: [0], eq=False)
    most: list[int] = attrs.field(factory=lambda: [0], eq=False)
    seconds: float = 0.0

    def estimate(self, request: ChatRequest) -> Cost:
        return CENT

    async def complete(self, request: ChatRequest) -> Reply:
        self.now[0] += 1
        self.most[0] = max(self.most[0], self.now[0])
        try:
            await asyncio.sleep(self.seconds)
            for _ in range(5):
                await asyncio.sleep(0)
            return Reply("0.5", model="m", cost=CENT)
        finally:
            self.now[0] -= 1


@attrs.frozen
class Asks:
    """A judge that asks its model so many times at once."""

    model: ChatModel
    times: int = 1
    judge_kind = "llm"

    def estimate(self, subject: Subject) -> Cost:
        return sum([self.model.estimate(self.request(subject))] * self.times, Cost.zero())

    def request(self, subject: Subject) -> ChatRequest:
        return ChatRequest((Message("user", str(subject.output)),))

    async def judge(self, subject: Subject, children: object) -> Judgment:
        await asyncio.gather(*(self.model.complete(self.request(subject)) for _ in range(self.times)))
        return Judgment(0.5, 1.0, "llm", "m")


@attrs.frozen
class Jury:
    """A judge that asks its judges at once."""

    judges: tuple[Judge, ...]
    judge_kind = "jury"

    async def judge(self, subject: Subject, children: object) -> Judgment:
        answers = await asyncio.gather(*(judge.judge(subject, ()) for judge in self.judges))
        return attrs.evolve(answers[0], cost=Cost.zero())


def jury(model):
    return Jury((Jury((Asks(model), Asks(model))), Asks(model, 2), Asks(model)))


def reserved_at_once(events):
    """How many reservations were open at the same time, by the ledger."""
    open_, most = set(), 0
    for event in events:
        if event.type == "spend.reserved":
            open_.add(event.payload["reservation_id"])
        elif event.type.startswith("spend."):
            open_.discard(event.payload.get("reservation_id"))
        most = max(most, len(open_))
    return most


@pytest.mark.parametrize("concurrency", [1, 2, 5])
@pytest.mark.parametrize("make", [jury, Asks, lambda model: Asks(model, 4)], ids=["jury", "judge", "four at once"])
def test_no_more_calls_than_concurrency_are_under_way(make, concurrency):
    model = Model()
    text = f"judges: [j]\nexecutor: {{dicast/async: {{concurrency: {concurrency}}}}}\nbudget: {{run: 100 usd}}\n"
    subjects = [sample(str(n), id=f"s{n}") for n in range(12)]
    done = run_pipeline(text, subjects=subjects, components={"j": make(model)})
    assert done.document["scored"] == 12
    assert model.most[0] <= concurrency
    assert model.most[0] == concurrency or make is not Asks
    assert model.now == [0]


def test_a_turn_that_is_free_is_used_by_a_jury_alone():
    model = Model()
    text = "judges: [j]\nexecutor: {dicast/async: {concurrency: 5}}\n"
    run_pipeline(text, subjects=[sample("x")], components={"j": jury(model)})
    assert model.most[0] == 5


def test_jurors_that_run_out_of_time_keep_no_turn_and_reserve_one_after_the_other():
    model = Model(seconds=0.15)
    jurors = Jury(tuple(Asks(model) for _ in range(3)))
    text = "judges: [{j: {timeout: 0.2}}]\nexecutor: {dicast/async: {concurrency: 1}}\nbudget: {run: 100 usd}\n"
    done = run_pipeline(text, subjects=[sample("x", id="a"), sample("x", id="b")], components={"j": jurors})
    assert done.document["failures"] == {"timeout": 2}
    assert (reserved_at_once(done.events), model.now) == (1, [0])
