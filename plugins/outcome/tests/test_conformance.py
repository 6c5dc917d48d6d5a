"""The step score and its labels keep the contract."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dicast import Event
from dicast.testing import (
    GOLDEN,
    MemorySink,
    MetricConformance,
    SinkConformance,
    SourceConformance,
    run_pipeline,
    sample,
)

STEP = {"step_utility": 0.5, "was_repeated": False, "tests_before": 3, "tests_after": 5, "params_valid": True}
LINE = (
    '{"id": "a", "session_id": "s", "input": {"tool": "read"}, "step_utility": 0.5, "tests_before": 3, "tests_after": 5, '
    '"verification_delta": 2, "was_repeated": false, "params_valid": true, "outcome_score": 0.9, "model": "qwen"}\n'
)


class TestStepScore(MetricConformance):
    metric = "outcome/step_score"
    options = {
        "step_utility_weight": 0.25,
        "repetition_weight": 0.25,
        "verification_weight": 0.25,
        "schema_weight": 0.25,
        "field": "step",
    }
    subjects = (*GOLDEN, sample({"step": STEP}, id="step"))


class TestLabelFile(SourceConformance):
    source = "outcome/labels"
    files = {"labels.jsonl": LINE + "\n" + LINE.replace('"a"', '"b"')}
    options = {"path": "labels.jsonl", "kind": "step"}


class TestLabels(SinkConformance):
    sink = "outcome/labels"
    options = {"path": "out/labels.jsonl", "metric": "step", "include_input": True}

    @pytest.fixture
    def events(self) -> Sequence[Event]:
        """The events of a run that has the metric."""
        sink_ = MemorySink()
        text = "name: steps\nmetrics: [outcome/step_score: {as: step}]\nsinks: [memory]\n"
        steps = [sample(STEP if number % 2 else "no step", id=f"{number}") for number in range(20)]
        run_pipeline(text, subjects=steps, components={"memory": sink_})
        return tuple(sink_.events)
