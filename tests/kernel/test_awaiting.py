"""Time limits of awaited answers that other code cancels."""

from __future__ import annotations

import asyncio

import pytest

from dicast._kernel.timing import awaiting
from dicast._kernel.timing.awaiting import TimeUp, within
from dicast._kernel.timing.timer import Timer


def test_a_cancellation_by_other_code_together_with_the_limit_is_a_cancellation():
    async def answer():
        try:
            await asyncio.sleep(5)
        finally:
            asyncio.current_task().cancel()

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(within(Timer(), answer(), 0.01))


def test_the_end_of_the_time_is_no_cancellation_of_the_task():
    async def work():
        with pytest.raises(TimeUp):
            await within(Timer(), asyncio.sleep(5), 0.01)
        return asyncio.current_task().cancelling()

    assert asyncio.run(work()) == 0


def test_an_answer_that_outlives_its_own_cancellation_has_its_whole_time(monkeypatch):
    monkeypatch.setattr(awaiting, "GIVE_UP_SECONDS", 0.02)

    async def answer():
        task = asyncio.current_task()
        asyncio.get_running_loop().call_soon(task.cancel)
        try:
            await asyncio.sleep(5)
        except asyncio.CancelledError:
            await asyncio.sleep(0)
            task.uncancel()
        await asyncio.sleep(0.1)
        return "an answer"

    assert asyncio.run(within(Timer(), answer(), 5)) == "an answer"
