"""The heuristic judges: CPU a turn of recorded conversations, and a long trace judged whole in memory that stays the same."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

import traces
from processes import DICAST, HERE, Figure, Measured, Wrong, clear, run

EVENTS = 1_000_000
FEW = 100_000
DATA = "tau_bench_airline.jsonl.gz"


def measure(folder: Path, count: int | None, repeats: int) -> Iterator[Figure]:
    """Each judge on each subject of the outside data, then traces of *count* events and a tenth of the default."""
    yield from _turns(folder)
    yield from _traces(folder, count or EVENTS, repeats)
    yield from _turns_alone(folder, count or EVENTS, repeats)


def _turns(folder: Path) -> Iterator[Figure]:
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", HERE.parents[1] / "shared" / "data"), DATA).absolute()
    if not path.exists():
        reason = f"{DATA} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it"
        print(f"heuristic.turns: not measured: {reason}", file=sys.stderr)
        yield Figure("heuristic.turns.p99", None, "ms", "<= 1")
        return
    found = json.loads(run([sys.executable, HERE / "own_turns.py", path], folder).output)
    sizes, spent = zip(*found["turns"], strict=True)
    yield Figure("heuristic.turns", len(sizes), "turns")
    yield Figure("heuristic.turns.p99_events", _p99(sizes), "events")
    yield Figure("heuristic.turns.p99", _p99(spent) * 1e3, "ms CPU a turn with its tool cycles", "<= 1")
    for kind in ("turn", "tool_cycle", "session", "workload"):
        yield Figure(f"heuristic.{kind}.p99", _p99(found[kind]) * 1e3, "ms CPU", "<= 1")


def _p99(values: Sequence[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]


def _traces(folder: Path, count: int, repeats: int) -> Iterator[Figure]:
    _, few = _judged(folder, FEW, times=1)
    floors, dicasts = _judged(folder, count, repeats)
    name, cost = f"heuristic.{count}", median(each.cpu for each in dicasts)
    yield Figure(f"{name}.floor_cpu", median(each.cpu for each in floors), "s")
    yield Figure(f"{name}.dicast_cpu", cost, "s")
    ratios = [dicast.cpu / floor.cpu for dicast, floor in zip(dicasts, floors, strict=True)]
    yield Figure(f"{name}.cpu_ratio", median(ratios), "x the floor")
    yield Figure(f"{name}.cpu_per_event", cost / count * 1e6, "µs", "<= 25")
    yield Figure(f"{name}.events_per_s", count / median(each.wall for each in dicasts), "", ">= 40000")
    few_mb, many_mb = (max(each.peak_mb for each in runs) for runs in (few, dicasts))
    yield Figure(f"heuristic.{FEW}.peak_memory", few_mb, "MB")
    yield Figure(f"{name}.peak_memory", many_mb, "MB")
    yield Figure("heuristic.memory_growth", many_mb - few_mb, "MB", "<= 40")


def _turns_alone(folder: Path, count: int, repeats: int) -> Iterator[Figure]:
    """As a trace is judged where nothing is said of its subjects."""
    _, runs = _judged(folder, count, repeats, traces.TURNS_ALONE)
    cost = median(each.cpu for each in runs)
    yield Figure(f"heuristic.{count}.turns_alone.cpu_per_event", cost / count * 1e6, "µs", "<= 25")
    yield Figure(
        f"heuristic.{count}.turns_alone.events_per_s", count / median(each.wall for each in runs), "", ">= 40000"
    )


def _judged(
    folder: Path, count: int, times: int, pipeline: str = traces.PIPELINE
) -> tuple[list[Measured], list[Measured]]:
    """The floor and dicast on a trace of *count* events, in turn."""
    lines, subjects = traces.write(folder, count, pipeline)
    floors, dicasts = [], []
    for _ in range(times):
        floors.append(run([sys.executable, HERE / "trace_floor.py", "trace.jsonl", "store.db"], folder))
        dicasts.append(run([DICAST, "run", "pipeline.yaml", "--json"], folder))
        clear(folder, "store.db*", "ledger.db*")  # gigabytes
        told = json.loads(dicasts[-1].output)["judges"].values()
        if (judged := sum(each["scored"] for each in told)) != subjects:
            raise Wrong(f"dicast judged {judged} of {subjects} subjects, of {lines} events")
    return floors, dicasts
