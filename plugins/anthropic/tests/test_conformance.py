"""The chat model keeps the contract, with an endpoint and without."""

from __future__ import annotations

import pytest

from dicast.testing import ChatModelConformance


class TestServed(ChatModelConformance):
    model = "anthropic/chat"
    unreachable = {"base_url": "http://127.0.0.1:9", "retries": 0}

    @pytest.fixture(autouse=True)
    def served(self, chat_server, claude):
        chat_server.answer = claude
        claude.usage = {"input_tokens": 7, "output_tokens": 2}
        price = {"input_per_mtok": 1, "output_per_mtok": 2}
        self.options = {
            "base_url": claude.url(chat_server),
            "model": "claude-haiku-4-5",
            "price": price,
            "api_key": claude.key,
        }


class TestUnserved(ChatModelConformance):
    model = "anthropic/chat"
    # Port 9 discards; nobody listens there.
    options = {"base_url": "http://127.0.0.1:9", "model": "m", "price": "free", "retries": 0}
