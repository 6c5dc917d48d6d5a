"""What it costs before anything is done: CPU seconds of whole processes, bytecode compiled."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from processes import DICAST, Figure, run

TIMES = 20
COMMANDS = {
    "bare_python": ([sys.executable, "-c", "pass"], ""),
    "import": ([sys.executable, "-c", "import dicast"], "<= 0.13"),
    "help": ([DICAST, "--help"], "<= 0.20"),
}


def measure(folder: Path) -> Iterator[Figure]:
    """The median of 20, the commands taking turns."""
    for command, _ in COMMANDS.values():
        run(command, folder)  # the first run writes the bytecode
    costs: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(TIMES):
        for name, (command, _) in COMMANDS.items():
            costs[name].append(run(command, folder).cpu)
    for name, (_, target) in COMMANDS.items():
        yield Figure(f"cold_start.{name}_cpu", median(costs[name]), "s", target)
