"""A run killed at any moment and resumed comes to what an undisturbed run comes to. The benchmark does the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"
KILLS = 6


@pytest.mark.skipif(os.name != "posix", reason="kill -9 and wait4 are POSIX")
def test_a_killed_run_resumes_to_the_figures_of_an_undisturbed_one():
    command = [sys.executable, BENCHMARK, "kill", "--rows", "2000", "--kills", str(KILLS), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    found = json.loads(done.stdout)
    values = {figure["name"]: figure["value"] for figure in found["figures"]}
    assert found["wrong"] == []
    assert done.returncode == 0
    assert values["kill.equal_to_undisturbed"] == values["kill.draws"] >= KILLS
    assert values["kill.resumed"] >= 1
