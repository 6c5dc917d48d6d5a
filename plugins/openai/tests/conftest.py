"""Fixtures that ask ``openai/chat`` with the endpoint of the tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import stamina

from dicast import ChatRequest, Message, RunContext, Secret
from dicast_openai.chat import Chat

KEY = "sk-not-to-be-shown"
RUN = RunContext("run", "test", Path())


@pytest.fixture
def no_waits():
    """Retries follow at once; how often is still the model's own option."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def question():
    """Make a request: ``question("Is it so?", schema=...)``. One with a schema has a seal, as a judge's has."""

    def make(text="Is it so?", system="You judge.", sealed=None, **options):
        if "schema" in options if sealed is None else sealed:
            options["nonces"] = (*options.get("nonces", ()), "0123456789ab")
            text = f"{text}\nseal: 0123456789ab"
        messages = (Message("system", system, cache=True), Message("user", text))
        return ChatRequest(messages, max_output_tokens=64, **options)

    return make


@pytest.fixture
def model(chat_server):
    """Make a model that asks the server: ``model(retries=0)``."""

    def make(**options):
        defaults = {"base_url": chat_server.url, "model": "m", "price": "free", "api_key": Secret(KEY), **options}
        return Chat(**defaults)

    return make


@pytest.fixture
def ask(model, question):
    """Open a model, ask the requests one after the other (by default one), and give the answers."""

    async def run(chat, requests):
        async with chat.open(RUN) as live:
            return [await live.complete(request) for request in requests]

    def asking(*requests, **options):
        answers = asyncio.run(run(model(**options), requests or (question(),)))
        return answers if requests[1:] else answers[0]

    return asking
