"""The CPU of ``dicast watch`` for an event of a growing trace, next to ``dicast run`` over the same file; and the time that its end takes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from processes import DICAST, Figure, environment, run
from watch import PIPELINE, SESSIONS, WATCH, Agents

EVENTS = 24_000
RATE = 400
"""Events a second."""

START_SECONDS, SETTLE_SECONDS = 3.0, 2.0


def measure(folder: Path, events: int | None, seed: int) -> Iterator[Figure]:
    """Write *events* (:data:`EVENTS` by default) of interleaved sessions to a watched trace, stop the watch, and run the file."""
    agents, count = Agents(SESSIONS, seed), events or EVENTS
    (folder / "watch.yaml").write_text(PIPELINE % ("trace.jsonl", "watched.db"), encoding="utf-8")
    (folder / "run.yaml").write_text(PIPELINE % ("trace.jsonl", "run.db"), encoding="utf-8")
    (folder / "trace.jsonl").touch()
    with (
        (folder / "watch.out").open("w") as output,
        subprocess.Popen(WATCH, cwd=folder, env=environment(), stdout=output, stderr=subprocess.DEVNULL) as live,
    ):
        time.sleep(START_SECONDS)
        before, memory = _cpu(live.pid), _resident(live.pid)
        _write(folder / "trace.jsonl", agents, count // 2)
        half = _resident(live.pid)
        _write(folder / "trace.jsonl", agents, count - count // 2)
        time.sleep(SETTLE_SECONDS)
        used, end = _cpu(live.pid) - before, _resident(live.pid)
        began = time.perf_counter()
        live.send_signal(signal.SIGTERM)
        live.wait()
        stopping = time.perf_counter() - began
    done = run([DICAST, "run", "run.yaml", "--json"], folder, codes=(0, 1, 3))
    yield Figure("watch-cost.events", count)
    yield Figure("watch-cost.watch", used / count * 1e6, "us of CPU an event")
    yield Figure("watch-cost.run", done.cpu / count * 1e6, "us of CPU an event")
    yield Figure("watch-cost.ratio", used / done.cpu, "x the run", "<= 3")
    yield Figure("watch-cost.memory.start", memory, "MB")
    yield Figure("watch-cost.memory.half", half, "MB")
    yield Figure("watch-cost.memory.end", end, "MB")
    yield Figure("watch-cost.end", stopping, "s from SIGTERM to the exit", "<= 2")
    yield Figure("watch-cost.judged", json.loads((folder / "watch.out").read_text())["scored"], "subjects with a score")


def _write(path: Path, agents: Agents, count: int) -> None:
    """Write *count* events at the rate."""
    began = time.time()
    with path.open("a", encoding="utf-8", buffering=1) as file:
        for number in range(count):
            time.sleep(max(0.0, began + number / RATE - time.time()))
            file.write(json.dumps(agents.next()) + "\n")


def _cpu(process: int) -> float:
    """Return the seconds of CPU of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> float:
    """Return the resident memory of a process in MB."""
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
