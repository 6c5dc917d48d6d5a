"""The page for a first contribution works as it is written, in a copy of the repository."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "how-to" / "first-contribution.md"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNS = {
    "pytest": ["-m", "pytest", "-p", "no:cacheprovider"],
    "dicast": ["-m", "dicast"],
    "python": [],
    "ruff": ["-m", "ruff"],
}


@pytest.fixture
def copy(tmp_path):
    """Copy the repository's files that git keeps, with what is compiled of its packages, and return the folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("the repository is no git checkout")
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
            if name.endswith(".py") and Path(cache_from_source(ROOT / name)).is_file():
                compiled = Path(cache_from_source(tmp_path / name))
                compiled.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(cache_from_source(ROOT / name), compiled)
    return tmp_path


@pytest.mark.slow
def test_every_step_works(copy):
    sources = [copy / "framework", *copy.glob("plugins/*/src"), *copy.glob("contrib/*/src"), copy / "rubrics" / "src"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, sources))
    steps = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert {language for language, _, _ in steps} == {"python", "diff", "console"}
    for language, info, text in steps:
        if language == "python":
            (copy / re.search(r'title="([^"]+)"', info)[1]).write_text(text, encoding="utf-8")
        elif language == "diff":
            subprocess.run(["git", "apply", "-"], cwd=copy, input=text, text=True, check=True)
        else:
            for line in text.splitlines():
                words = shlex.split(line.removeprefix("$ uv run "))
                command = [sys.executable, *RUNS[words[0]], *words[1:]]
                done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
