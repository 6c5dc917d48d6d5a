"""The README's example runs."""

from __future__ import annotations

import re
from pathlib import Path

from dicast.testing import run_pipeline

README = Path(__file__).parents[1] / "README.md"
TITLED = re.compile(r'^```\w+ title="(.+?)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def test_the_example_scores_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = README.read_text(encoding="utf-8")
    blocks = dict(TITLED.findall(page))
    for name, text in blocks.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    good, bad = run_pipeline(blocks["form.yaml"]).verdicts
    assert [score["value"] for score in good.scores] == [1.0] * 5
    assert [score["value"] for score in bad.scores] == [1.0, 0.0, 1.0, 0.0, 0.0]
    for score in bad.scores[3:]:
        assert f"`{score['details']}`" in page


def test_the_example_of_tool_calls_scores_as_the_page_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = README.read_text(encoding="utf-8")
    blocks = dict(TITLED.findall(page))
    (tmp_path / "calls.jsonl").write_text(blocks["calls.jsonl"], encoding="utf-8")
    verdicts = run_pipeline(blocks["calls.yaml"]).verdicts
    scores = [verdict.scores for verdict in sorted(verdicts, key=lambda verdict_: verdict_.subject_id)]
    assert [[score["value"] for score in row] for row in scores] == [[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    for score in (scores[1][1], scores[2][0]):
        assert f"`{score['details']}`" in page
