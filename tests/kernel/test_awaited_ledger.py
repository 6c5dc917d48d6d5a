"""Ledgers with ``async def`` methods: a run awaits them, and other code calls them like functions."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import asynccontextmanager

import attrs
import pytest

from dicast import Cost, Judgment, LedgerError, PluginError, Query
from dicast._kernel.stream.awaited_ledger import AwaitedLedger
from dicast._kernel.stream.opening_context import opening
from dicast._kernel.stream.stream import Stream
from dicast._kernel.values import Cap, Claim
from dicast._kernel.values.clock import Clock
from dicast.testing import FakeJudge, FakeMetric, LedgerConformance, MemoryLedger, run_pipeline, sample
from dicast.testing.leases import LeaseConformance
from dicast.testing.ledger_events import RUN, make_event, make_lost, make_reservation
from dicast.testing.pipeline import Bench


class AsyncLive:
    """A live ledger that waits before each answer."""

    def __init__(self, live, component):
        self._live, self._component = live, component

    def __getattr__(self, name):
        return getattr(self._live, name)

    async def append(self, events):
        return await self._answer(self._live.append, events)

    async def reserve(self, claims, lost, before=()):
        return await self._answer(self._live.reserve, claims, lost, before)

    async def _answer(self, method, *arguments):
        self._component.loops.append(asyncio.get_running_loop())
        await asyncio.sleep(self._component.seconds)
        if self._component.faults:
            raise LedgerError(self._component.faults.pop())
        return method(*arguments)


@attrs.frozen
class AsyncLedger:
    """A ledger in memory with ``async def`` methods."""

    is_async_ledger = True

    seconds: float = 0.0
    faults: list = attrs.field(factory=list, eq=False)
    loops: list = attrs.field(init=False, factory=list, eq=False, repr=False)
    memory: MemoryLedger = attrs.field(init=False, factory=MemoryLedger, eq=False, repr=False)

    @asynccontextmanager
    async def open(self, run=None, create=True):
        async with self.memory.open(run, create) as live:
            yield AsyncLive(live, self)


@attrs.frozen
class Unmarked(AsyncLedger):
    """A ledger with ``async def`` methods that does not declare them."""

    is_async_ledger = False


ROWS = [sample(f"text {number}", id=f"r{number}") for number in range(5)]
PAID = "name: paid\nmetrics: [metric]\njudges: [judge]\nbudget: {run: 0.03 usd}\nledger: memory\n"


def run(ledger):
    judge = FakeJudge(Judgment(0.75, 0.8, "llm", "m", Cost("0.01")), cost=Cost("0.01"))
    components = {"metric": FakeMetric(), "judge": judge, "memory": ledger}
    return run_pipeline(PAID, subjects=ROWS, components=components)


def recorded(ledger):
    async def read():
        async with ledger.open() as live:
            return [entry.event for entry in live.read(Query())]

    return asyncio.run(read())


def test_a_run_records_the_same_events_as_with_another_ledger():
    awaited, other = AsyncLedger(), MemoryLedger()
    run(awaited)
    run(other)
    types = [sorted(event.type for event in recorded(ledger)) for ledger in (awaited.memory, other)]
    assert types[0] == types[1]
    assert types[0].count("spend.settled") == 3
    assert types[0].count("spend.reserved") == 3
    assert len(set(awaited.loops)) == 1


def test_a_ledger_without_the_mark_is_refused_with_the_fix():
    with pytest.raises(PluginError, match="append, reserve is async def: .* is_async_ledger = True"):
        run(Unmarked())


def test_its_members_are_called_without_an_event_loop():
    with pytest.raises(StopIteration) as ended:  # noqa: PT012  # a coroutine that waits would not end here

        async def use():
            async with opening(AsyncLedger(), None) as live:
                head = live.append([make_event(Clock(), "run.started", {})])
                return head, live.head()

        use().send(None)
    head, newest = ended.value.value
    assert head == newest
    assert head.seq == 1


def test_an_error_while_it_opens_is_raised():
    @attrs.frozen
    class Closed(AsyncLedger):
        @asynccontextmanager
        async def open(self, run=None, create=True):
            raise LedgerError("no connection")
            yield

    with pytest.raises(LedgerError, match="no connection"):
        asyncio.run(opening(Closed(), None).__aenter__())


def streamed(ledger, use):
    """Return the result of *use* on the stream of a run and the live ledger."""

    async def work():
        async with opening(ledger, None) as live:
            assert isinstance(live, AwaitedLedger)
            stream = Stream(RUN, Clock(), live, (), seen.extend)
            return await use(stream, live)

    seen = []
    return asyncio.run(work()), seen


def test_other_tasks_run_while_it_appends():
    async def use(stream, live):
        ticks = []

        async def tick():
            while True:
                ticks.append(0)
                await asyncio.sleep(0)

        ticking = asyncio.ensure_future(tick())
        stream.emit([make_event(stream.clock, "run.started", {})])
        await stream.flush()
        ticking.cancel()
        return len(ticks), live.head().seq

    (ticks, head), _ = streamed(AsyncLedger(0.02), use)
    assert ticks > 5
    assert head == 1


def test_events_keep_their_order_after_a_failed_append():
    async def use(stream, live):
        events = [make_event(stream.clock, "run.started", {"n": number}) for number in range(3)]
        stream.emit(events[:1])
        stream.commit_soon()
        await asyncio.sleep(0)  # the ledger has the first event
        stream.emit(events[1:])
        with pytest.raises(LedgerError, match="busy"):
            stream.commit()
        await stream.flush()
        return events, [entry.event for entry in live.read(Query())]

    (events, kept), seen = streamed(AsyncLedger(0.01, ["busy"]), use)
    assert kept == events
    assert seen == events


def test_a_flush_raises_the_error_of_its_append():
    async def use(stream, live):
        stream.emit([make_event(stream.clock, "run.started", {})])
        with pytest.raises(LedgerError, match="busy"):
            await stream.flush()
        await stream.flush()
        return live.head().seq

    assert streamed(AsyncLedger(0.0, ["busy"]), use)[0] == 1


def test_a_claim_that_is_withdrawn_while_it_is_granted_is_released():
    async def use(stream, live):
        reservation = make_reservation(stream.clock, "0.01")
        claim = Claim(reservation, [Cap(f"run:{RUN}", "run_cap", Cost("0.01"))])
        answer = stream.claim(claim, make_lost(stream.clock))
        await asyncio.sleep(0)  # the ledger has the claim
        answer.cancel()
        await stream.flush()
        await stream.flush()
        return list(live.reservations(None)), [entry.event.type for entry in live.read(Query())]

    (still_open, types), seen = streamed(AsyncLedger(0.01), use)
    assert not still_open
    assert types == ["spend.reserved", "spend.released"]
    assert [event.type for event in seen] == types


CHECKS = [name for kit in (LedgerConformance, LeaseConformance) for name in vars(kit) if name.startswith("test_")]


@pytest.mark.parametrize("check", CHECKS)
def test_it_passes_the_check_of_the_kit(check, tmp_path):
    kit = LedgerConformance()
    kit.ledger = "test/awaited"
    method = getattr(kit, check)
    values = {"component": AsyncLedger(), "bench": Bench(tmp_path, {}), "clock": Clock()}
    method(**{name: values[name] for name in inspect.signature(method).parameters})
