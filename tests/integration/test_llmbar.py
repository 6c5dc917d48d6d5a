"""Recorded judges of LLMBar through the command line: calibrated on one half, deciding the other. The benchmark does the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"


def run(script, *arguments):
    folder = os.environ.get("DICAST_OUTSIDE_DATA", str(ROOT.parent / "shared" / "data"))
    if not Path(folder, "llmbar_natural.jsonl.gz").is_file():
        pytest.skip("DICAST_OUTSIDE_DATA does not name the folder that has llmbar_natural.jsonl.gz")
    command = [sys.executable, str(BENCHMARKS / script), *arguments, "--json"]
    environ = {**os.environ, "DICAST_OUTSIDE_DATA": folder}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.outside_data
def test_a_cascade_of_recorded_judges_is_calibrated_and_decides_the_other_half():
    """The plain prompt of each model with a list price, but the last stage's: laid down before any was run."""
    found = run("llmbar.py", "--judge", "ChatGPT/Vanilla", "--judge", "PaLM2/Vanilla")
    assert [one["judge"] for one in found["judges"]] == ["ChatGPT/Vanilla", "PaLM2/Vanilla"]
    for one in found["judges"]:
        assert one["refused"]  # a changed prompt
        assert one["n"] == 50
        assert (one["exit_code"], one["threshold"]) in ((0, 1.0), (3, None))
        if one["threshold"] is None:
            assert (one["kept"], one["usd"] > one["last_usd"]) == (0, True)
            continue
        assert one["labels_kept"] >= 15
        assert one["upper"] <= 0.2
        assert one["kept_agreement"] >= 0.7
        assert one["usd"] < one["last_usd"]


@pytest.mark.slow
@pytest.mark.outside_data
def test_the_table_of_decisions_has_every_recorded_judge():
    found = run("decisions.py")["judges"]
    assert len(found) == len({one["judge"] for one in found}) > 40
    for one in found:
        assert 0 <= one["kept"] <= 1
        assert (one["kept_agreement"] is None) == (one["kept"] == 0)
    best = next(one for one in found if one["judge"] == "GPT-4/Metrics_Reference")
    assert best["agreement"] == pytest.approx(0.94)
