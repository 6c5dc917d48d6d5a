"""Workload runs from the file to the report: the source, the judges and the command together."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import ConfigError, DataError, Subject
from dicast.testing import FakeChatModel, run_pipeline

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

values = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, 0.5, -0.5, "", "x", "llm", "hybrid", "linear", "stepped", []])
)
texts = st.lists(st.sampled_from(["a", "", 1]), max_size=2)
credit = st.dictionaries(st.sampled_from(["enabled", "criterion", "map", "maps"]), values | st.just("test_pass_count_ratio"), max_size=3)  # fmt: skip
KEYS = ["rubric", "expect_substring_in_final_response", "llm_judge_model", "weight_per_turn", "grounding_tokens",
        "forbidden_grounding", "partial_credit", "rubrik"]  # fmt: skip
blocks = st.dictionaries(st.sampled_from(KEYS), values | texts | credit, max_size=4)


@pytest.mark.slow
@settings(max_examples=2 * settings.default.max_examples // 5, deadline=None)  # two runs
@given(blocks)
def test_source_and_judge_take_and_refuse_the_same_blocks(tmp_path_factory, block):
    folder = tmp_path_factory.mktemp("parity")
    (folder / "w.yaml").write_text(json.dumps({"name": "w", "evaluate": block}))
    (folder / "runs.jsonl").write_text('{"workload": "w", "run": 1, "output": "x"}')
    source = f"source: {{workload/runs: {{path: {folder}/runs.jsonl, workloads: {folder}/w.yaml}}}}"
    refused = False
    try:
        run_pipeline(f"{source}\njudges: [heuristic/workload]")
    except ConfigError:
        refused = True
    subject = Subject("workload", "w", output="x", context={"evaluate": block})
    done = run_pipeline("judges: [heuristic/workload]", subjects=[subject])
    assert done.document["failures"] == ({"rubric_invalid": 1} if refused else {})


@pytest.fixture
def example(tmp_path: Path):
    """Runs a command of dicast in a folder that has the examples."""
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DICAST_")}

    def run(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-m", "dicast", *command],
            cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=200, check=True,
        )  # fmt: skip
        return done.stdout

    return run


@pytest.mark.slow
def test_the_example_tells_the_models_apart_and_what_the_cheap_one_saved(example):
    example("run", "examples/workloads/pipeline.yaml")
    output = orjson.loads(example("workloads", "--json"))
    rows = {(row["workload"], row["model"]): row for row in output["data"]}
    assert {key: (row["quality"], row["noisy"], row["signal_strength"]) for key, row in rows.items()} == {
        ("count-words", "large-1"): ("0.96@0.80", False, "high"),
        ("count-words", "small-1"): ("0.44@0.80", True, "high"),
        ("explain-cache", "large-1"): ("1.00@0.80", False, "marginal"),
        ("explain-cache", "small-1"): ("0.88@0.80", True, "marginal"),
    }
    assert output["savings"] == {"successful_usd": "0.1050", "total_usd": "0.3100", "successful_runs": 9}
    assert output["provenance"]["mixed"] == {}
    message = example("workloads").splitlines()
    assert max(map(len, message[1:4])) <= 80
    assert message[-1] == "savings on successful work: $0.105 of $0.31 total"


def test_a_block_may_be_followed_by_a_model_beside_the_heuristic(tmp_path):
    (tmp_path / "w.yaml").write_text("name: w\nevaluate: {rubric: hybrid, grounding_tokens: [RoutingEngine]}")
    (tmp_path / "runs.jsonl").write_text('{"workload": "w", "run": 1, "output": "It is the router."}')
    seen = []

    def reply(request):
        text = "\n".join(message.content for message in request.messages)
        seen.append(text)
        seal = next(line for line in text.splitlines() if line.startswith("seal: ")).removeprefix("seal: ")
        return json.dumps({"seal": seal, "rationale": "paraphrased", "score": 0.9, "confidence": 0.8})

    pipeline = f"""
source: {{workload/runs: {{path: {tmp_path}/runs.jsonl, workloads: {tmp_path}/w.yaml}}}}
judges:
  - hybrid/cascade: {{stages: [heuristic/workload, {{llm/judge: {{model: grader}}}}], escalation_threshold: 0.9}}
"""
    done = run_pipeline(pipeline, components={"grader": FakeChatModel(reply)})
    (verdict,) = done.verdicts
    assert (verdict.score, verdict.judge_kind, verdict.rubric_id) == (0.9, "hybrid", "workload-hybrid-v1")
    assert "expected: RoutingEngine" in seen[0]


def test_wrong_runs_are_exit_code_2_and_nothing_is_judged(tmp_path):
    (tmp_path / "runs.jsonl").write_text('{"workload": "w"}\n')
    with pytest.raises(DataError, match=r"runs\.jsonl:1: null cannot be an id"):
        run_pipeline(f"source: {{workload/runs: {{path: {tmp_path}/runs.jsonl}}}}\njudges: [heuristic/workload]")
