"""The tasks keep the contract."""

from __future__ import annotations

from dicast.testing import TaskConformance


class TestCommand(TaskConformance):
    task = "task/command"
    options = {"command": ["cat"], "security_level": "official"}


class TestHttp(TaskConformance):
    task = "task/http"
    options = {"url": "http://127.0.0.1:9/answer", "headers": {"Authorization": "Bearer x"}, "retries": 0}


class TestPython(TaskConformance):
    task = "task/python"
    options = {"target": "pprint:pformat", "security_level": "official"}
