"""Fixtures that ask ``anthropic/chat`` with the API of the tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import stamina

from dicast import ChatRequest, Message, RunContext, Secret
from dicast_anthropic import Chat

RUN = RunContext("run", "test", Path())


@pytest.fixture(autouse=True)
def no_key(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


@pytest.fixture
def no_waits():
    """Retries without waits; their number is still that of the model's options."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def question():
    """Make a request: ``question("Is it so?", schema=...)``."""

    def make(text="Is it so?", system="You judge.", **options):
        messages = (Message("system", system, cache=True), Message("user", text))
        return ChatRequest(messages, **{"max_output_tokens": 64, **options})

    return make


@pytest.fixture
def model(chat_server, claude):
    """Make a model that asks the server: ``model(model="claude-opus-5", retries=0)``."""
    chat_server.answer = claude

    def make(**options):
        defaults = {"base_url": claude.url(chat_server), "price": "free", "api_key": Secret(claude.key)}
        return Chat(**{"model": "claude-haiku-4-5", **defaults, **options})

    return make


@pytest.fixture
def ask(model, question):
    """Open a model, ask the requests one after the other (by default one), and return the answers."""

    async def run(chat, requests):
        async with chat.open(RUN) as live:
            return [await live.complete(request) for request in requests]

    def asking(*requests, **options):
        answers = asyncio.run(run(model(**options), requests or (question(),)))
        return answers if requests[1:] else answers[0]

    return asking
