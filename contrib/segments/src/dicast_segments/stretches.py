"""Stretches of segments that other processes check while the main process adds up their results.

A worker reads one request a line, and writes one result a line. It ends when its input ends, so it ends with the main process, even if that is killed.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import attrs
import orjson

from dicast import LedgerError

from .check import Check, Result
from .log import Log
from .segment import SEGMENTS, Place
from .state import State
from .stores import BucketStore, FolderStore, Store

_MOST_SEGMENTS = 16
"""Most segments of a stretch. For each stretch, the state before it is read from the segment before it."""

_SHARES = 4
"""Stretches for each process, so that no process waits long for the last one."""

_URL = "s3://"


class Stretches:
    """Processes that check the segments in *store*. *results* has a function for each stretch, by its first place; it waits for the result, which is None if its process has died."""

    def __init__(self, store: Store, expected: str | None, jobs: int) -> None:
        places = [place for name in store.names(SEGMENTS) if (place := Place.of(name)) is not None]
        size = max(1, min(_MOST_SEGMENTS, len(places) // (jobs * _SHARES)))
        parts = [places[start : start + size] for start in range(0, len(places), size)]
        before = [None, *(part[-1] for part in parts)]
        self._jobs = min(jobs, len(parts)) if len(parts) > 1 else 0
        self._workers, self._idle = list[subprocess.Popen[bytes]](), SimpleQueue[subprocess.Popen[bytes]]()
        self._threads = ThreadPoolExecutor(max(1, self._jobs))
        self.results: Mapping[Place, Callable[[], Result | None]] = {}
        if self._jobs:
            for _ in range(self._jobs):
                self._workers.append(_started(store.place, expected))
                self._idle.put(self._workers[-1])
            self.results = {
                part[0]: self._submit(place, part).result for place, part in zip(before, parts, strict=False)
            }

    def close(self) -> None:
        """End the processes."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers:
            worker.kill()
            worker.wait()
        self._threads.shutdown()
        for worker in self._workers:
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):  # a process that died has not read its request
                        pipe.close()

    def _submit(self, before: Place | None, places: Sequence[Place]) -> Future[Result | None]:
        request = [None if before is None else attrs.astuple(before), [attrs.astuple(place) for place in places]]
        return self._threads.submit(self._ask, orjson.dumps(request))

    def _ask(self, request: bytes) -> Result | None:
        worker = self._idle.get()
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(request + b"\n")
            worker.stdin.flush()
            answer = worker.stdout.readline()
        except OSError:  # the process has died; the main process checks the stretch
            answer = b""
        self._idle.put(worker)
        if not answer.endswith(b"\n"):
            return None
        base, places, *rest = orjson.loads(answer)
        return Result(base, [Place(*place) for place in places], *rest)


def _started(place: str, expected: str | None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "dicast_segments.stretches", place, expected or ""]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # ourselves


def main(place: str, expected: str) -> None:
    """Check the stretches that the input names, of the ledger at *place*, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the main process, which ends this one
    store = BucketStore(place) if place.startswith(_URL) else FolderStore(Path(place))
    for answer in _answers(sys.stdin.buffer, store, expected or None):
        sys.stdout.buffer.write(answer + b"\n")
        sys.stdout.buffer.flush()


def _answers(requests: Iterable[bytes], store: Store, expected: str | None) -> Iterator[bytes]:
    log = Log(store)
    for request in requests:
        before, places = orjson.loads(request)
        try:
            state = State() if before is None else log.segment(Place(*before)).state()
        except LedgerError as error:  # the stretch before it has this fault
            yield orjson.dumps(["", [], "", 0, False, str(error)])
            continue
        result = Check(store, expected, state).stretch([Place(*place) for place in places])
        yield orjson.dumps(attrs.astuple(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
