"""The sources keep the contract."""

from __future__ import annotations

import json

from dicast.testing import SourceConformance

from . import examples


def lines(records) -> str:
    """Return records as JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


class TestPromptfoo(SourceConformance):
    source = "exports/promptfoo"
    files = {"results.json": json.dumps(examples.PROMPTFOO)}
    options = {"path": "results.json"}


class TestLmEval(SourceConformance):
    source = "exports/lm_eval"
    files = {"samples_x.jsonl": lines(examples.SAMPLES)}
    options = {"path": "samples_x.jsonl"}


class TestOpenAIBatch(SourceConformance):
    source = "exports/openai_batch"
    files = {"output.jsonl": lines(examples.BATCH), "input.jsonl": lines(examples.REQUESTS)}
    options = {"path": "output.jsonl"}


class TestLangfuse(SourceConformance):
    source = "exports/langfuse"
    files = {"traces.jsonl": lines(examples.TRACES), "scores.jsonl": lines(examples.SCORES)}
    options = {"path": "traces.jsonl"}


class TestLangSmith(SourceConformance):
    source = "exports/langsmith"
    files = {"runs.jsonl": lines(examples.RUNS)}
    options = {"path": "runs.jsonl"}


class TestMLflow(SourceConformance):
    source = "exports/mlflow"
    files = {"traces.jsonl": lines([examples.TRACE, examples.FAILED_TRACE])}
    options = {"path": "traces.jsonl"}


class TestHelm(SourceConformance):
    source = "exports/helm"
    files = {
        "scenario_state.json": json.dumps(examples.STATE),
        "per_instance_stats.json": json.dumps(examples.STATISTICS),
    }
    options = {"path": "scenario_state.json"}
