"""A real model behind a real server that speaks the Messages API: llama.cpp's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from dicast import Reply, RunContext
from dicast_anthropic import Chat


@pytest.mark.slow
def test_a_real_server_answers(model_server, question):
    chat = Chat(model_server.model, base_url=model_server.base_url, temperature=0)

    async def ask():
        async with chat.open(RunContext("run", "test", Path())) as live:
            return await live.complete(question("Is 2 + 2 = 4?", max_output_tokens=16))

    reply = asyncio.run(ask())
    assert isinstance(reply, Reply), reply
    assert reply.text
    assert (reply.model, reply.stop_reason in ("end_turn", "max_tokens")) == (model_server.model, True)
    assert reply.usage.input_tokens > 10
    assert 0 < reply.usage.output_tokens <= 16
    assert reply.cost.is_zero
