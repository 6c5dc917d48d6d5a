"""A run killed while it pays for replies buys none of them again, and forgets none that it may have paid for. The benchmark does the work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).resolve().parents[2] / "benchmarks" / "run.py"
KILLS, ROWS, AT_ONCE = 4, 80, 8


@pytest.mark.skipif(os.name != "posix", reason="kill -9 and wait4 are POSIX")
def test_a_killed_run_pays_once_for_each_reply_but_those_under_way():
    command = [sys.executable, BENCHMARK, "kill-paid", "--rows", str(ROWS), "--kills", str(KILLS), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    found = json.loads(done.stdout)
    values = {figure["name"]: figure["value"] for figure in found["figures"]}
    assert found["wrong"] == []
    assert done.returncode == 0
    assert values["kill_paid.kills"] >= KILLS
    assert values["kill_paid.bought_again"] == 0
    assert 0 < values["kill_paid.calls_repeated"] <= AT_ONCE
    assert values["kill_paid.spend_lost_mean"] > 0
