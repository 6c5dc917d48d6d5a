"""The metrics of tool calls keep the contract."""

from __future__ import annotations

from dicast import Subject, TraceEvent
from dicast.testing import GOLDEN, MetricConformance

SEARCH = {"tool_use_id": "c1", "tool_name": "search", "input": {"query": "Rome"}}
EVENTS = (TraceEvent("tool.called", SEARCH), TraceEvent("tool.completed", {**SEARCH, "success": True}))
SUBJECTS = (*GOLDEN, Subject("turn", "sample", "Weather in Rome?", "22C", [{"name": "search"}], events=EVENTS))
"""The golden subjects, and a turn with a call and its reference."""
CALLS = '{"id": "sample", "calls": [{"name": "search", "arguments": {"query": "Rome"}}]}\n'


class TestMatch(MetricConformance):
    metric = "trajectory/match"
    files = {"calls.jsonl": CALLS}
    options = {"reference": "calls.jsonl", "mode": "in_order", "arguments": {"query": "similarity"}, "partial": True}
    subjects = SUBJECTS


class TestMatchOfEachRow(MetricConformance):
    metric = "trajectory/match"
    subjects = SUBJECTS


class TestLimits(MetricConformance):
    metric = "trajectory/limits"
    options = {
        "max_calls": 3, "max_repeats": 1, "max_errors": 0, "max_cost": 0.5, "max_latency": 60, "forbidden": ["rm_*"],
        "required": ["search"],
    }  # fmt: skip


class TestToolCorrectness(MetricConformance):
    metric = "trajectory/tool_correctness"
    options = {"expected": ["search", "search", "book"]}
    subjects = SUBJECTS
