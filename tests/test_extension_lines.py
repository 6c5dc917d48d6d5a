"""The table that compares the lines of an extension with other tools is the table that its script counts."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "extension" / "count.py"


def count(*arguments):
    done = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_the_counted_table():
    page = (ROOT / "docs" / "how-to" / "plugins.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| tool \| metric \| sink \|\n(?:\|.*\n)+", page, re.MULTILINE)
    assert table == count()


@pytest.mark.slow
def test_the_extensions_of_dicast_and_pytest_score_as_expected():
    lines = count("--run").splitlines()
    assert {"dicast: [1.0, 0.0]", "pytest: [1.0, 0.0]"} <= set(lines)
