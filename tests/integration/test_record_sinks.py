"""Every sink of records tells the same of a run as its ledger."""

from __future__ import annotations

import csv
import json
import resource
import shutil
import sys
from contextlib import contextmanager
from pathlib import Path

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
  - csv/rows: {path: rows.csv, content: false}
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
        assert (row["score"], float(row["metric_proxy_format"])) == ("", 1.0)  # criteria and metrics are several labels
    assert finished.document["sinks"]["csv/rows"] == {"written": 6, "lost": 0}


def test_the_lines_are_the_ledgers_records_whole(finished):
    lines = [json.loads(line) for line in Path("rows.jsonl").read_bytes().splitlines()]
    full = {
        line["subject_id"]: {key: value for key, value in line.items() if not key.startswith(("subject_", "session_"))}
        for line in lines
    }
    failed = full.pop("q3")
    assert full == records(finished)
    assert failed["failure"]["kind"] == "refused"
    assert "not that one" in failed["failure"]["message"]
    assert failed["row"]["input"] == "=question 3"


def test_parquet_and_csv_hold_the_same_table(finished):
    import duckdb
    import pandas as pd

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
        result = base.execute(
            "SELECT count(*), avg(metric_scores_truth) FROM 'rows.parquet' WHERE failure IS NULL"
        ).fetchone()
    stats = finished.document["aggregates"]["stats/score_stats"]["criteria"]["truth"]
    assert result == (5, 0.75) == (stats["count"], stats["mean"])


SINKS = ["csv/rows", "jsonl/rows", "jsonl/events", "parquet/rows"]
TO_A_FILE = "extractors: [extract/json_path: {path: $.score, into: score}]\nsinks: [SINK: {path: out/file}]\n"


def long_rows(meanwhile=None):
    """Rows that no 64 KB hold; *meanwhile* is called when half of them are read."""
    for number in range(80):
        if number == 40 and meanwhile is not None:
            meanwhile()
        yield Subject("row", f"q{number}", output={"score": 0.5, "text": f"{number:04}" * 500})


@contextmanager
def files_of(size):
    """No file grows beyond *size* bytes, as on a disk that is full."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a module that is compiled now would be cut, and stay so
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        monkeypatch.undo()


@pytest.fixture
def out(tmp_path, monkeypatch) -> Path:
    """A folder with an older file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_text("older and whole")
    return tmp_path / "out"


@pytest.mark.parametrize("sink", SINKS)
def test_a_full_disk_leaves_the_older_file_and_the_run_has_its_document(out, sink):
    with files_of(10_000):
        done = run_pipeline(TO_A_FILE.replace("SINK", sink), subjects=list(long_rows()))
    told = done.document["sinks"][sink]
    assert (done.exit_code, done.document["subjects"]) == (4, 80)
    assert told["lost"] >= 1
    assert "File too large" in told["error"]
    assert [path.name for path in out.iterdir()] == ["file"]
    assert (out / "file").read_text() == "older and whole"
    assert done.of("run.completed")


@pytest.mark.parametrize("sink", SINKS)
def test_a_path_that_becomes_a_folder_is_a_loss_and_the_run_has_its_document(out, sink):
    def become_a_folder():
        (out / "file").unlink()
        (out / "file").mkdir()

    done = run_pipeline(TO_A_FILE.replace("SINK", sink), subjects=long_rows(become_a_folder))
    assert (done.exit_code, done.document["subjects"]) == (4, 80)
    assert "not a regular file" in done.document["sinks"][sink]["error"]


@pytest.mark.parametrize("sink", SINKS)
def test_a_folder_that_is_removed_is_a_loss_or_made_again(out, sink):
    done = run_pipeline(TO_A_FILE.replace("SINK", sink), subjects=long_rows(lambda: shutil.rmtree(out)))
    assert done.document["subjects"] == 80
    assert done.document["sinks"][sink]["lost"] == (0 if (out / "file").exists() else 1)
    assert done.exit_code == (0 if (out / "file").exists() else 4)


