"""The source keeps the contract."""

from __future__ import annotations

import json

from dicast.testing import ReaderConformance

SAMPLE = {
    "id": "sum",
    "epoch": 1,
    "input": "Add 1 and 2",
    "target": "3",
    "messages": [
        {"role": "user", "content": "Add 1 and 2"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": "add", "arguments": {"x": 1, "y": 2}}],
        },
        {"role": "tool", "content": "3", "tool_call_id": "c1", "function": "add"},
        {"role": "assistant", "content": "It is 3."},
    ],
    "scores": {"match": {"value": "C"}},
}
LOG = {"version": 2, "status": "success", "eval": {"task": "sums", "model": "m"}, "plan": {}, "samples": [SAMPLE]}


UNKNOWN = {**SAMPLE, "messages": [*SAMPLE["messages"], {"role": "critic", "content": "good"}]}
FAILED = {"id": "bad", "epoch": 1, "input": "Q", "target": "A", "messages": [], "error": {"message": "it broke"}}


class TestLog(ReaderConformance):
    source = "inspect/log"
    files = {"log.json": json.dumps(LOG)}
    options = {"path": "log.json", "subjects": ["turn", "tool_cycle", "session"]}
    unknown = json.dumps({**LOG, "samples": [UNKNOWN]})
    failed = json.dumps({**LOG, "samples": [SAMPLE, FAILED]})
