"""Simultaneous claims: one transaction decides them all, in their order; and claims that stop waiting."""

from __future__ import annotations

import asyncio
import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ChatModel, ChatRequest, Cost, Failure, Judgment, LedgerError, Message, Query, judge
from dicast._kernel.asking import budget
from dicast._kernel.asking.budget import BudgetGate, Reservation
from dicast._kernel.plan.sections import Budget
from dicast._kernel.report.fold import Report
from dicast._kernel.stream.stream import Stream
from dicast._kernel.values.clock import Clock
from dicast.testing import FakeChatModel, MemoryLedger, run_pipeline, sample


class Watched:
    """A ledger that counts its transactions; *then* is called once, after the next decision was made."""

    def __init__(self, live):
        self.live, self.transactions, self.then, self.fails = live, [], None, None

    def append(self, events):
        self._begin("append")
        return self.live.append(events)

    def reserve(self, claims, lost, before=()):
        self._begin(f"reserve {len(claims)}")
        result = self.live.reserve(claims, lost, before)
        then, self.then = self.then, None
        if then is not None:
            asyncio.get_running_loop().call_soon(then)  # before any task that waits for the decision goes on
        return result

    def reservations(self, run_id):
        return self.live.reservations(run_id)

    def _begin(self, what):
        self.transactions.append(what)
        if self.fails is not None:
            raise self.fails


class Run:
    """A budget on a run's own stream, whose cap is *cap*."""

    def __init__(self, live, cap):
        clock = Clock()
        self.ledger = Watched(live)
        self.stream = Stream("R1", clock, self.ledger, [], Report().observe_all)
        self.budget = BudgetGate(Budget((Cost(cap),), (), ()), self.ledger, self.stream, clock, "R1")

    def reserve(self, amount, *, patient=True):
        requests = self.budget.reserve(sample("x"), "E1", Cost(amount), 30.0, patient=patient)
        return asyncio.ensure_future(requests)

    def types(self):
        return [entry.event.type for entry in self.ledger.live.read(Query())]


def using(cap, work):
    async def main():
        async with MemoryLedger().open() as live, asyncio.timeout(5):
            return await work(Run(live, cap))

    return asyncio.run(main())


def test_claims_of_one_moment_are_one_transaction_with_what_was_told_before():
    async def work(run):
        run.stream.emit([run.stream.event("eval.started", {})])
        results = await asyncio.gather(*(run.reserve("0.001") for _ in range(100)))
        assert run.types() == ["eval.started"] + ["spend.reserved"] * 100
        for reservation in results:
            run.budget.settle(reservation, Cost("0.001"), {})
        await asyncio.sleep(0.001)
        assert run.ledger.transactions == ["reserve 100", "append"]
        assert run.types()[101:] == ["spend.settled"] * 100

    using("1", work)


@settings(max_examples=settings.default.max_examples // 2, deadline=None)
@given(mills=st.lists(st.integers(0, 30), max_size=500), cap=st.integers(0, 300))
def test_each_claim_is_decided_with_those_before_it_counted(mills, cap):
    async def work(run):
        results = await asyncio.gather(*(run.reserve(Decimal(amount) / 1000, patient=False) for amount in mills))
        return [isinstance(answer, Reservation) for answer in results]

    left, expected = cap, []
    for amount in mills:
        expected.append(amount <= left)
        left -= amount if expected[-1] else 0
    assert using(Decimal(cap) / 1000, work) == expected


def test_who_stops_waiting_before_the_ledger_is_asked_asks_for_nothing():
    async def work(run):
        first, second = run.reserve("0.01"), run.reserve("0.01")
        await asyncio.sleep(0)
        first.cancel()
        assert isinstance(await second, Reservation)
        assert first.cancelled()
        assert (run.ledger.transactions, run.types()) == (["reserve 1"], ["spend.reserved"])

    using("0.01", work)


def test_nobody_asks_the_ledger_where_all_stop_waiting():
    async def work(run):
        item = run.reserve("0.01")
        await asyncio.sleep(0)
        item.cancel()
        await asyncio.sleep(0.001)
        assert run.ledger.transactions == []

    using("0.01", work)


def test_who_stops_waiting_when_room_was_just_made_gives_it_back(monkeypatch):
    monkeypatch.setattr(budget, "POLL_SECONDS", 60)

    async def work(run):
        first, second = run.reserve("0.01"), run.reserve("0.01")
        run.ledger.then = first.cancel
        assert isinstance(await second, Reservation)
        assert first.cancelled()
        assert run.types() == ["spend.reserved", "spend.released", "spend.reserved"]

    using("0.01", work)


def test_who_stops_waiting_when_it_was_just_refused_gives_nothing_back():
    async def work(run):
        item = run.reserve("0.02")
        run.ledger.then = item.cancel
        await asyncio.wait({item})
        assert item.cancelled()
        await run.stream.flush()
        assert run.types() == []

    using("0.01", work)


def test_what_is_given_back_just_after_a_refusal_is_not_missed(monkeypatch):
    monkeypatch.setattr(budget, "POLL_SECONDS", 60)

    async def work(run):
        reservation = await run.reserve("0.01")
        run.ledger.then = lambda: run.budget.release(reservation)
        assert isinstance(await run.reserve("0.01"), Reservation)

    using("0.01", work)


@pytest.mark.parametrize("error", [LedgerError("no room left for the ledger"), TypeError("a plugin's own fault")])
def test_a_ledger_that_fails_tells_all_who_wait_and_loses_nothing_told(error):
    async def work(run):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        run.stream.emit([run.stream.event("eval.started", {})])
        run.ledger.fails = error
        results = await asyncio.gather(*(run.reserve("0.01") for _ in range(5)), return_exceptions=True)
        assert results == [error] * 5
        run.ledger.fails = None
        assert isinstance(await run.reserve("0.01"), Reservation)
        assert run.types() == ["eval.started", "spend.reserved"]

    using("0.01", work)


def test_events_that_the_ledger_did_not_take_are_taken_with_the_next_claim():
    async def work(run):
        reservation = await run.reserve("0.01")
        run.ledger.fails = LedgerError("locked")
        run.budget.settle(reservation, Cost("0.004"), {})
        await asyncio.sleep(0.001)
        assert run.types() == ["spend.reserved"]
        run.ledger.fails = None
        assert isinstance(await run.reserve("0.006"), Reservation)
        assert run.types() == ["spend.reserved", "spend.settled", "spend.reserved"]

    using("0.01", work)


# Through a pipeline


@judge()
async def twins(subject, *, model: ChatModel):
    """Asks its model twice at the same time, and announces nothing."""
    request = ChatRequest((Message("user", subject.text),))
    replies = await asyncio.gather(model.complete(request), model.complete(request))
    failed = [reply for reply in replies if isinstance(reply, Failure)]
    return failed[0] if failed else Judgment(1.0)


@pytest.mark.parametrize(("cap", "calls", "scored"), [("0.005 usd", 0, 0), ("0.025 usd", 2, 1)])
def test_a_model_asked_twice_at_once_is_asked_when_there_is_room_and_not_before(cap, calls, scored):
    model = FakeChatModel("fine", cost=Cost("0.01"))
    text = {"judges": ["twins"], "budget": {"run": cap}}
    done = run_pipeline(json.dumps(text), subjects=[sample("x")], components={"twins": twins(model=model)})
    assert (len(model.asked), done.document["scored"]) == (calls, scored)
    assert len(done.of("spend.reserved")) == scored
