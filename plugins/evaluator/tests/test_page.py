"""Evaluators shown in docs/how-to/evaluators.md, in each language."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "evaluators.md"
ROWS = [
    {"output": "Paris", "reference": "Paris", "input": "France"},
    {"output": "Rome", "reference": "Paris", "input": "Italy"},
]


@pytest.fixture
def files(tmp_path):
    """Return the folder with the page's files."""
    for title, text in re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL):
        (tmp_path / title).write_text(text)
    return tmp_path


@pytest.mark.parametrize("words", ["python3 evaluate.py", "bash evaluate.sh", "node evaluate.js", "./evaluate"])
def test_the_commands_of_the_page_score(judged, files, words):
    program = "cc" if words == "./evaluate" else words.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    if program == "cc":
        subprocess.run(["cc", "-o", files / "evaluate", files / "evaluate.c"], check=True)
    command = words.replace("python3", sys.executable)
    options = {"command": command, "cwd": str(files), "timeout": 60}
    assert judged({"evaluator/command": options}, *ROWS).values == [1.0, 0.0]


def test_the_worker_of_the_page_scores(judged, files):
    options = {"command": [sys.executable, "worker.py"], "cwd": str(files)}
    assert judged({"evaluator/worker": options}, *ROWS).values == [1.0, 0.0]


def test_the_server_of_the_page_scores(judged, files):
    command = [sys.executable, files / "server.py", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            port = server.stdout.readline().split()[-1]
            result = judged({"evaluator/http": {"url": f"http://127.0.0.1:{port}/"}}, *ROWS)
        finally:
            server.kill()
    assert result.values == [1.0, 0.0]
