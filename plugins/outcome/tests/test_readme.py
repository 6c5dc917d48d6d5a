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


def test_the_example_scores_9_tenths_and_its_labels_other_weights(blocks):
    first = run_pipeline(blocks["score.yaml"])
    again = run_pipeline(blocks["again.yaml"])
    assert [verdict.score for verdict in first.verdicts] == pytest.approx([0.9])
    # A quarter each: .75 utility, new, more tests, valid parameters.
    assert [verdict.score for verdict in again.verdicts] == pytest.approx([0.9375])