def in_files():
    """The ids of the subjects in each file of rows, in its order."""
    with Path("rows.csv").open(encoding="utf-8", newline="") as file:
        yield [row["subject_id"] for row in csv.DictReader(file)]
    yield parquet.read_table("rows.parquet")["subject_id"].to_pylist()
    yield [json.loads(line)["subject_id"] for line in Path("rows.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize("extra", ["metrics: [proxy/format]", ""])
def test_rows_that_were_only_read_ahead_when_a_run_stopped_early_are_in_no_file(tmp_path, monkeypatch, extra):
    monkeypatch.chdir(tmp_path)
    stop = "early_stop: [stats/threshold: {metric: scores.tone, threshold: 0.1, min_rows: 3}]\n"
    text = PIPELINE.replace("metrics: [proxy/format]", extra) + stop + "executor: {dicast/async: {concurrency: 2}}\n"
    rows = [Subject("row", f"q{number}", input=f"question {number}") for number in range(100)]
    model = FakeChatModel(answer, seconds=0.001, cost=Cost("0.0001"))
    done = run_pipeline(text, subjects=rows, components={"fake": model})
    result = [event.subject_id for event in done.of("record.completed")]
    assert done.document["stopped"]["reason"] == "early_stop"
    assert 3 <= len(result) <= len(done.of("subject.read")) < 100
    assert list(in_files()) == [result] * 3
    assert [done.document["sinks"][f"{kind}/rows"] for kind in ("csv", "parquet", "jsonl")] == [
        {"written": len(result), "lost": 0}
    ] * 3


def test_rows_that_failed_and_were_retried_stand_where_they_were_read_or_last_and_once(shop, chat_server, monkeypatch):
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    monkeypatch.chdir(shop.folder)
    shop.rows(*["An output."] * 6)
    model = "openai/chat: {base_url: '${JUDGE_URL}', model: m-1, price: free, retries: 0}"
    text = f"""\
task: {{prompt/chat: {{model: {{{model}}}, user: "{{{{ id }}}}"}}}}
sinks: [csv/rows: {{path: rows.csv}}, parquet/rows: {{path: rows.parquet}}, jsonl/rows: {{path: rows.jsonl}}]
"""
    chat_server.answer = lambda request: 500 if request.prompt in ("r0", "r3") else "fine"
    assert shop.run(text).json["failures"] == {"judge_call_failed": 2}
    assert list(in_files()) == [[f"r{number}" for number in range(6)]] * 3
    chat_server.answer = lambda request: "better"
    done = shop.dicast("run", "p.yaml", "--json", "--resume", "--retry-failed")
    assert (done.code, done.json["scored"]) == (0, 6)
    *tables, lines = in_files()
    assert tables == [[f"r{number}" for number in range(6)]] * 2
    assert lines == ["r1", "r2", "r4", "r5", "r0", "r3"]
    assert all(done.json["sinks"][f"{kind}/rows"] == {"written": 6, "lost": 0} for kind in ("csv", "parquet", "jsonl"))


@pytest.mark.parametrize("rows", [6, 160], ids=["begun", "not begun"])
def test_rows_that_a_retry_does_not_reach_stay_in_the_files_as_they_failed(shop, chat_server, monkeypatch, rows):
    """It is stopped while they wait for their turn; or, where there are many, before they are even taken up."""
    import pandas as pd

    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    monkeypatch.chdir(shop.folder)
    shop.rows(*["An output."] * rows)
    ids, failing = [f"r{number}" for number in range(rows)], ("r1", "r3", f"r{rows - 2}")
    model = "openai/chat: {base_url: '${JUDGE_URL}', model: m-1, price: free, retries: 0}"
    text = f"""\
task: {{prompt/chat: {{model: {{{model}}}, user: "{{{{ id }}}}"}}}}
metrics: [proxy/format]
sinks: [csv/rows: {{path: rows.csv}}, parquet/rows: {{path: rows.parquet}}, jsonl/rows: {{path: rows.jsonl}}]
executor: {{dicast/async: {{concurrency: 1}}}}
gate: {{min_coverage: 0}}
"""
    chat_server.answer = lambda request: 500 if request.prompt in failing else "fine"
    assert shop.run(text).json["failures"] == {"judge_call_failed": 3}
    again = ("run", "p.yaml", "--json", "--resume", "--retry-failed")

    def left(done, *failed):
        """Check that files and figures say that only these have *failed*, each once."""
        *tables, lines = in_files()
        assert tables == [ids] * 2
        assert sorted(lines) == sorted(ids)
        for read in (pd.read_csv, pd.read_parquet):
            frame = read(f"rows.{read.__name__.removeprefix('read_')}")
            assert tuple(frame["subject_id"][frame["failure"].notna()]) == failed
        document = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
        assert tuple(line["subject_id"] for line in document if "failure" in line) == failed
        assert (done["subjects"], done["scored"], done["failed"]) == (rows, rows - len(failed), len(failed))

    chat_server.answer = lambda request: "better" if request.prompt == "r1" else 401
    done = shop.dicast(*again).json
    assert done["stopped"]["reason"] == "refused_by_provider"
    left(done, *failing[1:])
    done = shop.dicast(*again, "--limit", "2").json  # when some of them had been begun again
    assert done["stopped"] is None
    left(done, *failing[1:])
    chat_server.answer = "better"
    left(shop.dicast(*again).json)
