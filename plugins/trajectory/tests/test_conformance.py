"""The metrics of tool calls keep the contract."""

from __future__ import annotations

from dicast.testing import MetricConformance

CALLS = '{"id": "sample", "calls": [{"name": "search", "arguments": {"query": "Rome"}}]}\n'


class TestMatch(MetricConformance):
    metric = "trajectory/match"
    files = {"calls.jsonl": CALLS}
    options = {"reference": "calls.jsonl", "mode": "in_order", "arguments": {"query": "similarity"}, "partial": True}


class TestMatchOfEachRow(MetricConformance):
    metric = "trajectory/match"


class TestLimits(MetricConformance):
    metric = "trajectory/limits"
    options = {
        "max_calls": 3, "max_repeats": 1, "max_errors": 0, "max_cost": 0.5, "max_latency": 60, "forbidden": ["rm_*"],
        "required": ["search"],
    }  # fmt: skip


class TestToolCorrectness(MetricConformance):
    metric = "trajectory/tool_correctness"
    options = {"expected": ["search", "search", "book"]}
