"""The chat model keeps the contract, with an endpoint and without."""

from __future__ import annotations

import pytest

from dicast.testing import ChatModelConformance

PRICE = {"input_per_mtok": 1, "output_per_mtok": 2}


class TestServed(ChatModelConformance):
    model = "openai/chat"
    unreachable = {"base_url": "http://127.0.0.1:9/v1", "retries": 0}

    @pytest.fixture(autouse=True)
    def served(self, chat_server):
        chat_server.answer = chat_server.reply("Yes.", usage={"prompt_tokens": 7, "completion_tokens": 2})
        self.options = {"base_url": chat_server.url, "model": "m", "price": PRICE, "api_key": "sk-secret"}


class TestUnserved(ChatModelConformance):
    model = "openai/chat"
    # Port 9 discards; nobody listens there.
    options = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "price": "free", "retries": 0}
