"""A disk that is full at any write of an output file: the older good file stays, the message names the file, and the next try is whole."""

from __future__ import annotations

import json
import re

import pytest

PIPELINE = "source: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [diff/match]\nledger: {{ledger/sqlite: {{path: ledger.db}}}}\n{more}"
SINKS = {
    "csv": "csv/rows: {path: disk/out, overwrite: true}",
    "parquet": "parquet/rows: {path: disk/out, overwrite: true}",
    "events": "jsonl/events: {path: disk/out}",
    "junit": "junit/xml: {path: disk/out}",
    "markdown": "report/markdown: {path: disk/out}",
    "page": "report/html: {path: disk/out}",
    "rows": "jsonl/rows: {path: disk/out}",
    "badge": "report/badge: {path: disk/out, on: diff/match}",
    "summary": "github/summary: {path: disk/out, rows: 1000, content: true}",
    "annotations": "github/summary: {path: summary, annotations_path: disk/out}",
}
MORE = {"rows": "extractors: [extract/label: {labels: {a: 1, b: 0}, into: x}]\n"}
COMMANDS = {
    "report": ["report", "--out", "disk/out"],
    "baseline": ["baseline", "save", "b", "--file", "disk/out"],
    "labels": ["labels", "export", "--out", "disk/out"],
    "export": ["export", "--overwrite", "--to", "jsonl", "--out", "disk/out"],
    "init": ["init", "rows.jsonl", "--out", "disk/new.yaml"],
    "calibration": ["calibrate", "cascade.yaml", "--gold", "gold.jsonl", "--ledger", "ledger.db", "--out", "disk/out"],
    "card": [
        "doctor",
        "cascade.yaml",
        "--no-ask",
        "--gold",
        "gold.jsonl",
        "--ledger",
        "ledger.db",
        "--out",
        "disk/out",
    ],
}
CASCADE = """
source: {rows/jsonl: {path: rows.jsonl}}
judges:
  - hybrid/cascade:
      as: both
      ask_all: true
      stages:
        - evaluator/judge: {objective: "Is it right?", model: MODEL}
        - evaluator/judge: {objective: "Is it really right?", model: MODEL}
ledger: {ledger/sqlite: {path: ledger.db}}
"""


def write_until_there_is_room(disk, tmp_path, words, codes):
    """Run *words* with more room each time until it succeeds; return how often it failed before."""
    place = tmp_path / words[-1] if words[0] != "run" else tmp_path / "disk/out"
    is_new, good = place.name == "new.yaml", 0
    if not is_new:
        good, said = disk.dicast(*words)
        assert good in {0, 1, 3}, said
        old = place.read_bytes()
    for failed in range(disk.room // disk.step):
        if not is_new:
            place.write_bytes(old)
        disk(failed * disk.step)
        code, said = disk.dicast(*words)
        disk(disk.room)
        if code == good:
            assert place.stat().st_size > 100
            break
        assert code in codes, said
        assert re.search(r"\bdisk\b", re.sub(r"\n\s+", "", said)), (
            said
        )  # the file, or the folder of a file without a name
        assert "No space left on device" in said, said
        assert not place.exists() if is_new else place.read_bytes() == old, (code, said)
        left = [path.name for path in place.parent.iterdir() if path != place and not path.name.startswith(".")]
        assert left == [], said
    assert code == good
    return failed


def judge_a_cascade(disk, tmp_path, chat_server):
    """Judge 40 rows by two judges, and write their labels."""
    model = {"openai/chat": {"base_url": chat_server.url, "model": "m", "price": "free"}}
    (tmp_path / "cascade.yaml").write_text(CASCADE.replace("MODEL", json.dumps(model)))
    gold = [{"subject_kind": "row", "subject_id": str(n), "label": float(n % 3 > 0)} for n in range(40)]
    (tmp_path / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in gold))
    code, said = disk.dicast("run", "cascade.yaml")
    assert code == 0, said


def quickly(names, quick):
    """Return *names* as parameters; all but *quick* are slow."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", quickly(SINKS, ("badge", "annotations")))
def test_a_sink_on_a_full_disk_leaves_the_older_file(disk, tmp_path, name):
    (tmp_path / "p.yaml").write_text(PIPELINE.format(more=f"sinks: [{SINKS[name]}]\n{MORE.get(name, '')}"))
    assert write_until_there_is_room(disk, tmp_path, ["run", "p.yaml"], {4}) > 0
    assert disk.dicast("ledger", "verify", "--ledger", "ledger.db")[0] == 0


@pytest.mark.parametrize("name", quickly(COMMANDS, ("baseline", "labels", "init")))
def test_a_command_on_a_full_disk_leaves_the_older_file(disk, tmp_path, chat_server, name):
    (tmp_path / "p.yaml").write_text(PIPELINE.format(more=""))
    assert disk.dicast("run", "p.yaml")[0] == 0
    (tmp_path / ".dicast").mkdir(exist_ok=True)
    (tmp_path / "ledger.db").rename(tmp_path / ".dicast/ledger.db")
    lines = [
        json.dumps({"subject_kind": "row", "subject_id": str(n), "label": 1.0, "labeller": "u"}) for n in range(40)
    ]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    assert disk.dicast("labels", "import", "labels.jsonl")[0] == 0
    if "cascade.yaml" in COMMANDS[name]:
        judge_a_cascade(disk, tmp_path, chat_server)
    assert write_until_there_is_room(disk, tmp_path, COMMANDS[name], {2, 4}) > 0
