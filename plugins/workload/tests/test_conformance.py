"""The source of runs keeps the contract."""

from __future__ import annotations

import json

from dicast.testing import SourceConformance

RUNS = [
    {"workload": "mend", "run": 1, "model": "small", "output": "done", "per_turn_scores": [0.5], "cost_usd": 0.1},
    {"workload": "mend", "run": 2, "model": "small", "turns": [{"tool_calls": 1, "output": "done"}]},
]


class TestRuns(SourceConformance):
    source = "workload/runs"
    files = {
        "runs.jsonl": "".join(json.dumps(run) + "\n" for run in RUNS),
        "suite/mend.yaml": "name: mend\nexpect: {max_total_cost_usd: 0.50}\nevaluate: {grounding_tokens: [done]}\n",
    }
    options = {"path": "runs.jsonl", "workloads": "suite"}


class TestWithoutASuite(SourceConformance):
    source = "workload/runs"
    files = {"runs.jsonl": json.dumps(RUNS[0])}
    options = {"path": "runs.jsonl"}
