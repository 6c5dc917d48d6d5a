"""The manifests of the page about Kubernetes: their schema, and their commands on a server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "kubernetes.md"
URL = "postgresql://dicast@postgres/evals"


@pytest.fixture(scope="module")
def manifests():
    blocks = re.findall(
        r'^```yaml title="(.+?)"\n(.*?)^```$', PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    return {name: yaml.safe_load(text) for name, text in blocks}


@pytest.fixture
def folder(tmp_path):
    rows = ({"id": str(number), "input": "?", "output": "x" * (number % 3)} for number in range(10))
    (tmp_path / "capitals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "capitals.yaml").write_text(
        "source: {rows/jsonl: {path: capitals.jsonl}}\nmetrics: [check/contains: {value: x}]\ngate: {min_pass_rate: 0.5}\n"
    )
    return tmp_path


def container(manifest):
    return manifest["spec"]["template"]["spec"]["containers"][0]


def run_container(manifest, server, folder, **environment):
    """Run the command of *manifest* in *folder*, with *server* in place of the server of the page."""
    settings = container(manifest)
    words = [word.replace(URL, server.url) for word in [*settings["command"], *settings["args"]]]
    variables = {item["name"]: item["value"].replace(URL, server.url) for item in settings["env"] if "value" in item}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **variables, **environment, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_manifests_are_valid(manifests):
    validate = pytest.importorskip("kubernetes_validate").validate
    assert list(manifests) == ["evals.yaml", "evals-merge.yaml"]
    for manifest in manifests.values():
        validate(manifest, "1.33", strict=True)


@pytest.mark.slow
def test_the_jobs_judge_all_shards_and_merge_them(manifests, server, folder):
    judge, merge = manifests.values()
    for index in range(judge["spec"]["completions"]):
        shard = run_container(judge, server, folder, JOB_COMPLETION_INDEX=str(index))
        assert shard.returncode == 0, shard.stderr
    merged = run_container(merge, server, folder)
    assert merged.returncode == 0, merged.stderr
    assert "passed" in merged.stdout


@pytest.mark.slow
def test_a_fault_of_the_file_ends_the_index_with_2(manifests, server, folder):
    (folder / "capitals.jsonl").unlink()
    shard = run_container(manifests["evals.yaml"], server, folder, JOB_COMPLETION_INDEX="0")
    assert shard.returncode == 2
    assert "capitals.jsonl" in shard.stderr
