"""The rows in the records of a run that metrics and judges alone make."""

from __future__ import annotations

import json

import dicast
from dicast._kernel.records.reader import RecordReader

ROWS = [{"id": str(place), "session_id": f"s{place // 2}", "output": "yes", "kind": "k"} for place in range(5)]


def events_of(tmp_path):
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    run = dicast.run(
        {
            "name": "rows",
            "source": {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}},
            "metrics": [{"check/equals": {"value": "yes"}}],
            "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
        }
    )
    types = ("run.started", "subject.read", "eval.started", "eval.completed", "eval.failed")
    return run, run.read(types, list)


def test_events_that_are_read_again_give_each_record_its_row(tmp_path):
    """So aggregates of a resumed run get the same records as in an uninterrupted run."""
    _, (started, *events) = events_of(tmp_path)
    reader = RecordReader(started.payload)
    subjects = [*reader.read(events), *reader.rest()]
    assert [record["row"] for _, record, *_ in subjects] == ROWS


def test_verdicts_without_what_was_read_have_rows_of_id_and_session(tmp_path):
    _, (started, *events) = events_of(tmp_path)
    reader = RecordReader(started.payload)
    subjects = [*reader.read(event for event in events if event.type != "subject.read"), *reader.rest()]
    assert [record["row"] for _, record, *_ in subjects] == [
        {"id": row["id"], "session_id": row["session_id"]} for row in ROWS
    ]
