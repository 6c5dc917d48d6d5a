"""A model in this process keeps the contract; it is small, for the checks load it many times."""

from __future__ import annotations

import pytest

from dicast.testing import ChatModelConformance


class TestChat(ChatModelConformance):
    model = "llamacpp/chat"

    @pytest.fixture(autouse=True)
    def _small(self, small_gguf):
        self.options = {"path": str(small_gguf), "context": 1024, "threads": 1}
