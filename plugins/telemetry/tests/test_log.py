from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest

from dicast import Event
from dicast_telemetry import Log


def event(type, payload, id=None) -> Event:
    return Event("01", type, "2026-01-02T03:04:05.678Z", "r1", payload, None, None, "row" if id else None, id)


VERDICT = {
    "eval_id": "E1",
    "judge": "metrics",
    "score": 0.5,
    "fingerprint": "f1",
    "signals": {"rationale_redacted": "secret"},
}


def test_a_line_is_the_type_and_a_json_object(caplog):
    caplog.set_level("DEBUG", "dicast")
    assert Log().write([event("eval.completed", VERDICT, "q1")]) == 1
    [record] = caplog.records
    assert (record.name, record.levelname) == ("dicast", "INFO")
    type_, _, text = record.getMessage().partition(" ")
    assert type_ == "eval.completed"
    assert json.loads(text) == record.dicast == {
        "time": "2026-01-02T03:04:05.678Z", "run_id": "r1", "subject_kind": "row", "subject_id": "q1",
        "eval_id": "E1", "judge": "metrics", "score": 0.5, "fingerprint": "f1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("level", "configured_level", "failures"), [("debug", "DEBUG", "WARNING"), ("error", "ERROR", "ERROR")]
)
def test_failures_are_warnings_at_least(caplog, level, configured_level, failures):
    caplog.set_level("DEBUG", "dicast")
    Log(level).write(
        [event("run.started", {"name": "x"}), event("eval.failed", {"judge": "m", "failure_mode": "timeout"}, "q")]
    )
    assert [record.levelname for record in caplog.records] == [configured_level, failures]


def test_no_text_is_logged(caplog):
    caplog.set_level("DEBUG", "dicast")
    record = {"row": {"input": "secret"}, "response": {"content": "secret"}, "metrics": {"score": 1}}
    failed = {"judge": "m", "failure_mode": "crashed", "error_message": "secret"}
    Log().write([event("record.completed", record, "q"), event("eval.failed", failed, "q"), event("eval.completed", VERDICT, "q"),
                 event("record.failed", {"row": {"input": "secret"}, "error": "secret", "failure_mode": "crashed"}, "q")])  # fmt: skip
    assert len(caplog.records) == 4
    assert "secret" not in caplog.text


def test_a_lone_surrogate_loses_no_line(caplog):
    caplog.set_level("DEBUG", "dicast")
    Log().write([event("record.completed", {"metrics": {}}, "\ud800")])
    assert "\\ud800" in caplog.text


@pytest.mark.slow
def test_on_the_command_line_the_lines_go_to_stderr(tmp_path):
    (tmp_path / "in.jsonl").write_text('{"id": "1", "output": "Ankara"}\n')
    (tmp_path / "run.yaml").write_text(
        "source: {rows/jsonl: {path: in.jsonl}}\nmetrics: [proxy/format]\nsinks: [telemetry/log]\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "dicast", "run", "run.yaml"], check=False, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0
    types = [line.split("dicast ", 1)[1].split(" ")[0] for line in done.stderr.splitlines() if " INFO " in line]
    assert types == ["run.started", "eval.completed", "run.completed"]
    assert logging.getLogger("dicast").handlers == []
