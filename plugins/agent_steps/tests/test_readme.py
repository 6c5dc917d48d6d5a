"""The README's example runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dicast.testing import run_pipeline

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def blocks(tmp_path, monkeypatch) -> dict[str, str]:
    """The README's titled blocks, which are files of the current directory too."""
    monkeypatch.chdir(tmp_path)
    matches = re.findall(
        r'^```\w+ title="(.+?)"\n(.*?)^```$', README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    for name, text in matches:
        (tmp_path / name).write_text(text, encoding="utf-8")
    return dict(matches)


def test_the_example_scores_as_the_page_says(blocks):
    (verdict,) = run_pipeline(blocks["form.yaml"]).verdicts
    assert [score["value"] for score in verdict.scores] == pytest.approx([0.75, 1])
    assert str(verdict.scores[0]["details"]).startswith("subtasks.0.target is 'the parser', not a path")
