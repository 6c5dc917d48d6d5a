"""The task keeps the contract."""

from __future__ import annotations

from dicast.testing import FakeChatModel, TaskConformance


class TestReflect(TaskConformance):
    task = "optimize/reflect"
    options = {"model": "fake", "temperature": 0.7}
    components = {"fake": FakeChatModel("a better text")}
