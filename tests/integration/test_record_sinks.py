"""Every sink of records tells the same of a run as its ledger."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from pyarrow import parquet

from dicast import Cost, Failure, Subject
from dicast.testing import FakeChatModel, Finished, run_pipeline

PIPELINE = """
name: nightly
task:
  prompt/chat:
    model: fake
    criteria: {tone: {user: "tone of {{ input }}"}, truth: {user: "truth of {{ input }}"}}
    security_level: official
    determinism_level: high
extractors: [score_extractor/scores: {key: score, threshold: 0.5}]
metrics: [proxy/format]
aggregates: [stats/score_stats]
sinks:
  - csv/rows: {path: rows.csv}
  - jsonl/rows: {path: rows.jsonl}
  - parquet/rows: {path: rows.parquet}
  - telemetry/log
"""
ROWS = [
    Subject("row", f"q{number}", input=f"=question {number}", context={"APPID": number, "tags": ["a"]})
    for number in range(6)
]


def answer(request):
    text = request.messages[-1].content
    if text == "truth of =question 3":
        return Failure("refused", "not that one")
    return json.dumps({"score": 0.25 if text.startswith("tone") else 0.75})


@pytest.fixture
def finished(tmp_path, monkeypatch) -> Finished:
    monkeypatch.chdir(tmp_path)
    return run_pipeline(PIPELINE, subjects=ROWS, components={"fake": FakeChatModel(answer, cost=Cost("0.0001"))})


def records(finished) -> dict[str, dict]:
    return {event.subject_id: event.payload for event in finished.of("record.completed")}


def test_the_rows_of_the_csv_are_the_ledgers_records(finished):
    with Path("rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [row["subject_id"] for row in rows] == [f"q{number}" for number in range(6)]
    assert list(rows[0])[:4] == ["id", "input", "APPID", "tags"]
    assert (rows[0]["input"], rows[0]["tags"]) == ("'=question 0", '["a"]')
    for row in rows:
        record = records(finished).get(row["id"])
        if record is None:
            assert (row["failure"], row["llm_content"], row["metric_scores_tone"], row["score"]) == (
                "refused",
                "",
                "",
                "",
            )
            continue
        assert row["llm_content"] == row["llm_tone"] == record["responses"]["tone"]["content"]
        assert float(row["metric_scores_truth"]) == record["metrics"]["scores"]["truth"] == 0.75
        assert row["metric_score_flags_tone"] == "False"
        assert row["security_level"] == "official"
        assert float(row["score"]) == float(row["metric_proxy_format"]) == 1.0
    assert finished.document["sinks"]["csv/rows"] == {"written": 6, "lost": 0}


def test_the_lines_are_the_ledgers_records_whole(finished):
    lines = [json.loads(line) for line in Path("rows.jsonl").read_bytes().splitlines()]
    whole = {
        line["subject_id"]: {key: value for key, value in line.items() if not key.startswith(("subject_", "session_"))}
        for line in lines
    }
    failed = whole.pop("q3")
    assert whole == records(finished)
    assert failed["failure"]["kind"] == "refused"
    assert "not that one" in failed["failure"]["message"]
    assert failed["row"]["input"] == "=question 3"


def test_parquet_and_csv_hold_the_same_table(finished):
    with Path("rows.csv").open(encoding="utf-8", newline="") as file:
        header = next(csv.reader(file))
    table = parquet.read_table("rows.parquet")
    assert table.column_names == header
    assert table.schema.metadata[b"security_level"] == b"official"
    assert table.schema.metadata[b"determinism_level"] == b"high"
    frame = pd.read_csv("rows.csv")
    assert frame["metric_scores_tone"].tolist()[:3] == table["metric_scores_tone"].to_pylist()[:3] == [0.25] * 3
    assert frame["APPID"].tolist() == table["APPID"].to_pylist() == list(range(6))
    with duckdb.connect() as base:
        found = base.execute(
            "SELECT count(*), avg(metric_scores_truth) FROM 'rows.parquet' WHERE failure IS NULL"
        ).fetchone()
    stats = finished.document["aggregates"]["stats/score_stats"]["criteria"]["truth"]
    assert found == (5, 0.75) == (stats["count"], stats["mean"])
