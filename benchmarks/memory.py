"""Peak resident memory must not grow with the number of rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import workload
from processes import DICAST, Figure, Wrong, clear, run

ROWS = 1_000_000
FEW = 10_000
ROWS_PER_SESSION = 10


def measure(folder: Path, count: int | None) -> Iterator[Figure]:
    """The difference between *count* rows and a hundredth of the default, without and with sessions."""
    many = count or ROWS
    for name, share in (("rows", 0), ("sessions", ROWS_PER_SESSION)):
        few_mb, many_mb = (_peak(folder, rows, rows // share if share else 0) for rows in (FEW, many))
        yield Figure(f"memory.{name}.{FEW}", few_mb, "MB")
        yield Figure(f"memory.{name}.{many}", many_mb, "MB")
        yield Figure(f"memory.{name}.growth", many_mb - few_mb, "MB", "<= 40")


def _peak(folder: Path, count: int, sessions: int) -> float:
    workload.write(folder, count, sessions=sessions, sinks=workload.CSV_SINK)
    done = run([DICAST, "run", "pipeline.yaml", "--json"], folder)
    clear(folder, "ledger.db*", "rows.*")  # gigabytes
    if json.loads(done.output)["scored"] != count:
        raise Wrong(f"dicast scored {json.loads(done.output)['scored']} of {count} rows")
    return done.peak_mb
