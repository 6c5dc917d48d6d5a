from __future__ import annotations

import json
from pathlib import Path

import pytest

from dicast import Subject
from dicast_workload import Runs

SUITE = """\
name: mend
suite_version: 1
turns:
  - prompt: Read it.
    expect: {min_tool_calls: 1, max_tool_calls: 3, contains_substring: Found, stop_reason: end_turn}
  - prompt: Mend it.
expect: {max_total_cost_usd: 0.50, min_llm_calls: 2, max_hard_failures: 0, min_delegate_calls: 1}
evaluate: {expect_substring_in_final_response: done}
"""


@pytest.fixture
def suite() -> str:
    """The YAML of a workload with every assertion there is."""
    return SUITE


@pytest.fixture
def written(tmp_path: Path):
    """Writes runs, and the YAML files of a suite by name; gives the source."""

    def write(*runs: dict, **files: str) -> Runs:
        (tmp_path / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs), encoding="utf-8")
        folder = tmp_path / "suite"
        for name, text in files.items():
            folder.mkdir(exist_ok=True)
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        return Runs(tmp_path / "runs.jsonl", folder if files else ())

    return write


@pytest.fixture
def read(written):
    """The subjects of runs."""

    def subjects(*runs: dict, **files: str) -> list[Subject]:
        return [due.subject for due in written(*runs, **files).subjects()]

    return subjects
