"""Time HumanEval's programs by ``dicast run``, the same run without sandboxes, and the start of an empty sandbox."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from processes import DICAST, HERE, Figure, Measured, Wrong, clear, run

DATA = "human_eval.jsonl.gz"
GENERATED = 164
EMPTY = 100
PIPELINE = """\
name: sandbox
source: {rows/jsonl: {path: rows.jsonl}}
metrics:
  - sandbox/tests_pass: {command: python3 check.py, output_file: solution.py, files: {check.py: "{{ context.check }}"}}
ledger: {ledger/sqlite: {path: ledger.db}}
"""


def measure(folder: Path, count: int | None, repeats: int) -> Iterator[Figure]:
    """Seconds on the clock of whole processes, in pairs; then single sandboxes with nothing to do."""
    name = _write(folder, count)
    pairs = [(_bare(folder), _dicast(folder)) for _ in range(repeats)]
    programs = sum(1 for _ in (folder / "rows.jsonl").open(encoding="utf-8"))
    yield Figure(f"sandbox.{name}.programs", programs, "programs")
    yield Figure(f"sandbox.{name}.bare_wall", median(bare.wall for bare, _ in pairs), "s")
    yield Figure(f"sandbox.{name}.dicast_wall", median(dicast.wall for _, dicast in pairs), "s")
    walls = median(dicast.wall / bare.wall for bare, dicast in pairs)
    yield Figure(f"sandbox.{name}.wall_ratio", walls, "x the same programs run bare", "<= 1.6")
    taken = _own(folder, "empty", str(EMPTY))
    yield Figure("sandbox.empty.bare", taken["bare"] / EMPTY * 1e3, "ms")
    yield Figure("sandbox.empty.sandboxed", taken["sandboxed"] / EMPTY * 1e3, "ms")


def _write(folder: Path, count: int | None) -> str:
    """Put ``rows.jsonl`` and ``pipeline.yaml`` into *folder*; return the name of the programs' source."""
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", HERE.parents[1] / "shared" / "data"), DATA).absolute()
    rows = list(_problems(path) if path.exists() else _generated())[:count]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    (folder / "pipeline.yaml").write_text(PIPELINE, encoding="utf-8")
    if path.exists():
        return "humaneval"
    print(f"sandbox: {DATA} is not in {path.parent}; programs are generated in its place", file=sys.stderr)
    return "generated"


def _problems(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for problem in map(json.loads, file):
            solution = problem["prompt"] + problem["canonical_solution"]
            check = f"{solution}\n{problem['test']}\ncheck({problem['entry_point']})\n"
            yield {"id": problem["task_id"], "output": solution, "check": check}


def _generated() -> Iterator[dict[str, str]]:
    for number in range(GENERATED):
        solution = f"def power(base):\n    return base ** {number}\n"
        checks = "".join(f"assert power({base}) == {base**number}\n" for base in range(5))
        yield {"id": str(number), "output": solution, "check": solution + checks}


def _dicast(folder: Path) -> Measured:
    clear(folder, "ledger.db*")
    done = run([DICAST, "run", "pipeline.yaml", "--json"], folder)
    if (mean := json.loads(done.output)["score"]["mean"]) != 1:
        raise Wrong(f"the mean score of programs that are right is {mean}")
    return done


def _bare(folder: Path) -> Measured:
    return run([sys.executable, HERE / "own_sandbox.py", "bare", "rows.jsonl"], folder)


def _own(folder: Path, *what: str) -> dict[str, Any]:
    return dict(json.loads(run([sys.executable, HERE / "own_sandbox.py", *what], folder).output))
