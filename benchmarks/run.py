"""Measure dicast and floors in one run: ``uv run python benchmarks/run.py [WHAT ...]``; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aggregates
import agreement
import cold_start
import diff
import experiments
import folder_run
import heuristic
import judges
import kill
import memory
import processes_executor
import proxy
import readers
import real_texts
import report
import sandbox
import storage
import throughput
import watch
import watch_cost
from processes import Figure, Wrong

WHAT = (
    "throughput",
    "texts",
    "memory",
    "cold-start",
    "kill",
    "judges",
    "experiments",
    "heuristic",
    "processes",
    "watch",
    "watch-cost",
    "watch-kill",
    "agreement",
    "aggregates",
    "proxy",
    "diff",
    "sandbox",
    "report",
    "readers",
    "folder",
    "storage",
)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure dicast beside floors in the same run.")
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"{', '.join(WHAT)}; all of them by default")
    parser.add_argument("--rows", type=int, help="how many subjects, in place of README.md's")
    parser.add_argument(
        "--repeats", type=int, default=3, help="pairs of runs in throughput and judges, of which medians are given"
    )
    parser.add_argument("--kills", type=int, help=f"moments to kill at ({kill.MOMENTS} in kill)")
    parser.add_argument("--seed", type=int, default=kill.SEED, help="of the moments to kill at")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="a folder of environments, as README.md makes them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    for name in set(given.what) - set(WHAT):
        parser.error(f"cannot measure {name!r}; there are {', '.join(WHAT)}")
    return given


def figures(what: str, folder: Path, given: argparse.Namespace) -> Iterator[Figure]:
    match what:
        case "throughput":
            return throughput.measure(folder, given.rows, given.repeats, given.peers and given.peers.absolute())
        case "texts":
            return real_texts.measure(folder, given.rows, given.repeats)
        case "memory":
            return memory.measure(folder, given.rows)
        case "cold-start":
            return cold_start.measure(folder)
        case "judges":
            return judges.measure(folder, given.rows, given.repeats, given.peers and given.peers.absolute())
        case "experiments":
            return experiments.measure(folder, given.rows, given.repeats)
        case "processes":
            return processes_executor.measure(folder, given.rows, given.repeats)
        case "heuristic":
            return heuristic.measure(folder, given.rows, given.repeats)
        case "watch":
            return watch.delays(folder, given.rows or watch.SECONDS, given.seed)
        case "watch-cost":
            return watch_cost.measure(folder, given.rows, given.seed)
        case "watch-kill":
            return watch.killed(folder, given.kills or watch.KILLS, given.seed)
        case "agreement":
            return agreement.measure(folder, given.rows, given.seed, given.peers and given.peers.absolute())
        case "aggregates":
            return aggregates.measure(folder, given.rows)
        case "proxy":
            return proxy.measure(folder)
        case "diff":
            return diff.measure(folder)
        case "report":
            return report.measure(folder, given.rows)
        case "readers":
            return readers.measure(folder, given.rows, given.repeats)
        case "folder":
            return folder_run.measure(folder, given.rows)
        case "storage":
            return storage.measure(folder, given.rows)
        case "sandbox":
            return sandbox.measure(folder, given.rows, given.repeats)
        case _:
            return kill.figures(folder, given.kills or kill.MOMENTS, given.seed)


def main() -> int:
    given = arguments()
    found: list[Figure] = []
    wrong: list[str] = []
    for what in given.what or WHAT:
        try:
            with tempfile.TemporaryDirectory(prefix="dicast-benchmark-") as folder:
                for figure in figures(what, Path(folder), given):
                    found.append(figure)
                    if not given.json:
                        print(figure, flush=True)
        except Wrong as error:
            wrong.append(f"{what}: {error}")
            print(f"{what}: {error}", file=sys.stderr, flush=True)
    if given.json:
        print(json.dumps(document(found, wrong), indent=2))
    return 1 if wrong else 0


def document(found: list[Figure], wrong: list[str]) -> dict[str, Any]:
    machine = {"python": platform.python_version(), "system": platform.platform(), "processors": os.cpu_count()}
    return {"machine": machine, "figures": [figure.as_json() for figure in found], "wrong": wrong}


if __name__ == "__main__":
    sys.exit(main())
