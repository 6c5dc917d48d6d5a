"""Traces that the real MLflow writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicast.testing import run_pipeline
from dicast_exports import MLflow

pytestmark = pytest.mark.slow

PACKAGES = ("mlflow-skinny==3.17.2", "sqlalchemy", "alembic")
SCRIPT = Path(__file__).parent / "write_traces.py"


@pytest.fixture(scope="module")
def traces(run_with):
    return run_with(SCRIPT, packages=PACKAGES, module="mlflow, sqlalchemy, alembic") / "traces.jsonl"


def test_traces_are_rows_with_their_feedback_and_expectation(traces, read):
    rows = read(MLflow, traces)
    answered, failed = rows.dues
    subject = answered.subject
    assert (subject.input, subject.output, subject.reference) == ("Rome", "It is 22C.", "22C")
    assert (subject.session_id, subject.context["name"], subject.context["tags"]) == (
        "talk",
        "assistant",
        {"team": "x"},
    )
    assert rows.scores(subject.id) == {"correct": (1.0, "human"), "tone": (0.5, "model")}
    assert "no such city" in rows.failures[failed.subject.id]
    assert (rows.counts.records, rows.counts.failed, rows.counts.marked) == (2, 1, {})


def test_traces_are_judged(traces, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = json.dumps({"exports/mlflow": {"path": str(traces)}})
    run = run_pipeline(f"source: {source}\nmetrics: [{{check/contains: {{value: '{{{{ reference }}}}'}}}}]\n")
    assert (run.document["score"]["mean"], run.document["coverage"]) == (1.0, 0.5)
