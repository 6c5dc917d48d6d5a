"""Commands of dicast in processes that are forked from one with all modules, so that a moment of ``kill.py`` costs little.

``python kill_fork.py OUTPUT GROUP...`` reads a line of JSON for each command: ``{"argv": [...], "point": null}``, or with ``[NAME, COUNT, IS_AFTER]``
of a call at which the process stops. It answers ``{"pid": N}``, ``{"stopped": true}`` and ``{"code": N}``, and removes the dead process at the next line.
Before the first other command, ``{"argv": [...], "warm": true}`` runs a command whose modules it imports, and answers the numbers of calls
of each point, too. OUTPUT takes what the commands print; the groups name the points of :data:`CALLS`.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

SEGMENTS, POSTGRES = "dicast_segments.live:SegmentLedger", "dicast_postgres.live:PostgresLedger"
STORES = ("dicast_segments.stores:FolderStore", "dicast_segments.stores:BucketStore")
CLUSTER = "dicast_ray.cluster:Cluster"


@dataclass(frozen=True)
class Point:
    """The call number *count* of the calls with this *name*: the process stops before it, or *is_after* it."""

    name: str
    count: int
    is_after: bool


def _is_settled(arguments: Sequence[Any]) -> bool:
    lists = [argument for argument in arguments if isinstance(argument, (list, tuple))]
    return any(getattr(event, "type", None) == "spend.settled" for events in lists for event in events)


def _is_segment(arguments: Sequence[Any]) -> bool:
    return str(arguments[0]).startswith("segments/")


def _is_any(arguments: Sequence[Any]) -> bool:
    return True


CALLS: Mapping[str, Mapping[str, Sequence[tuple[str, str, Callable[[Sequence[Any]], bool]]]]] = {
    "segments": {
        "append": [(SEGMENTS, "append", _is_any)],
        "reserve": [(SEGMENTS, "reserve", _is_any)],
        "settle": [(SEGMENTS, "append", _is_settled), (SEGMENTS, "reserve", _is_settled)],
        "put": [(store, "put", _is_any) for store in STORES],
        "seal": [(store, "put", _is_segment) for store in STORES],
        "delete": [(store, "delete", _is_any) for store in STORES],
    },
    "postgres": {
        "append": [(POSTGRES, "append_judged", _is_any)],
        "reserve": [(POSTGRES, "reserve", _is_any)],
        "settle": [(POSTGRES, "append_judged", _is_settled), (POSTGRES, "reserve", _is_settled)],
        "read": [("dicast_postgres.reading:Makers", "__init__", _is_any)],
    },
    "ray": {"shard": [(CLUSTER, "_judge_shard", _is_any)]},
}
"""The methods of each point, as module, class and method, and the calls that count, by the software that has them."""


class Stops:
    """Wrappers of the methods of all points; they count the calls, and call *reached* before and after each."""

    def __init__(self, reached: Callable[[Point], None], groups: Sequence[str]) -> None:
        self._reached = reached
        self.counts: Counter[str] = Counter()
        for name, calls in [call for group in groups for call in CALLS[group].items()]:
            for place, method, counts in calls:
                module, _, class_ = place.partition(":")
                owner = getattr(importlib.import_module(module), class_)
                setattr(owner, method, self._wrapped(getattr(owner, method), name, counts))

    def _wrapped(self, method: Any, name: str, counts: Callable[[Sequence[Any]], bool]) -> Any:
        def number(arguments: Sequence[Any]) -> int:
            if not counts(arguments):
                return 0
            self.counts[name] += 1
            return self.counts[name]

        if inspect.iscoroutinefunction(method):

            @functools.wraps(method)
            async def awaited(self_: Any, *arguments: Any, **options: Any) -> Any:
                call = number([*arguments, *options.values()])
                self._tell(Point(name, call, is_after=False))
                result = await method(self_, *arguments, **options)
                self._tell(Point(name, call, is_after=True))
                return result

            return awaited

        @functools.wraps(method)
        def called(self_: Any, *arguments: Any, **options: Any) -> Any:
            call = number([*arguments, *options.values()])
            self._tell(Point(name, call, is_after=False))
            result = method(self_, *arguments, **options)
            self._tell(Point(name, call, is_after=True))
            return result

        return called

    def _tell(self, point: Point) -> None:
        if point.count:  # other calls of the method do not count
            self._reached(point)


class Command:
    """A forked process with a command of dicast."""

    def __init__(self, pid: int, answers: SimpleQueue[Any]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.is_stopped = False
        self._answers = answers

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the process ends or stops, at most *seconds*; return False after this time."""
        try:
            answer = self._answers.get(timeout=seconds)
        except Empty:
            return False
        if answer is None:
            raise EOFError("the process that forks has ended")
        self.is_stopped = "stopped" in answer
        self.returncode = answer.get("code")
        return True

    def poll(self) -> int | None:
        """Return the code of an ended process, or None."""
        self.wait(0)
        return self.returncode

    def send(self, number: int) -> None:
        """Send a signal to the process, which is there until the next command even if it has ended."""
        os.kill(self.pid, number)


