"""Keeping the calls to one endpoint within its limits."""

from __future__ import annotations

import asyncio

import pytest

from dicast.toolkit.rate_limit import WORKERS, RateLimiter


class Clock(asyncio.SelectorEventLoop):
    """An event loop whose time goes on only by sleeping, and at once."""

    def __init__(self):
        super().__init__()
        self.now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            self.now = max(self.now, self._scheduled[0].when())
        super()._run_once()


def run(work):
    loop = Clock()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()


async def calls(limiter, count, *, tokens=0, seconds=0.0, values=lambda number: None):
    """Make *count* calls at once; give when each began, and how many were under way then."""
    began, active = [], 0

    async def call():
        nonlocal active
        async with limiter.turn(tokens) as number:
            active += 1
            began.append((asyncio.get_running_loop().time(), active))
            await asyncio.sleep(seconds)
            values(number)
            active -= 1

    await asyncio.gather(*(call() for _ in range(count)))
    return began


def starts(began):
    return [pytest.approx(moment) for moment, _ in began]


def test_without_limits_all_calls_go_at_once():
    assert run(calls(RateLimiter(), 1000, seconds=1)) == [(0.0, number + 1) for number in range(1000)]


def test_calls_that_come_together_begin_in_several_rounds_of_the_event_loop():
    async def work():
        limiter, rounds = RateLimiter(), [0]

        def next_round():
            rounds.append(0)
            asyncio.get_running_loop().call_soon(next_round)

        async def call():
            async with limiter.turn(0):
                rounds[-1] += 1

        next_round()
        await asyncio.gather(*(call() for _ in range(50)))
        return rounds

    rounds = run(work())
    assert sum(rounds) == 50
    assert max(rounds) <= 12


def test_call_that_is_given_up_while_others_begin_leaves_its_turn_to_them():
    async def work():
        limiter = RateLimiter()
        waiting = [asyncio.ensure_future(calls(limiter, 1)) for _ in range(50)]
        await asyncio.sleep(0)
        for call in waiting[:40]:
            call.cancel()
        return [await call for call in waiting[40:]]

    assert len(run(work())) == 10


def test_requests_are_spaced_evenly():
    assert starts(run(calls(RateLimiter(requests_per_minute=120), 4))) == [0, 0.5, 1, 1.5]


def test_a_worker_of_a_run_has_its_share_of_the_limits():
    token = WORKERS.set(2)
    try:
        requests, tokens = RateLimiter(requests_per_minute=120), RateLimiter(tokens_per_minute=6000)
    finally:
        WORKERS.reset(token)
    assert starts(run(calls(requests, 3))) == [0, 1, 2]
    assert starts(run(calls(tokens, 3, tokens=50))) == [0, 1, 2]


def test_tokens_are_spaced_by_what_the_calls_before_took():
    assert starts(run(calls(RateLimiter(tokens_per_minute=6000), 3, tokens=50))) == [0, 0.5, 1]


def test_the_stricter_of_both_limits_holds():
    limiter = RateLimiter(requests_per_minute=60, tokens_per_minute=6000)
    assert starts(run(calls(limiter, 3, tokens=500))) == [0, 5, 10]


def test_no_minute_has_more_requests_than_the_limit():
    moments = [moment for moment, _ in run(calls(RateLimiter(requests_per_minute=30), 100))]
    assert max(sum(begin <= moment < begin + 60 for moment in moments) for begin in moments) == 30


def test_a_pause_holds_for_all_calls_also_those_that_had_their_turn():
    async def work():
        limiter = RateLimiter(requests_per_minute=60)
        async with limiter.turn(0) as number:
            waiting = asyncio.ensure_future(calls(limiter, 2))
            await asyncio.sleep(0.5)
            limiter.overloaded(number, wait=10)
        return await waiting

    assert [moment for moment, _ in run(work())] == [pytest.approx(10.5)] * 2


def test_an_overload_halves_the_calls_at_once_and_success_brings_them_back():
    async def work():
        limiter = RateLimiter()
        await calls(limiter, 16, seconds=1, values=limiter.overloaded)
        slowed = await calls(limiter, 32, seconds=1)
        await calls(limiter, 300, seconds=1, values=lambda number: limiter.eased())
        eased = await calls(limiter, 32, seconds=1)
        return [max(active for _, active in began) for began in (slowed, eased)]

    slowed, eased = run(work())
    assert slowed == 8, "the calls that were under way together are one overload, not sixteen"
    assert eased > 16


def test_at_least_one_call_goes_however_often_the_endpoint_had_too_much():
    async def work():
        limiter = RateLimiter()
        for _ in range(10):
            await calls(limiter, 1, values=limiter.overloaded)
        return await calls(limiter, 3, seconds=1)

    assert [active for _, active in run(work())] == [1, 1, 1]


def test_a_call_that_is_cancelled_leaves_its_place_to_the_next():
    async def work():
        limiter = RateLimiter()
        await calls(limiter, 1, values=limiter.overloaded)
        stuck = asyncio.ensure_future(calls(limiter, 1, seconds=1000))
        waiting = asyncio.ensure_future(calls(limiter, 1))
        await asyncio.sleep(1)
        assert not waiting.done()
        stuck.cancel()
        await asyncio.wait_for(waiting, 5)

    run(work())
