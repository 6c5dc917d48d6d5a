"""Chat models through litellm keep the contract."""

from __future__ import annotations

import pytest

from dicast.testing import ChatModelConformance


class TestChat(ChatModelConformance):
    model = "litellm/chat"

    @pytest.fixture(autouse=True)
    def _endpoint(self, chat_server):
        self.options = {
            "model": "openai/some-model",
            "api_base": chat_server.url,
            "api_key": "sk-secret",
            "price": "free",
        }


class TestNobodyThere(ChatModelConformance):
    model = "litellm/chat"
    options = {
        "model": "openai/gpt-4o-mini",
        "api_base": "http://127.0.0.1:9/v1",
        "api_key": "sk-secret",
        "retries": 0,
    }
    unreachable = {"retries": 0}
