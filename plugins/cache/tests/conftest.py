"""Asking a cache."""

from __future__ import annotations

import asyncio

import pytest

from dicast import RunContext


@pytest.fixture
def opened():
    """``opened(chat, use)``: what *use* returns of the open *chat*."""

    def run(chat, use):
        async def work():
            async with chat.open(RunContext("R", "test", chat.path.parent)) as live:
                return await use(live)

        return asyncio.run(work())

    return run


@pytest.fixture
def ask(opened):
    """``ask(chat, *requests)``: the answers, one after the other, or of all at the same time."""

    def run(chat, *requests, together=False):
        async def each(live):
            if together:
                return await asyncio.gather(*map(live.complete, requests))
            return [await live.complete(request) for request in requests]

        return opened(chat, each)

    return run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "made" / "cache.db"
