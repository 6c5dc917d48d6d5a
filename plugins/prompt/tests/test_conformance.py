"""The task keeps the contract."""

from __future__ import annotations

from dicast.testing import FakeChatModel, TaskConformance


class TestChat(TaskConformance):
    task = "prompt/chat"
    options = {"model": "fake", "user": "{{ input }}", "security_level": "official"}
    components = {"fake": FakeChatModel("yes")}


class TestCriteria(TaskConformance):
    task = "prompt/chat"
    options = {
        "model": "fake",
        "system": {"file": "prompts/system.j2"},
        "criteria": {"clarity": {"user": "Is it clear? {{ input }}"}, "depth": {"user": "Is it deep? {{ input }}"}},
    }
    files = {"prompts/system.j2": "You answer in one word.\n"}
    components = {"fake": FakeChatModel("yes")}
