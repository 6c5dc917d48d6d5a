"""Conformance of the cache, and of replayed replies with and without a model to record."""

from __future__ import annotations

from dicast import Cost
from dicast.testing import ChatModelConformance, FakeChatModel


class TestCache(ChatModelConformance):
    model = "cache/chat"
    options = {"path": "made/cache.db", "model": "asked"}
    components = {"asked": FakeChatModel("yes", cost=Cost("0.01"))}


class TestReplaying(ChatModelConformance):
    model = "replay/chat"
    options = {"path": "replies.jsonl"}
    files = {"replies.jsonl": '{"dicast_replay": 1}\n'}


class TestRecording(ChatModelConformance):
    model = "replay/chat"
    options = {"path": "made/replies.jsonl", "record": "asked"}
    components = {"asked": FakeChatModel("yes")}
