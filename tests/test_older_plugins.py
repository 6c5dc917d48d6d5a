"""Plugins that are built from older commits of this repository run in the newest dicast, and pass the newest kit."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OLDER = {
    "heuristic": "8bead6388ab54fe535ce4c1b94de71f3f77502b6",
    "outcome": "ffd410f39d1dbd73b89de4824c3f233b0996fedd",
    "proxy": "2f475cd99c7353bc2e3479c102f5edc7cf17fbe0",
}
"""Commits by plugin. The oldest commits whose plugins use API 1 alone. A new API number gets a list of its own."""

CHECKS = """
from dicast.testing import JudgeConformance, MetricConformance, SourceConformance

class TestTurn(JudgeConformance):
    judge = "heuristic/turn"

class TestLength(MetricConformance):
    metric = "proxy/length"
    options = {"max": 20}

class TestLabels(SourceConformance):
    source = "outcome/labels"
    options = {"path": "labels.jsonl"}
    files = {"labels.jsonl": '{"id": "a", "session_id": "s", "input": {"tool": "read"}, "step_utility": 0.5, "tests_before": 3, "tests_after": 5, "was_repeated": false, "params_valid": true, "outcome_score": 0.9}'}
"""
ROWS = '{"id": "1", "output": "Ankara"}\n'

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the older plugins as wheels, and unpack them into one folder."""
    folder = tmp_path_factory.mktemp("older")
    git = shutil.which("git")
    for plugin, commit in OLDER.items():
        archive = [git, "-C", ROOT, "archive", commit, f"plugins/{plugin}"]
        done = subprocess.run(archive, check=False, capture_output=True) if git else None
        if done is None or done.returncode:
            pytest.skip(f"the history of this clone has no commit {commit[:12]}")
        with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
            tar.extractall(folder / "source", filter="data")
        build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder / "wheels"]
        subprocess.run(build, check=True, capture_output=True, cwd=folder / "source" / "plugins" / plugin)
    for wheel in (folder / "wheels").glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder / "site")
    return folder / "site"


@pytest.fixture
def older(site, tmp_path):
    """Return a function that runs Python with the older plugins, which shadow the plugins of this environment."""

    def run(*arguments):
        environment = {**os.environ, "PYTHONPATH": str(site)}
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment)

    return run


@pytest.mark.parametrize("plugin", OLDER)
def test_an_older_plugin_is_loaded_with_its_components(plugin, older, site):
    where = older("-c", f"import dicast_{plugin}; print(dicast_{plugin}.__file__)")
    assert Path(where.stdout.strip()).is_relative_to(site)
    listed = older("-m", "dicast", "plugins", plugin, "--json")
    (item,) = json.loads(listed.stdout)["plugins"]
    assert (item["status"], item["error"]) == ("ok", None)
    assert item["components"]


def test_older_plugins_run_in_a_pipeline(older, tmp_path):
    (tmp_path / "rows.jsonl").write_text(ROWS)
    (tmp_path / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [{proxy/length: {max: 20}}, proxy/format]\n"
    )
    done = older("-m", "dicast", "run", "p.yaml", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["scored"], document["score"]["mean"]) == (0, 1, 1.0)


def test_older_plugins_pass_the_newest_kit(older, tmp_path):
    (tmp_path / "test_older.py").write_text(CHECKS)
    done = older("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis", "test_older.py")
    assert done.returncode == 0, done.stdout
