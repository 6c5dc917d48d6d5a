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
    good, bad = run_pipeline(blocks["orders.yaml"]).verdicts
    assert good.scores[0]["value"] == 1.0
    assert bad.scores[0]["value"] == 0.0
    assert f"`{bad.scores[0]['details']}`" in page
    assert all(0.0 < verdict_.scores[1]["value"] < 1.0 for verdict_ in (good, bad))
