"""The README's example runs, but for its model: that one is given here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dicast import Reply
from dicast.testing import FakeChatModel, run_pipeline

README = Path(__file__).parents[1] / "README.md"


def test_the_example_is_built_and_judges(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = README.read_text(encoding="utf-8")
    blocks = dict(re.findall(r'^```\w+ title="(.+?)"\n(.*?)^```$', text, re.MULTILINE | re.DOTALL))
    (tmp_path / "answers.jsonl").write_text(blocks["answers.jsonl"], encoding="utf-8")
    pipeline = re.sub(r"(?s)define:.*?(?=source:)", "", blocks["answers.yaml"])

    def reply(request):
        (seal,) = re.findall(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)
        return Reply(f'{{"seal": "{seal}", "rationale": "So.", "score": 0.5, "confidence": 1}}', "fake")

    (verdict,) = run_pipeline(pipeline, components={"grader": FakeChatModel(reply)}).verdicts
    assert verdict.score == pytest.approx((3 + 2 * 0.5 + 2 * 1) / 7)