class Forks:
    """The process that forks, with *environment* in *folder*."""

    def __init__(self, folder: Path, environment: Mapping[str, str], groups: Sequence[str], stack: ExitStack) -> None:
        self.output = folder / "output.txt"
        # threads of the libraries would not be there in the forked processes
        quiet = {"OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
        self._process = subprocess.Popen(
            [sys.executable, Path(__file__), self.output, *groups],
            cwd=folder,
            env={**environment, **quiet},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        stack.callback(self._end)

    def _end(self) -> None:
        """End the process, which ends with its input."""
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def start(self, argv: Sequence[str], point: Point | None = None) -> Command:
        """Start the command with *argv*, which stops at *point*."""
        self._ask(argv=argv, point=point and [point.name, point.count, point.is_after])
        return Command(self._answers.get()["pid"], self._answers)

    def end_last(self) -> None:
        """Remove the dead process of the last command."""
        self._ask()
        self._answers.get()

    def warm(self, argv: Sequence[str]) -> Counter[str]:
        """Run a command to its end, import its modules, and return the numbers of calls by point."""
        self._ask(argv=argv, warm=True)
        answer = self._answers.get()
        if answer is None or answer["code"]:
            raise RuntimeError(self.output.read_text(encoding="utf-8")[-1500:])
        return Counter(answer["counts"])

    def _ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)


def _begin(output: str, groups: Sequence[str], request: Mapping[str, Any], notes: Path) -> None:
    """Run the command in this forked process."""
    os.setsid()
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.dup2(1, 2)
    sys.argv = list(request["argv"])
    stop_at = Point(*request["point"]) if request.get("point") else None

    def reached(point: Point) -> None:
        if point == stop_at:
            os.kill(os.getpid(), signal.SIGSTOP)

    stops = Stops(reached, groups)
    if request.get("warm"):

        def note() -> None:
            specs = [getattr(module, "__spec__", None) for module in [*sys.modules.values()]]
            names = [spec.name for spec in specs if spec is not None and spec.has_location]
            notes.write_text(json.dumps({"modules": names, "counts": stops.counts}), encoding="utf-8")

        atexit.register(note)


def _answer(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


def _watch(pid: int) -> int:
    """Answer each stop of a process, and return the code of its end. The dead process stays."""
    while True:
        end = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
        assert end is not None
        if end.si_code != os.CLD_STOPPED:
            return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        _answer(stopped=True)


def main() -> int:
    """Fork a process for each request; return its code in the forked process."""
    (command,) = entry_points(group="console_scripts", name="dicast")
    dicast = command.load()
    (output, *groups), notes = sys.argv[1:], Path(f"{sys.argv[1]}.notes")
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            _begin(output, groups, request, notes)
            return int(dicast())
        if not request.get("warm"):
            _answer(pid=pid)
        code = _watch(pid)
        if request.get("warm"):
            os.waitpid(pid, 0)
            found = json.loads(notes.read_text(encoding="utf-8")) if code == 0 else {"modules": [], "counts": {}}
            for name in found["modules"]:
                importlib.import_module(name)
            _answer(code=code, counts=found["counts"])
            continue
        _answer(code=code)
        sys.stdin.readline()
        os.waitpid(pid, 0)
        _answer(gone=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
