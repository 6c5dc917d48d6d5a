"""Recorded replies keep the contract of chat models, with a model to record and without."""

from __future__ import annotations

from dicast.testing import ChatModelConformance, FakeChatModel


class TestReplaying(ChatModelConformance):
    model = "replay/chat"
    options = {"path": "replies.jsonl"}
    files = {"replies.jsonl": '{"dicast_replay": 1}\n'}


class TestRecording(ChatModelConformance):
    model = "replay/chat"
    options = {"path": "made/replies.jsonl", "record": "asked"}
    components = {"asked": FakeChatModel("yes")}
