"""The allotment of a split run: its ledger holds the day's budget that the shards spend elsewhere, also over midnight."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from dicast import Cost, Refusal
from dicast._kernel.run.allotment import Allotment
from dicast.testing import MemoryLedger

from .test_budget import NOW, Book, limits


def using(work, **scopes):
    async def main():
        async with MemoryLedger().open() as live, asyncio.timeout(5):
            return await work(live, limits(**scopes))

    return asyncio.run(main())


def usd(allotment):
    return [(cost.unit, format(cost.amount.normalize(), "f")) for cost in allotment.amounts]


async def take(book, budget):
    return await Allotment.take(book, book.clock, budget)


@pytest.mark.parametrize(("spent", "left"), [("0", "0.05"), ("0.0123", "0.0377"), ("0.04", "0.01"), ("0.05", "0")])
def test_it_is_what_is_left_of_the_day(spent, left):
    async def work(ledger, budget):
        book = Book(ledger, budget)
        await book.spend(spent)
        allotment = await take(book, budget)
        assert usd(allotment) == [("usd", left)]
        assert bool(allotment.ids) == (left != "0")
        assert (await Book(ledger, budget, "R2").budget._try(*claimed("0.0001"))).cap.scope == "day:2026-03-01"
        assert Allotment.left_open(ledger, "R1", budget) == allotment
        book.emit(allotment.release_events(book.event))
        assert Allotment.left_open(ledger, "R1", budget).ids == ()
        other = await Book(ledger, budget, "R2").budget._try(*claimed("0.0001"))
        assert isinstance(other, Refusal) == (left == "0")

    using(work, day="0.05 usd")


def claimed(amount):
    from dicast.testing import sample

    return sample("x"), "E1", Cost(amount, "usd"), 30.0, False


def test_it_is_at_most_the_cap_of_the_run_and_is_in_each_unit():
    async def work(ledger, budget):
        first, second = Book(ledger, budget), Book(ledger, budget, "R2")
        assert usd(await take(first, budget)) == [("usd", "0.02"), ("msat", "500")]
        assert usd(await take(second, budget)) == [("usd", "0.02"), ("msat", "0")]
        assert usd(await take(Book(ledger, budget, "R3"), budget)) == [("usd", "0.01"), ("msat", "0")]

    using(work, day="0.05 usd, 500 msat", run="0.02 usd")


def test_it_holds_the_budget_of_the_next_days():
    async def work(ledger, budget):
        split, other = Book(ledger, budget), Book(ledger, budget, "R2")
        split.now = NOW.replace(hour=23, minute=59)
        other.now = NOW + timedelta(days=1)
        await other.spend("0.01")
        allotment = await take(split, budget)
        assert usd(allotment) == [("usd", "0.04")], "one of the days has less"
        refusal = await other.budget._try(*claimed("0.001"))
        assert (refusal.cap.scope, refusal.wait) == ("day:2026-03-02", True)
        split.emit(allotment.release_events(split.event))
        await other.spend("0.04")

    using(work, day="0.05 usd")


def test_a_lost_allotment_counts_as_spent_until_the_run_releases_it():
    async def work(ledger, budget):
        book, other = Book(ledger, budget), Book(ledger, budget, "R2")
        allotment = await take(book, budget)
        lost = book.budget._lost()
        ledger.append([lost(entry) for entry in ledger.reservations("R1")])
        refusal = await other.budget._try(*claimed("0.001"))
        assert not refusal.wait
        assert Allotment.left_open(ledger, "R1", budget) == allotment
        book.emit(allotment.release_events(book.event))
        await other.spend("0.05")

    using(work, day="0.05 usd")
