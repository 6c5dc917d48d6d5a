"""A ledger does not depend on the order of sets: a process with another hash seed checks the ledger of every example."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

RUN = """
import sys
from dicast._kernel.cli import main
from dicast_ledger.format4 import writer

writer.LARGE = 1  # so that each append has compressed columns
sys.exit(max([main(["run", path, "--json"]) for path in sys.argv[1:]]))
"""


@pytest.mark.slow
def test_another_hash_seed_accepts_the_ledger_of_every_example(tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples", ignore=shutil.ignore_patterns("out", ".dicast"))
    pipelines = sorted((tmp_path / "examples").glob("*/*.yaml"))
    inherited = ("DICAST_", "PYTEST_", "PYTHONWARNINGS", "UV_ENV_FILE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(inherited)}

    def run(seed, *arguments):
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env={**environment, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("1", "-c", RUN, *pipelines)
    ledger = tmp_path / ".dicast" / "ledger.db"
    with closing(sqlite3.connect(ledger)) as connection:
        ((runs,),) = connection.execute("SELECT count(*) FROM runs")
        ((plain,),) = connection.execute("SELECT count(*) FROM blocks WHERE columns IS NULL")
    assert (runs, plain) == (len(pipelines), 0)
    assert json.loads(run("2", "-m", "dicast", "ledger", "verify", "--json"))["ok"] is True
