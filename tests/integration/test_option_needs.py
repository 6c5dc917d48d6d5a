"""Options of commands that have no effect without another option."""

from __future__ import annotations

import pytest

CASES = [
    (["agreement", "--any-output"], "--any-output needs --gold: add it, or remove --any-output"),
    (
        [
            "autoresearch",
            "init",
            "--primary",
            "x",
            "--direction",
            "higher",
            "--command",
            "true",
            "--scope",
            "a.py",
            "--min-confidence",
            "2",
        ],
        "--min-confidence needs --noise",
    ),
    (["bridge", "r1", "r2", "--any-output"], "--any-output needs --gold"),
    (["cache", "c.db", "--against", "abc"], "--against needs --explain-key"),
    (["calibrate", "p.yaml", "--gold", "g.jsonl", "--window", "0.2"], "--window needs --agree"),
    (["calibrate", "p.yaml", "--gold", "g.jsonl", "--features", "mood"], "--features needs --signals"),
    (["ci", "p.yaml", "--against", "last"], "--against needs --comment: add it, or remove --against"),
    (["ci", "p.yaml", "--report-url", "https://example.com"], "--report-url needs --comment"),
    (["import", "data", "--by", "model"], "--by needs --sample"),
    (["label", "p.yaml", "--target", "0.9"], "--target needs --until-calibrated"),
    (["plan", "p.yaml", "--alpha", "0.1"], "--alpha needs --labels"),
    (["run", "p.yaml", "--primary", "a"], "--primary needs --metric-lines"),
    (["run", "p.yaml", "--retry-failed"], "--retry-failed needs --resume"),
    (
        ["watch", "p.yaml", "--token-env", "TOKEN"],
        "--token-env needs --listen or --otlp: add one of them, or remove --token-env",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "message"),
    CASES,
    ids=lambda value: None if isinstance(value, str) else " ".join(value[:1] + value[-2:]),
)
def test_an_option_without_effect_is_refused_before_anything_is_read(shop, arguments, message):
    done = shop.dicast(*arguments)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert [path.name for path in shop.folder.iterdir()] == []
