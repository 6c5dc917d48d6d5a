"""Run a command, measure the whole process and print its figures."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DICAST = str(Path(sys.executable).with_name("dicast"))
_RSS_PER_MB = 2**20 if sys.platform == "darwin" else 2**10


class Wrong(Exception):
    """A measured program failed, so no figure exists."""


@dataclass(frozen=True)
class Figure:
    """One measured number: *target* is its limit as text (``<= 3``), *ok* whether it keeps the limit.

    *value* is None when it was not measured.
    """

    name: str
    value: float | None
    unit: str = ""
    target: str = ""

    @property
    def ok(self) -> bool | None:
        """Whether the target is met; None without a target or a value."""
        if self.value is None or not self.target:
            return None
        sign, bound = self.target.split()
        return self.value <= float(bound) if sign == "<=" else self.value >= float(bound)

    def __str__(self) -> str:
        shown = (
            "not measured"
            if self.value is None
            else f"{self.value:,.4g}"
            if self.value < 1000
            else f"{self.value:,.0f}"
        )
        line = f"{self.name}: {shown}" + (f" {self.unit}" if self.unit and self.value is not None else "")
        mark = {None: "", True: " ok", False: " MISSED"}[self.ok]
        return line + (f" (target {self.target}){mark}" if self.target else "")

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "value": self.value, "unit": self.unit, "target": self.target or None, "ok": self.ok}


@dataclass(frozen=True)
class Measured:
    """A finished process: user and system seconds, seconds on the clock, peak resident memory, and its output."""

    cpu: float
    wall: float
    peak_mb: float
    code: int
    output: str
    errors: str


def environment() -> dict[str, str]:
    """Return an environment in which bytecode is written and read, without the caller's settings for dicast."""
    unwanted = ("DICAST_", "PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME")
    return {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}


def run(command: Sequence[str | Path], folder: Path, codes: Sequence[int] = (0,)) -> Measured:
    """Run *command* in *folder* to its end.

    The child's peak memory is at least this process's own (it starts as a copy of it), so this one has to stay small.

    :raises Wrong: when it ends with another exit code than *codes*.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environment(), stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if process.returncode not in codes:
        raise Wrong(
            f"{' '.join(map(str, command))} ended with {process.returncode}:\n{texts[0][-2000:]}\n{texts[1][-2000:]}"
        )
    cpu = usage.ru_utime + usage.ru_stime
    return Measured(cpu, wall, usage.ru_maxrss / _RSS_PER_MB, process.returncode, *texts)


def clear(folder: Path, *patterns: str) -> None:
    """Remove the files in *folder* that match *patterns*."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            path.unlink()
