"""Other programs read a ledger: pandas reads the views, and DuckDB reads the exported files."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing

import pytest

import dicast_ledger

DICAST = [sys.executable, "-m", "dicast", "ledger"]


@pytest.fixture
def path(tmp_path, opened, make_subject):
    """Return the path of a ledger of 150 verdicts."""
    with opened(tmp_path / "ledger.db") as ledger:
        ledger.append([event for number in range(150) for event in make_subject(number)])
    return tmp_path / "ledger.db"


def run(*arguments):
    return subprocess.run([*DICAST, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_pandas_reads_the_views(path):
    pandas = pytest.importorskip("pandas")
    with closing(dicast_ledger.connect(path)) as connection:
        verdicts = pandas.read_sql("SELECT subject_id, score FROM verdicts", connection)
        payloads = pandas.read_sql("SELECT payload FROM events WHERE type = 'subject.read'", connection)
    assert verdicts.score.tolist() == [number / 10_000 for number in range(150)]
    outputs = [json.loads(text)["content"]["output"] for text in payloads.payload]
    assert outputs == [f"Answer {number}" for number in range(150)]


def test_duckdb_reads_the_exported_files(path, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    done = run("export", "--to", tmp_path / "out", "--ledger", path, "--json")
    assert json.loads(done.stdout) == {"folder": str(tmp_path / "out"), "events": 450, "verdicts": 150}
    query = f"SELECT judge, count(*), max(score) FROM '{tmp_path}/out/verdicts.jsonl.gz' GROUP BY judge"
    assert duckdb.sql(query).fetchall() == [("metrics", 150, 0.0149)]
    query = f"SELECT count(*) FROM '{tmp_path}/out/events.jsonl.gz' WHERE type = 'subject.read'"
    assert duckdb.sql(query).fetchall() == [(150,)]


def test_an_exported_file_is_not_overwritten(path, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "verdicts.jsonl.gz").write_text("mine")
    done = run("export", "--to", tmp_path / "out", "--ledger", path)
    assert done.returncode == 2
    assert "verdicts.jsonl.gz: it exists" in done.stderr
    assert (tmp_path / "out" / "verdicts.jsonl.gz").read_text() == "mine"


def test_a_connection_of_another_program_changes_nothing(path):
    with closing(dicast_ledger.connect(path)) as connection, pytest.raises(Exception, match="readonly"):
        connection.execute("DELETE FROM blocks")
