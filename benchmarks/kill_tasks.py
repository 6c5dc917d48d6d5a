"""Points inside the tasks of Ray: the process of a task stops before or after a call of the ledger of its shard.

A plugin in a folder of its own offers ``segments/ledger`` under another name. A task that loads it notes its calls in the folder that
:data:`FOLDER` names, and stops at the point that this folder names. The first task that reaches the point takes it away.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from pathlib import Path

from kill_fork import Command, Point, Stops

FOLDER = "DICAST_KILL_TASKS"
"""Environment variable of the nodes of Ray with the folder."""

TASK = "task "
"""How the names of points inside tasks begin."""

LOOK = 0.02
"""Seconds between two looks for a stopped task."""

PLUGIN = """
import os, sys
sys.path.append({benchmarks!r})
from dicast_segments import dicast_ledgers
from kill_tasks import FOLDER, watch
if FOLDER in os.environ:
    watch()
"""
LEDGER = "kill_tasks/ledger"


def write_plugin(site: Path) -> None:
    """Write the plugin into the folder *site*, which is in ``PYTHONPATH``."""
    info = site / "dicast_kill_tasks-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dicast-kill-tasks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dicast]\nkill_tasks = dicast_kill_tasks\n")
    text = PLUGIN.format(benchmarks=str(Path(__file__).parent))
    (site / "dicast_kill_tasks.py").write_text(text)


def watch() -> None:
    """Note the calls of this process, and stop it at the point."""
    folder = Path(os.environ[FOLDER])

    def reached(point: Point) -> None:
        if not point.is_after:
            with (folder / "calls").open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()} {point.name}\n")
        try:
            if (folder / "point").read_text(encoding="utf-8") != str(point):
                return
            (folder / "point").rename(folder / "taken")
        except FileNotFoundError:  # no point, or another task has taken it
            return
        (folder / "stopped.part").write_text(str(os.getpid()), encoding="utf-8")
        (folder / "stopped.part").rename(folder / "stopped")
        os.kill(os.getpid(), signal.SIGSTOP)

    Stops(reached, ("segments",))


class TaskPoints:
    """Points inside the tasks of a cluster, whose nodes have :data:`FOLDER` with *folder* in their environment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def arm(self, point: object) -> bool:
        """Have the first task that reaches *point* stop; return False if it is not inside a task. The point before is taken back."""
        for name in ("point", "taken", "stopped", "calls"):
            (self._folder / name).unlink(missing_ok=True)
        if not (isinstance(point, Point) and point.name.startswith(TASK)):
            return False
        inside = Point(point.name.removeprefix(TASK), point.count, point.is_after)
        (self._folder / "point").write_text(str(inside), encoding="utf-8")
        return True

    def counts(self) -> Counter[str]:
        """Return the most calls of one task process since :meth:`arm`, by the name of the point."""
        path, most = self._folder / "calls", Counter[str]()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line, count in Counter(lines).items():
            _, name = line.split(" ", 1)
            most[TASK + name] = max(most[TASK + name], count)
        return most

    @property
    def stopped(self) -> int | None:
        """The id of the stopped process."""
        path = self._folder / "stopped"
        return int(path.read_text(encoding="utf-8")) if path.exists() else None

    def wait(self, command: Command, seconds: float) -> bool:
        """Wait until a task has stopped; return False if *command* has ended before, or after *seconds*."""
        until = time.monotonic() + seconds
        while self.stopped is None and command.poll() is None and time.monotonic() < until:
            time.sleep(LOOK)
        return self.stopped is not None and command.returncode is None

    def release(self) -> None:
        """Continue the stopped process, if it is still there."""
        if (pid := self.stopped) is not None:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:  # it was killed
                return
