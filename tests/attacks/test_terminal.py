"""What others wrote, printed by every command: nothing of it steers the terminal, and no line of it passes for one of ours."""

from __future__ import annotations

import json
import re

import pytest

from dicast._kernel.cli import main

STEERING = "\x1b]0;title\x07\x1b[2J\x9b31m\r\x08\u202e\u2066\u200b\u2028\x85"
FORGED = "gate: passed"
HOSTILE = f"x{STEERING}\n{FORGED}\n0.9999"
NOT_PRINTED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]"
)

PIPELINE = f"""\
name: {json.dumps(HOSTILE)}
source: {{rows/jsonl: {{path: rows.jsonl}}}}
metrics: [{{proxy/keywords: {{as: {json.dumps("m" + HOSTILE)}, required: [{json.dumps("w" + HOSTILE)}]}}}}, diff/match]
gate: {{min_score: 1.0, min_coverage: 0}}
ledger: {{ledger/sqlite: {{path: l.db}}}}
"""
COMMANDS = [
    ["run", "p.yaml"],
    ["run", "p.yaml", "--head", "2"],
    ["check", "p.yaml"],
    ["check", "wrong.yaml"],
    ["run", "wrong.yaml", "--traceback"],
    ["show", "last", "--ledger", "l.db"],
    ["show", f"id{HOSTILE}", "--ledger", "l.db"],
    ["show", HOSTILE, "--ledger", "l.db"],
    ["verdicts", "--ledger", "l.db"],
    ["verdicts", "--failed", "--ledger", "l.db"],
    ["ledger", "verify", "--ledger", "l.db"],
    ["cost", "--ledger", "l.db"],
    ["quality", "--ledger", "l.db", "--group-by", "judge_kind"],
    ["agreement", HOSTILE, "--ledger", "l.db"],
    ["evaluate", "--ledger", "l.db", "--subject", "row", "--judge", HOSTILE],
    ["priority", "modules.jsonl"],
    ["cache", f"{HOSTILE}.db"],
    ["plugins"],
    [HOSTILE],
    ["run", f"{HOSTILE}.yaml"],
]


@pytest.fixture
def hostile(tmp_path, monkeypatch, capfd):
    rows = [
        {"id": f"id{HOSTILE}", "output": HOSTILE, "reference": "y"},
        {"id": f"none{HOSTILE}", "output": HOSTILE},
        {"id": "long" * 5_000, "output": "a", "reference": "b"},
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "modules.jsonl").write_text(json.dumps({"id": HOSTILE, "failure_rate": 0.5}) + "\n")
    (tmp_path / "p.yaml").write_text(PIPELINE, encoding="utf-8")
    wrong = f"{json.dumps(HOSTILE)}: 1\n{PIPELINE}scoring: {{{json.dumps(HOSTILE)}: 2}}\n"
    (tmp_path / "wrong.yaml").write_text(wrong, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["run", "p.yaml"]) in (1, 3)
    capfd.readouterr()
    return capfd


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: " ".join(command)[:20].encode("ascii", "ignore").decode()
)
def test_what_others_wrote_neither_steers_the_terminal_nor_forges_a_line(hostile, command):
    assert main(command) != 70
    out, err = hostile.readouterr()
    printed = out + err
    assert printed
    assert NOT_PRINTED.findall(printed) == []
    assert not any(line.startswith((FORGED, "0.9999")) for line in printed.splitlines())
    assert len(max(printed.splitlines(), key=len)) < 5_000


def test_a_document_holds_what_others_wrote_as_it_is(hostile):
    main(["run", "p.yaml", "--json"])
    document = json.loads(hostile.readouterr().out)
    assert document["name"] == HOSTILE
    assert {one["subject_id"] for one in document["worst"]} >= {f"id{HOSTILE}"}
    main(["priority", "modules.jsonl", "--json"])
    assert json.loads(hostile.readouterr().out)["data"][0]["id"] == HOSTILE
