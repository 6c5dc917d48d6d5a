"""A run that is killed at any moment and resumed has the result of an undisturbed run, and pays for nothing twice. The benchmark does the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "kill.py"
KINDS = ("plain", "paid", "jury", "task", "suite", "watch", "workers")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_a_run_of_any_kind_that_is_killed_loses_nothing_and_buys_nothing_twice():
    command = [sys.executable, BENCHMARK, "--moments", str(len(KINDS)), "--seed", "1", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert done.returncode == 0
    assert [moment["kind"] for moment in found["moments"]] == list(KINDS)
    assert all(moment["kills"] == 1 for moment in found["moments"])
    assert sum(moment["repeated"] for moment in found["moments"]) > 0
