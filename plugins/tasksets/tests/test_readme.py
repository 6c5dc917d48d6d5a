"""The README's example runs."""

from __future__ import annotations

import re
from pathlib import Path

from dicast.testing import run_pipeline

README = Path(__file__).parents[1] / "README.md"


def test_the_example_scores_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    blocks = dict(re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))
    for name, content in blocks.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (verdict,) = run_pipeline(blocks["pipeline.yaml"]).verdicts
    assert (verdict.subject_id, verdict.score) == ("refund", 1.0)
    assert set(verdict.scores[0]["signals"]) == {
        "fields.label.value",
        "fields.confidence.type",
        "fields.confidence.min",
        "fields.confidence.max",
        "forbidden[0]",
    }
