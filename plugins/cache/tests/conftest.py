"""Asking a cache."""

from __future__ import annotations

import asyncio

import pytest

from dicast import RunContext


@pytest.fixture
def opened():
    """Return ``opened(chat, use)``, which opens *chat*, awaits ``use(live)`` and returns the result."""

    def run(chat, use):
        async def work():
            async with chat.open(RunContext("R", "test", chat.path.parent)) as live:
                return await use(live)

        return asyncio.run(work())

    return run


@pytest.fixture
def ask(opened):
    """Return ``ask(chat, *requests)``, which returns the answers: one request after the other, or all at the same time with *together*."""

    def run(chat, *requests, together=False):
        async def answers(live):
            if together:
                return await asyncio.gather(*map(live.complete, requests))
            return [await live.complete(request) for request in requests]

        return opened(chat, answers)

    return run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "cache.db"
