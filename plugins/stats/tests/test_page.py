"""The page about statistics shows the output of its commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import dicast
from dicast_stats.compare.command import compare

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "statistics.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?[^\n]*\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_page_shows_what_is_printed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    for _, title, text in blocks:
        if title:
            Path(title).write_text(text, encoding="utf-8")
    dicast.run(Path("plain.yaml"))
    dicast.run(Path("warm.yaml"))
    printed = CliRunner().invoke(compare, ["plain", "warm", "--full"], catch_exceptions=False).output
    page_text, flips, sentence, refusal = (text for language, _, text in blocks if language == "text")
    assert page_text.strip() in printed
    assert flips.strip() in printed
    assert CliRunner().invoke(compare, ["plain", "warm"], catch_exceptions=False).output.startswith(sentence)
    stopped = dicast.run(Path("enough.yaml")).stopped
    assert (stopped["reason"], stopped["plugin"]) == ("early_stop", "stats/threshold")
    dicast.run(Path("plain.yaml"), overrides={"name": "strict", "extractors": ["score_extractor/scores"]})
    with pytest.raises(dicast.ConfigError) as refused:
        CliRunner().invoke(compare, ["plain", "strict"], catch_exceptions=False)
    message = re.sub("01[0-9A-Z]{24}", "01K…", str(refused.value))
    assert message == " ".join(refusal.split())
