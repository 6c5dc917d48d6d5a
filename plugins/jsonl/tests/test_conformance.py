"""The sinks keep the contract."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestEvents(SinkConformance):
    sink = "jsonl/events"
    options = {"path": "out/events.jsonl"}


class TestSomeEvents(SinkConformance):
    sink = "jsonl/events"
    options = {"path": "events.jsonl", "types": ["eval.completed"]}


class TestRows(SinkConformance):
    sink = "jsonl/rows"
    options = {"path": "out/rows.jsonl"}
