"""The sample output in README.md equals the output of the command that it shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = (
    (re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b"), "RUN"),
    (re.compile(r"(?<=--run )[0-9A-Z]{6}\b|(?<=show )[0-9A-Z]{6}(?= --full)"), "RUN"),
)


def masked(text):
    """Return *text* without run ids and trailing blanks."""
    for pattern, name in VARIABLE:
        text = pattern.sub(name, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_sample_summary_is_what_dicast_run_prints(tmp_path):
    (sample,) = re.findall(
        r"^```text\n(gate: .*?)^```", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    shutil.copytree(ROOT / "examples" / "qa-rows", tmp_path / "examples" / "qa-rows")
    command = [sys.executable, "-m", "dicast", "run", "examples/qa-rows/pipeline.yaml"]
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert masked(done.stdout) == masked(sample)
