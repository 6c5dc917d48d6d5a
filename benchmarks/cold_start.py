"""CPU seconds of whole processes that do little, with compiled bytecode: the cost of a start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import workload
from processes import DICAST, Figure, clear, run

TIMES = 20
ROWS = 10
COMMANDS = {
    "bare_python": ([sys.executable, "-c", "pass"], ""),
    "import": ([sys.executable, "-c", "import dicast"], "<= 0.13"),
    "help": ([DICAST, "--help"], "<= 0.20"),
    "ten_rows": ([DICAST, "run", "pipeline.yaml"], "<= 0.25"),
}


def measure(folder: Path) -> Iterator[Figure]:
    """Yield the median CPU of each command; the commands take turns."""
    workload.write(folder, ROWS)
    for command, _ in COMMANDS.values():
        run(command, folder)  # the first run writes the bytecode
    costs: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(TIMES):
        for name, (command, _) in COMMANDS.items():
            clear(folder, "ledger.db*")
            costs[name].append(run(command, folder).cpu)
    for name, (_, target) in COMMANDS.items():
        yield Figure(f"cold_start.{name}_cpu", median(costs[name]), "s", target)
