"""Runs and commands on the ledger give the same results as on ``ledger/sqlite``."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import duckdb
import pytest

import dicast
from dicast import Query

ROWS = 400


@pytest.fixture
def place(ledger):
    """Return the ledger as text of ``--ledger``."""
    return ledger.url or json.dumps({"segments/ledger": {"path": str(ledger.path)}})


@pytest.fixture
def pipeline(tmp_path):
    """Return the file of a pipeline over many rows."""
    rows = (
        {"id": str(number), "output": f"answer {number}", "reference": f"answer {number % 7}"} for number in range(ROWS)
    )
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    metrics = "metrics: [proxy/format, diff/match]\n"
    path = tmp_path / "rows.yaml"
    path.write_text("source: {rows/jsonl: {path: rows.jsonl}}\n" + metrics)
    return path


def command(*arguments):
    return [sys.executable, "-m", "dicast", *map(str, arguments)]


def ran(*arguments, code=0):
    done = subprocess.run(command(*arguments), check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def without_times(document):
    """Return the document of a run without its ids, times and places."""
    return {key: value for key, value in document.items() if key not in ("run_id", "ledger", "started_at", "ended_at")}


@pytest.mark.slow
def test_a_run_has_the_document_of_other_ledgers(pipeline, place, tmp_path):
    mine = json.loads(ran("run", pipeline, "--ledger", place, "--json"))
    other = json.loads(ran("run", pipeline, "--ledger", tmp_path / "ledger.db", "--json"))
    assert without_times(mine) == without_times(other)
    assert json.loads(ran("ledger", "verify", "--ledger", place, "--json"))["head"] == mine["ledger"]["head"]
    (run,) = json.loads(ran("runs", "--ledger", place, "--json"))["runs"]
    assert (run["run_id"], run["subjects"], run["state"]) == (mine["run_id"], ROWS, "completed")
    query = "select count(*), sum(score) from verdicts"
    answers = [
        json.loads(ran("sql", query, "--ledger", at, "--json"))["rows"] for at in (place, tmp_path / "ledger.db")
    ]
    assert answers[0] == answers[1]
    verdicts = json.loads(ran("verdicts", "--ledger", place, "--json"))["verdicts"]
    proof = tmp_path / "proof.json"
    ran("ledger", "prove", verdicts[0]["eval_id"], "--out", proof, "--ledger", place)
    assert ran("ledger", "check-proof", proof).startswith("ok: 0 has the score")
    ran("ledger", "erase", "3", "--reason", "request", "--ledger", place)
    assert "Question" not in ran("show", "3", "--ledger", place)
    ran("report", "--out", tmp_path / "report.html", "--ledger", place)


@pytest.mark.slow
def test_a_killed_run_is_resumed(pipeline, place, ledger, opened, tmp_path):
    count = 60
    lines = (tmp_path / "rows.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "rows.jsonl").write_text("".join(lines[:count]))
    go = tmp_path / "go"
    (tmp_path / "slow.py").write_text(
        "import time\nfrom pathlib import Path\n\n\ndef is_good(output, row):\n"
        f"    while int(row['id']) >= {count // 2} and not Path({str(go)!r}).exists():\n        time.sleep(0.05)\n"
        "    return True\n"
    )
    pipeline.write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\n"
        "metrics: [{check/python: {file: slow.py, function: is_good}}]\n"
        "executor: {dicast/async: {concurrency: 2}}\n"
        "trust: [slow.py]\n"
    )
    killed = subprocess.Popen(
        command("run", pipeline, "--ledger", place), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 100
    seen = 0
    while not seen and time.monotonic() < deadline:
        time.sleep(0.2)
        try:
            with opened(ledger, create=False) as live:
                seen = len([*live.read(Query(types=("eval.completed",)))])
        except dicast.LedgerRefused:
            continue
    killed.kill()
    killed.wait()
    go.touch()
    assert 0 < seen < count
    document = json.loads(ran("run", pipeline, "--ledger", place, "--resume", "--json"))
    assert (document["scored"], document["failed"]) == (count, 0)
    with opened(ledger, create=False) as live:
        assert live.verify().ok
        subjects = [entry.event.subject_id for entry in live.read(Query(types=("eval.completed",)))]
    assert sorted(map(int, subjects)) == [*range(count)]


@pytest.mark.slow
def test_shards_are_merged(pipeline, place, tmp_path):
    shards = [json.dumps({"segments/ledger": {"path": str(tmp_path / f"shard{number}")}}) for number in (1, 2)]
    for number, shard in enumerate(shards, 1):
        ran("run", pipeline, "--shard", f"{number}/2", "--ledger", shard)
    merged = json.loads(ran("merge", *shards, "--ledger", place, "--json"))
    whole = json.loads(ran("run", pipeline, "--ledger", tmp_path / "ledger.db", "--json"))
    assert (merged["scored"], merged["score"]) == (whole["scored"], whole["score"])


def test_duckdb_reads_the_segments(pipeline, folder):
    run = dicast.run(pipeline, overrides={"ledger": {"segments/ledger": {"path": str(folder.path)}}})
    files = f"'{folder.path}/segments/*.parquet'"
    scores = f"select count(*), avg((payload->>'score')::double) from {files} where type = 'eval.completed'"
    outputs = f"select content->>'output' from {files} where type = 'subject.read' order by seq limit 1"
    with duckdb.connect() as connection:
        assert connection.execute(scores).fetchall() == [(ROWS, pytest.approx(float(run.score["mean"])))]
        assert connection.execute(outputs).fetchall() == [("answer 0",)]
