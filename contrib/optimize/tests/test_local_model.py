"""A small real model proposes texts."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.slow


def test_a_local_model_s_proposals_are_evaluated_and_resumed(folder, evaluator, model_file):
    folder.data(dataset=("alpha",), test=("beta", "gamma"))
    model = {"llamacpp/chat": {"path": str(model_file), "threads": 1, "context": 2048}}
    spec = folder.spec(
        optimization={"budget": 4, "run_dir": "run", "early_stop": False, "objective": "Use the word alpha."},
        model={"reflection": model, "max_output_tokens": 40, "timeout": 300},
    )
    code, report = folder.dicast(spec)
    assert code == 0, report
    assert report["reflections"] >= 1
    assert report["calls"] <= 4
    assert report["cost"]["usd"] == "0"
    lines = [json.loads(line) for line in (folder.path / "run" / "journal.jsonl").read_text().splitlines()]
    assert sum(line.get("what") == "reflection" for line in lines) == report["reflections"]
    again = folder.dicast(spec, "--resume")[1]
    assert (again["best"], again["reflections"]) == (report["best"], report["reflections"])
