"""A process of ``sandbox.py``: ``bare FILE`` runs the rows' programs as they are, ``empty COUNT`` runs nothing in sandboxes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
"""The same python3 as inside."""


def bare(file: str) -> None:
    """Run every program with subprocess, one for each core at a time, as the pool of a run does.

    :raises SystemExit: when one fails.
    """
    rows = [json.loads(line) for line in Path(file).read_text(encoding="utf-8").splitlines()]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        failed = [row["id"] for row, code in zip(rows, pool.map(_program, rows), strict=True) if code]
    if failed:
        sys.exit(f"these programs have failed: {', '.join(failed)}")


def _program(row: dict[str, str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "solution.py").write_text(row["output"], encoding="utf-8")
        Path(folder, "check.py").write_text(row["check"], encoding="utf-8")
        done = subprocess.run(["python3", "check.py"], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False)
    return done.returncode


def empty(count: int) -> None:
    """Print the seconds that *count* runs of ``true`` take one after the other, bare and in sandboxes."""
    sandboxed = asyncio.run(_sandboxed(count))
    began = time.perf_counter()
    for _ in range(count):
        subprocess.run(["true"], env=ENVIRONMENT, check=True)
    print(json.dumps({"bare": time.perf_counter() - began, "sandboxed": sandboxed}))


async def _sandboxed(count: int) -> float:
    from dicast import Execution, Program  # the bare loop does without
    from dicast_sandbox import Bubblewrap
    from dicast_sandbox.backends.profiles import limits

    box, program = Bubblewrap(concurrency=1), Program(("true",), limits("medium"))
    box.check()
    async with box.open(None) as pool:
        began = time.perf_counter()
        for _ in range(count):
            done = await pool.execute(program)
            if not isinstance(done, Execution) or done.exit:
                sys.exit(f"true has failed in a sandbox: {done}")
        return time.perf_counter() - began


if __name__ == "__main__":
    bare(sys.argv[2]) if sys.argv[1] == "bare" else empty(int(sys.argv[2]))
