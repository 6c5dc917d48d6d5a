"""The README's example runs."""

from __future__ import annotations

import re
from pathlib import Path

from boxes import needs_bubblewrap

from dicast.testing import run_pipeline

README = Path(__file__).parents[1] / "README.md"
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
