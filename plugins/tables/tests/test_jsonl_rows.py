from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event, RunContext
from dicast_tables.jsonl import Rows

RECORD = {
    "row": {"id": "q1", "input": "2+2?"},
    "response": {"content": "4", "metrics": {"cost": Decimal("0.0001")}},
    "metrics": {"score": 4, "scores": {"tone": 0.5}},
    "security_level": "official",
}


def event(type, payload, id=None, session=None) -> Event:
    return Event("01", type, "2026-01-02T03:04:05.678Z", "r1", payload, session, None, "row" if id else None, id)


STARTED = event("run.started", {})


def write(folder: Path, *events: Event) -> list[dict]:
    async def run() -> int:
        async with Rows("rows.jsonl").open(RunContext("r1", "test", folder)) as live:
            written = live.write(events)
            assert not (folder / "rows.jsonl").exists()
            return written + live.close() + live.close()

    written = asyncio.run(run())
    lines = (folder / "rows.jsonl").read_bytes().splitlines()
    assert written == len(lines)
    return [json.loads(line) for line in lines]


def test_a_record_a_line_with_its_subject(tmp_path):
    [line] = write(tmp_path, STARTED, event("record.completed", RECORD, "q1", "s1"))
    assert list(line) == ["subject_kind", "subject_id", "session_id", *RECORD]
    assert (line["subject_kind"], line["subject_id"], line["session_id"]) == ("row", "q1", "s1")
    assert line["metrics"] == RECORD["metrics"]
    assert line["security_level"] == "official"
    assert line["response"]["metrics"]["cost"] == "0.0001"


def test_a_run_that_breaks_off_leaves_the_older_file(tmp_path):
    records = [event("record.completed", RECORD, id) for id in ("q1", "q2")]
    older = write(tmp_path, STARTED, *records)

    async def run() -> None:
        async with Rows("rows.jsonl").open(RunContext("r1", "test", tmp_path)) as live:
            live.write([STARTED, records[0]])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(run())
    (left,) = tmp_path.iterdir()
    assert [json.loads(line) for line in left.read_text().splitlines()] == older


def test_a_failed_task_has_its_row_and_why(tmp_path):
    failed = {
        "row": {"id": "q1"},
        "error": "late",
        "timestamp": "t",
        "failure_mode": "timeout",
        "retry": {"attempts": 2},
    }
    assert write(tmp_path, STARTED, event("record.failed", failed, "q1")) == [
        {
            "subject_kind": "row",
            "subject_id": "q1",
            "session_id": None,
            "row": {"id": "q1"},
            "failure": {"kind": "timeout", "message": "late"},
            "timestamp": "t",
            "retry": {"attempts": 2},
        }
    ]


def test_a_failed_tasks_line_has_the_levels_of_the_run(tmp_path):
    levels = {"security_level": "official", "determinism_level": "high"}
    failed = {"row": {"id": "q1"}, "error": "late", "failure_mode": "timeout"}
    [line] = write(tmp_path, event("run.started", {**levels, "metrics": []}), event("record.failed", failed, "q1"))
    assert {name: line[name] for name in levels} == levels


def test_a_failure_that_was_retried_has_one_line(tmp_path):
    failed = {"row": {"id": "q1"}, "error": "late", "failure_mode": "timeout"}
    lines = write(
        tmp_path,
        STARTED,
        event("record.completed", RECORD, "q0"),
        event("record.failed", failed, "q1"),
        event("record.completed", RECORD, "q1"),
        event("record.completed", RECORD, "q2"),
    )
    assert [(line["subject_id"], "failure" in line) for line in lines] == [("q0", False), ("q1", False), ("q2", False)]


def test_a_run_without_records_has_an_empty_file(tmp_path):
    assert write(tmp_path, STARTED) == []


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_every_text_comes_back_on_one_line(tmp_path_factory, texts):
    events = [event("record.completed", {"row": {"text": text}}, str(number)) for number, text in enumerate(texts)]
    assert [line["row"]["text"] for line in write(tmp_path_factory.mktemp("jsonl"), STARTED, *events)] == texts


def test_what_a_killed_process_of_the_run_has_left_is_removed(tmp_path):
    (tmp_path / ".rows.jsonl.r1.tmp").touch()
    write(tmp_path, STARTED)
    assert [path.name for path in tmp_path.iterdir()] == ["rows.jsonl"]
