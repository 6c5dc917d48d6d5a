"""Remembered replies keep the contract of chat models."""

from __future__ import annotations

from dicast import Cost
from dicast.testing import ChatModelConformance, FakeChatModel


class TestCache(ChatModelConformance):
    model = "cache/chat"
    options = {"path": "made/cache.db", "model": "asked"}
    components = {"asked": FakeChatModel("yes", cost=Cost("0.01"))}
