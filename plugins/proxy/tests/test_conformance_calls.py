"""The metrics of tool calls keep the contract."""

from __future__ import annotations

from dicast import Subject
from dicast.testing import GOLDEN, MetricConformance

BOOKED = {"tool": "book", "params": {"seats": 1}}
BOOK = {"type": "object", "properties": {"seats": {"type": "integer", "minimum": 1}}, "required": ["seats"]}
CALLS = (
    Subject("row", "call", {"execution_history": [{"tool": "book", "params": {"seats": 1}}]}, {"tool": "book", "params": {"seats": 1.0}}),
    Subject("row", "call-as-text", {"execution_history": []}, '{"tool": "book", "params": {"seats": "two"}}'),
    Subject("row", "calls", None, [{"tool": "book", "params": {"seats": 1}}, {"name": "book", "arguments": "{}"}, 7]),
    Subject("row", "unknown-tool", None, {"tool": "bok"}, context={"execution_history": [None, "text", {"tool": "bok"}]}),
)  # fmt: skip


class TestToolParamsSchema(MetricConformance):
    metric = "proxy/tool_params_schema"
    options = {"tools": {"book": BOOK, "anything": True}, "formats": True}
    subjects = GOLDEN + CALLS


class TestToolParamsSchemaOfAFile(MetricConformance):
    metric = "proxy/tool_params_schema"
    options = {"tools": "tools.yaml", "field": "steps.0"}
    files = {"tools.yaml": "- type: function\n  function: {name: book, parameters: {type: object}}\n"}


class TestWasRepeated(MetricConformance):
    metric = "proxy/was_repeated"
    subjects = GOLDEN + CALLS


class TestWasNearlyRepeated(MetricConformance):
    metric = "proxy/was_repeated"
    options = {"similarity": 0.8, "field": "call"}
    subjects = (*GOLDEN, *CALLS, Subject("row", "again", {"execution_history": [BOOKED]}, {"call": BOOKED}))
