"""The place of runs on a Ray cluster: a folder that the workers share. Linux alone, in a network namespace."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from kill_fork import Command
from kill_places import CONTRIB, DRIVER, FolderPlace, events_at
from kill_tasks import FOLDER, LEDGER, TaskPoints, write_plugin
from processes import Wrong, environment

from dicast import Event

NAMESPACE = "DICAST_KILL_NAMESPACE"
"""Environment variable of a process in a network namespace of its own."""

ENTER = """set -e
ip link set lo up
ip addr add 10.255.0.1/32 dev lo
ip route add default dev lo src 10.255.0.1
mount --bind /dev/null /etc/resolv.conf
exec "$@"
"""
WORKER_SECONDS = 60
TASK_SECONDS = 200.0
"""Seconds until a task has reached its point."""
_NODE = 2
"""The node that may be killed. A cluster does not survive its first node, which has the list of all nodes."""


class RayPlace(FolderPlace):
    """A folder of ``segments/ledger``, whose runs are judged by a Ray cluster of two nodes in this network namespace."""

    victims, points = (DRIVER, "worker", "node"), ("segments", "ray")

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(folder, stack)
        write_plugin(folder / "site")
        self._points = TaskPoints(folder / "points")
        command = [sys.executable, CONTRIB / "ray" / "tests" / "ray_cluster.py"]
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        with (folder / "ray.log").open("wb") as log:
            self._cluster = stack.enter_context(
                subprocess.Popen(
                    command,
                    text=True,
                    env=environment() | quiet | self.environment | {FOLDER: str(folder / "points")},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    cwd=folder,
                )
            )
        self._address = self._answer()

    @property
    def environment(self) -> dict[str, str]:
        """The folder of the plugin that stops tasks."""
        return {"PYTHONPATH": str(self.folder / "site")}

    def _segments(self, ledger: str) -> str:
        return json.dumps({ledger: {"path": str(self.folder / "shards")}})

    @property
    def text(self) -> str:
        """Lines of the pipeline file, with the executor."""
        options = {"address": self._address, "shard": 9, "concurrency": 3, "segments": self._segments(LEDGER)}
        return f"{super().text}executor: {json.dumps({'ray/shards': options})}\n"

    def clear(self) -> None:
        """Remove the files of the last run."""
        super().clear()
        shutil.rmtree(self.folder / "shards", ignore_errors=True)

    def segments(self) -> list[Event]:
        """Return the events of all shards."""
        return events_at(self._segments("segments/ledger"))

    def kill(self, victim: str, drawn: random.Random) -> bool:
        """Kill the process of a task, or all processes of the second node. If a task waits at its stop, kill that task."""
        if victim == "node":
            self._ask(kill=_NODE)
            return True
        workers = _workers() if self._points.stopped is None else [self._points.stopped]
        if workers:
            _kill_process(drawn.choice(workers))
        return bool(workers)

    def start(self, victim: str) -> None:
        """Add a node in place of the killed one."""
        if victim == "node":
            self._ask(add=_NODE)

    def arm(self, moment: object) -> bool:
        """Have a task stop at *moment*."""
        return self._points.arm(moment)

    def arrived(self, command: Command) -> bool:
        """Wait until a task has stopped, or the driver has ended."""
        return self._points.wait(command, TASK_SECONDS)

    def counts(self) -> Counter[str]:
        """Return the most calls of a task process of the last run, by point."""
        return self._points.counts()

    def release(self) -> None:
        """Continue the stopped task."""
        self._points.release()

    def settle(self) -> None:
        """Wait until no task is running."""
        until = time.monotonic() + WORKER_SECONDS
        while _workers():
            if time.monotonic() > until:
                raise Wrong(f"tasks of a killed run were there {WORKER_SECONDS} s after its end")
            time.sleep(0.05)

    def _ask(self, **request: int) -> Any:
        assert self._cluster.stdin is not None
        print(json.dumps(request), file=self._cluster.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        assert self._cluster.stdout is not None
        line = self._cluster.stdout.readline()
        if not line:
            raise Wrong(f"the Ray cluster has ended: {(self.folder / 'ray.log').read_text()[-1500:]}")
        return json.loads(line)


def enter_namespace() -> None:
    """Start this program again in a network namespace, because Ray rewrites 127.0.0.1. Do nothing if it is in one.

    :raises Wrong: if no namespace can be made.
    """
    if NAMESPACE in os.environ:
        return
    if sys.platform != "linux" or not all(map(shutil.which, ("unshare", "ip", "mount"))):
        raise Wrong("two nodes of Ray need a network namespace: Linux with unshare, ip and mount")
    command = ["unshare", "--net", "--mount", "sh", "-c", ENTER, "sh"]
    done = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Wrong(f"no network namespace can be made: {done.stderr.strip()}")
    os.execvpe(command[0], [*command, sys.executable, *sys.argv], os.environ | {NAMESPACE: "1"})


def _workers() -> list[int]:
    """Return the ids of the processes of tasks in this network namespace."""
    namespace, pids = Path("/proc/self/ns/net").readlink(), list[int]()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            is_task = (path / "cmdline").read_bytes().startswith(b"ray::judge")
            if is_task and (path / "ns" / "net").readlink() == namespace:
                pids.append(int(path.name))
        except OSError:  # it has ended
            continue
    return pids


def _kill_process(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:  # it has ended meanwhile
        return
