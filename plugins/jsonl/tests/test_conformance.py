"""The sink of events keeps the contract."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestEvents(SinkConformance):
    sink = "jsonl/events"
    options = {"path": "out/events.jsonl"}


class TestSomeEvents(SinkConformance):
    sink = "jsonl/events"
    options = {"path": "events.jsonl", "types": ["eval.completed"]}
