"""Plain gepa, with a dicast pipeline behind HTTP as its evaluator."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

PIPELINE = """
metrics: [{proxy/keywords: {required: [alpha, beta, gamma]}}]
scoring: {threshold: 0}
"""


@contextmanager
def served(folder):
    (folder / "pipeline.yaml").write_text(PIPELINE)
    command = [sys.executable, "-m", "dicast", "evaluator", "serve", "pipeline.yaml", "--port", "0"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        yield re.search(r"http://\S+", process.stderr.readline())[0]
    finally:
        process.terminate()
        process.communicate(timeout=200)


@pytest.fixture
def ask(tmp_path):
    with served(tmp_path) as url:

        def evaluate_remotely(candidate, example):
            payload = {"_protocol_version": 2, "candidate": candidate, "example": example}
            request = urllib.request.Request(url, json.dumps(payload).encode())
            with urllib.request.urlopen(request) as reply:
                return json.loads(reply.read())

        yield evaluate_remotely


def test_gepa_improves_a_text_by_the_scores_of_a_served_pipeline(ask):
    from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything

    words = iter(["alpha", "alpha beta", "alpha beta gamma"])

    def evaluate(candidate, example):
        reply = ask(candidate if isinstance(candidate, str) else candidate["text"], example)
        return reply.pop("score"), reply

    engine = EngineConfig(max_metric_calls=40, raise_on_exception=True, parallel=False)
    reflection = ReflectionConfig(reflection_lm=lambda prompt: f"```\n{next(words)}\n```")
    result = optimize_anything(
        seed_candidate={"text": "nothing"},
        evaluator=evaluate,
        dataset=[{"n": 1}, {"n": 2}],
        config=GEPAConfig(engine=engine, reflection=reflection),
    )
    assert result.best_candidate["text"] == "alpha beta gamma"
    assert result.val_aggregate_scores[result.best_idx] == 1.0
