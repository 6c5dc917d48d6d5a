"""The examples of the README and of the page about sandboxes run, with the results that the pages show."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from boxes import needs_bubblewrap

from dicast.testing import run_pipeline
from dicast_sandbox.backends.profiles import Profile, limits

README = Path(__file__).parents[1] / "README.md"
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "sandboxes.md"
TITLED = re.compile(r'^```\w+ title="(.+?)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@needs_bubblewrap
def test_the_example_scores_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = dict(TITLED.findall(README.read_text(encoding="utf-8")))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    verdicts = {verdict.subject_id: verdict for verdict in run_pipeline(blocks["squares.yaml"]).verdicts}
    assert [verdicts[name].tier for name in ("right", "forged", "broken")] == ["truth", "truth", "proxy"]
    assert [verdicts[name].scores[-1]["value"] for name in ("right", "forged")] == [1.0, 0.0]


@pytest.mark.parametrize("profile", get_args(Profile))
def test_the_profiles_are_as_the_readme_says(profile):
    defaults = limits(profile)
    sizes = (defaults.file_size, defaults.disk, defaults.output)
    cells = [
        f"`{profile}`",
        defaults.cpus,
        size(defaults.memory),
        f"{defaults.wall:g} s",
        defaults.processes,
        *map(size, sizes),
    ]
    assert f"| {' | '.join(map(str, cells))} |\n" in README.read_text(encoding="utf-8")
    assert defaults.cpu == defaults.wall * defaults.cpus


def size(count: int) -> str:
    return f"{count // 1024**3} GB" if count >= 1024**3 else f"{count // 1024**2} MB"


@needs_bubblewrap
def test_a_benchmark_of_programs_comes_to_what_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text(encoding="utf-8")
    blocks = dict(TITLED.findall(page))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = run_pipeline(blocks["problems.yaml"])
    assert {verdict.subject_id: verdict.score for verdict in done.verdicts} == {
        "right": 1.0, "wrong": 0.0, "forged": 0.0, "broken": 0.0, "empty": 0.0,
    }  # fmt: skip
    assert not any(score["signals"].get("forgeable") for verdict in done.verdicts for score in verdict.scores)
    tests, spent = done.document["metrics"]["tests"], done.document["cost"]["msat"]
    summary = f"spent: {spent} msat\n  the gate spared {tests['spared']} runs of tests: {tests['saved']['msat']} msat\n"
    assert f"```text\n{summary}```" in page
