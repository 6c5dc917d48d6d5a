"""A metric that only computes, in two worker processes and in one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from processes import DICAST, HERE, Figure, Measured, Wrong, clear, environment, run

ROWS = 6_000
WORKERS = 2
FUNCTIONS = 6
PIPELINE = """\
name: processes
source: {rows/jsonl: {path: rows.jsonl}}
metrics: [diff/match: {strictness: ast_equivalent, language: python}]
ledger: {ledger/sqlite: {path: ledger.db}}
"""
EXECUTORS = ("dicast/async", f"{{dicast/processes: {{workers: {WORKERS}}}}}")

_FUNCTION = """\
def step_{row}_{number}(items, factor={number}):
    total = {{}}
    for key, value in items.items():
        if value > {number} and key != {quote}done{quote}:
            total[key] = value * factor + len(key)
    return sorted(total, reverse=True)
"""


def write(folder: Path, count: int) -> None:
    """Put ``rows.jsonl``, programs of about 1.5 kB with a copy of each in other quotes, and ``pipeline.yaml`` into *folder*."""
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for row in range(count):
            texts = [
                "\n".join(_FUNCTION.format(row=row, number=number, quote=quote) for number in range(FUNCTIONS))
                for quote in ("'", '"')
            ]
            file.write(json.dumps({"id": f"row-{row:06}", "output": texts[0], "reference": texts[1]}) + "\n")
    (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")


def measure(folder: Path, count: int | None, repeats: int) -> Iterator[Figure]:
    """Measure whole processes in pairs: seconds on the clock, and the workers' CPU seconds."""
    count = count or ROWS
    if (os.cpu_count() or 1) < WORKERS:
        yield Figure("processes.speedup", None, "x one process", ">= 1.7")
        return
    write(folder, count)
    floors, pairs = [], []
    for _ in range(repeats):
        floors.append(_bare(folder, 1) / _bare(folder, WORKERS))
        pairs.append(tuple(_run(folder, count, executor) for executor in EXECUTORS))
    yield Figure("processes.bare_speedup", median(floors), "x one bare loop, for as many bare loops as workers")
    yield Figure("processes.one_process", median(alone.wall for alone, _ in pairs), "s")
    yield Figure("processes.two_workers", median(both.wall for _, both in pairs), "s")
    yield Figure("processes.cpu_per_row", median(alone.cpu for alone, _ in pairs) / count * 1e3, "ms")
    yield Figure("processes.cpu_ratio", median(both.cpu / alone.cpu for alone, both in pairs), "x one process")
    yield Figure(
        "processes.speedup", median(alone.wall / both.wall for alone, both in pairs), "x one process", ">= 1.7"
    )


def _bare(folder: Path, shares: int) -> float:
    """Seconds on the clock of *shares* bare loops at the same time, each over its share of the rows."""
    commands = [[sys.executable, HERE / "own_scores.py", "rows.jsonl", str(n), str(shares)] for n in range(shares)]
    began = time.perf_counter()
    processes = [subprocess.Popen(command, cwd=folder, env=environment()) for command in commands]
    if any([process.wait() for process in processes]):  # noqa: C419  # all of them are waited for
        raise Wrong("a bare loop has failed")
    return time.perf_counter() - began


def _run(folder: Path, count: int, executor: str) -> Measured:
    clear(folder, "ledger.db*")
    done = run([DICAST, "run", "pipeline.yaml", "--json", "--set", f"executor={executor}"], folder)
    if json.loads(done.output)["scored"] != count:
        raise Wrong(f"{executor} scored {json.loads(done.output)['scored']} of {count} rows")
    return done
