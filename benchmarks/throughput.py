"""Compare dicast with a plain loop and with other frameworks: rows with four cheap checks each, results stored."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import workload
from processes import DICAST, HERE, Figure, Measured, Wrong, clear, run

ROWS = 100_000
PEER_ROWS = 10_000
PEERS = {"dspy": ("dspy.Evaluate", ">= 3"), "pydantic_evals": ("pydantic-evals", ">= 5")}
"""By the name of the environment's folder: what is measured, and how many times faster dicast should be."""


def measure(folder: Path, count: int | None, repeats: int, peers: Path | None) -> Iterator[Figure]:
    """CPU seconds against the floor's at *count* rows, then rows/s against the peers' at 10,000."""
    yield from _against_floor(folder, count or ROWS, repeats)
    yield from _against_peers(folder, min(count or PEER_ROWS, PEER_ROWS), repeats, peers)


def _against_floor(folder: Path, count: int, repeats: int) -> Iterator[Figure]:
    workload.write(folder, count)
    floors, dicasts, verifies = [], [], []
    for _ in range(repeats):
        floors.append(floor_run(folder))
        dicasts.append(dicast_run(folder, count))
        verifies.append(_verify(folder))
    name = f"throughput.{count}"
    cost = median(each.cpu for each in dicasts)
    yield Figure(f"{name}.floor_cpu", median(each.cpu for each in floors), "s")
    yield Figure(f"{name}.dicast_cpu", cost, "s")
    ratios = [dicast.cpu / floor.cpu for dicast, floor in zip(dicasts, floors, strict=True)]
    yield Figure(f"{name}.cpu_ratio", median(ratios), "x the floor", "<= 3")
    yield Figure(f"{name}.dicast_cpu_per_row", cost / count * 1e6, "µs", "<= 80")
    yield Figure(f"{name}.floor_rows_per_s", count / median(each.wall for each in floors))
    yield Figure(f"{name}.dicast_rows_per_s", count / median(each.wall for each in dicasts))
    yield Figure(f"{name}.dicast_peak_memory", median(each.peak_mb for each in dicasts), "MB")
    checked = median(each.cpu for each in verifies)
    yield Figure(f"{name}.verify_cpu", checked, "s")
    yield Figure(f"{name}.verify_cpu_per_event", checked / count / 3 * 1e6, "µs", "<= 3")
    yield Figure(f"{name}.ledger_size", (folder / "ledger.db").stat().st_size / 2**20, "MB")


def floor_run(folder: Path) -> Measured:
    """Run the floor over the rows in *folder*."""
    clear(folder, "store.db*")
    return run([sys.executable, HERE / "floor.py", "rows.jsonl", "store.db"], folder)


def dicast_run(folder: Path, count: int) -> Measured:
    """Run dicast over the *count* rows in *folder*, with a new ledger."""
    clear(folder, "ledger.db*")
    done = run([DICAST, "run", "pipeline.yaml", "--json"], folder)
    if json.loads(done.output)["scored"] != count:
        raise Wrong(f"dicast scored {json.loads(done.output)['scored']} of {count} rows")
    return done


def _verify(folder: Path) -> Measured:
    return run([DICAST, "ledger", "verify", "--ledger", "ledger.db", "--json"], folder)


def _against_peers(folder: Path, count: int, repeats: int, peers: Path | None) -> Iterator[Figure]:
    found = {name: python for name in PEERS if peers and (python := peers / name / "bin" / "python").exists()}
    workload.write(folder, count)
    speeds: dict[str, list[float]] = {name: [] for name in ("dicast", *PEERS)}
    for _ in range(repeats):
        clear(folder, "*.db*")
        speeds["dicast"].append(_alone([sys.executable, HERE / "own_run.py", "pipeline.yaml"], folder, count))
        for name, python in found.items():
            speeds[name].append(_alone([python, HERE / f"peer_{name}.py", "rows.jsonl", f"{name}.json"], folder, count))
    yield Figure(f"throughput.{count}.dicast_rows_per_s", median(speeds["dicast"]))
    for name, (title, target) in PEERS.items():
        measured = name in found
        speed = median(speeds[name]) if measured else None
        ratio = median(a / b for a, b in zip(speeds["dicast"], speeds[name], strict=True)) if measured else None
        yield Figure(f"throughput.{count}.{title}_rows_per_s", speed)
        yield Figure(f"throughput.{count}.dicast_against_{title}", ratio, "x its rows/s", target)


def _alone(command: list[str | Path], folder: Path, count: int) -> float:
    """Rows/s of the evaluation alone, after the imports; dicast's has reading the file, and its ledger, in it."""
    done = run(command, folder)
    result = json.loads(done.output.splitlines()[-1])
    if result["rows"] != count:
        raise Wrong(f"{command[1]} judged {result['rows']} of {count} rows")
    return count / float(result["seconds"])
