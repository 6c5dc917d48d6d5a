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


def killed(kinds, seed):
    """Return the moments of *kinds*, one each; skip the test where a server cannot start."""
    command = [sys.executable, BENCHMARK, "--kinds", ",".join(kinds), "--moments", str(len(kinds))]
    options = ["--seed", str(seed), "--jobs", "1", "--minutes", "5", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    results = json.loads(done.stdout)
    assert results["wrong"] == []
    assert [moment["kind"] for moment in results["moments"]] == list(kinds)
    return results["moments"]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
@pytest.mark.parametrize(
    ("kinds", "seed"),
    [
        (("segments", "segments-cap"), 3),
        (("s3", "s3-cap"), 4),
        (("postgres", "postgres-cap"), 3),
    ],
)
def test_a_run_past_one_machine_that_is_killed_loses_nothing_and_buys_nothing_twice(kinds, seed):
    if "s3" in kinds:
        pytest.importorskip("moto")
    if "postgres" in kinds and not [*Path("/usr/lib/postgresql").glob("*/bin/initdb")]:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    assert all(moment["kills"] == 1 for moment in killed(kinds, seed))
