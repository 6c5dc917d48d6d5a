"""Measure ``segments/ledger`` in a folder: ``python benchmarks/segments.py [--rows N] [--few N]``.

Rows with four free checks are judged by ``dicast run``. The figures are the CPU and the bytes of a row, the peak resident memory and its growth from *few* rows, the CPU of the check of
an event, and the CPU of DuckDB for the mean score.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import workload
from processes import DICAST, Figure, Wrong, run

LEDGER = json.dumps({"segments/ledger": {"path": "logs"}})
QUERY = """import duckdb
with duckdb.connect() as connection:
    connection.execute("set enable_progress_bar = false")
    query = "select count(*), avg((payload->>'score')::double) from 'logs/segments/*.parquet' where type = 'eval.completed'"
    print(connection.execute(query).fetchall()[0][0])"""


def measure(folder: Path, few: int, rows: int) -> Iterator[Figure]:
    """Yield the figures of *rows* rows."""
    few_mb, _ = _judged(folder, few)
    peak_mb, seconds = _judged(folder, rows)
    yield Figure(f"segments.{rows}.cpu", 1e6 * seconds / rows, "µs/row")
    yield Figure(f"segments.{rows}.peak", peak_mb, "MB")
    yield Figure(f"segments.{rows}.growth", peak_mb - few_mb, f"MB from {few} rows", "<= 60")
    files = [path.stat().st_size for path in (folder / "logs" / "segments").iterdir()]
    yield Figure(f"segments.{rows}.files", len(files))
    yield Figure(f"segments.{rows}.bytes", sum(files) / rows, "bytes/row")
    done = run([DICAST, "ledger", "verify", "--ledger", LEDGER, "--json"], folder)
    verified = json.loads(done.output)
    if not verified["ok"]:
        raise Wrong(f"the ledger does not hold: {verified}")
    yield Figure(f"segments.{rows}.verify", 1e6 * done.cpu / verified["events"], "µs/event")
    done = run([sys.executable, "-c", QUERY], folder)
    if int(done.output) != rows:
        raise Wrong("DuckDB reads another number of verdicts")
    yield Figure(f"segments.{rows}.duckdb", done.cpu, "s CPU")


def _judged(folder: Path, rows: int) -> tuple[float, float]:
    """Judge *rows* rows, and return the peak memory in MB and the seconds of CPU."""
    shutil.rmtree(folder / "logs", ignore_errors=True)
    workload.write(folder, rows)
    done = run([DICAST, "run", "pipeline.yaml", "--ledger", LEDGER, "--json"], folder)
    if json.loads(done.output)["scored"] != rows:
        raise Wrong(f"dicast scored {json.loads(done.output)['scored']} of {rows} rows")
    return done.peak_mb, done.cpu


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--few", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for figure in measure(Path(name), given.few, given.rows):
            print(figure, flush=True)
