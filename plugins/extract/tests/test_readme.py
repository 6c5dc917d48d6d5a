"""The README's example runs, and gives the figures that are written below it."""

from __future__ import annotations

import re
from pathlib import Path

from dicast.testing import run_pipeline

README = Path(__file__).parents[1] / "README.md"


def test_the_example_gives_the_figures_in_the_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = re.findall(r'^```\w+ title="([^"\n]+)"\n(.*?)^```$', README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for name, text in files:
        Path(name).write_text(text, encoding="utf-8")
    done = run_pipeline(dict(files)["verdicts.yaml"])
    assert done.exit_code == 0
    assert [event.payload["metrics"] for event in done.of("record.completed")] == [
        {"stated": {"default": 4}, "written": {"default": None}, "scores": {"default": 1}},
        {"stated": {"default": None}, "written": {"default": 2.5}, "scores": {"default": 0}},
    ]
