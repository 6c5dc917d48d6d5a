"""Worker process of ``dicast/processes``: loads metrics, and calls them for one subject after the other."""

from __future__ import annotations

import asyncio
import fcntl
import mmap
import os
import pickle
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from dicast import Failure, Interrupted, Subject
from dicast.metric_calls import Call, MetricCalls

from .process import HEADER

SEND_SECONDS = 0.025
"""Seconds that an answer waits for other answers of its message before it is sent."""


def main(lifeline: int, progress: int) -> None:
    """Answer calls until the main process closes its pipe or ends.

    :param lifeline: a pipe whose other end only the main process holds.
    :param progress: a file of 8 bytes for the number of the current call.
    """
    _die_with(lifeline)
    asyncio.run(WorkerCalls(Pipe(), mmap.mmap(progress, HEADER.size)).serve())


def _die_with(lifeline: int) -> None:
    """Make the end of *lifeline* send a signal that ends this process, even in C code, and the processes that it started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)  # it cannot be blocked
    else:
        signal.signal(signal.SIGIO, lambda *_: os._exit(1))  # by default the signal is ignored
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())  # the group of this process, which leads it
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # the main process ended before the signal was set
        os._exit(1)


class Pipe:
    """Messages from and to the main process. Output that metrics print goes to standard error; their standard input is empty."""

    def __init__(self) -> None:
        self._source: BinaryIO = os.fdopen(os.dup(0), "rb")
        self._sink: BinaryIO = os.fdopen(os.dup(1), "wb")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)

    def receive(self) -> Any:
        """Return the next message, or None at the end."""
        header = self._source.read(HEADER.size)
        if len(header) < HEADER.size:
            return None
        return pickle.loads(self._source.read(HEADER.unpack(header)[0]))  # noqa: S301  # from our own main process

    def send(self, message: object) -> None:
        """Write one message."""
        written = pickle.dumps(message)
        self._sink.write(HEADER.pack(len(written)) + written)
        self._sink.flush()


class WorkerCalls:
    """Calls of the metrics that the main process sent, one after the other."""

    def __init__(self, wire: Pipe, progress: mmap.mmap) -> None:
        self._wire, self._progress = wire, progress
        self._calls = MetricCalls()
        self._last_sent = time.monotonic()

    async def serve(self) -> None:
        """Load the metrics, report metrics that cannot be loaded, and answer messages until the end."""
        calls = [self._loaded(slot) for slot in self._wire.receive() or ()]
        self._wire.send([call if isinstance(call, str) else None for call in calls])
        with self._calls.ticking():
            while (message := self._wire.receive()) is not None:
                await self._answer_all(calls, message)

    async def _answer_all(self, calls: Sequence[Call | str], message: Sequence[tuple[int, int, bytes]]) -> None:
        answers: list[tuple[int, object]] = []
        self._last_sent, last, subject = time.monotonic(), b"", None
        for number, slot, pickled in message:
            if answers and time.monotonic() - self._last_sent > SEND_SECONDS:
                self._send(answers)
            HEADER.pack_into(self._progress, 0, number)
            if pickled is not last:
                last, subject = pickled, _read(pickled)
            answers.append((number, await self._answer(calls[slot], subject)))
            HEADER.pack_into(self._progress, 0, 0)
        self._send(answers)

    async def _answer(self, call: Call | str, subject: Subject | Failure | None) -> object:
        """Return the answer, or an exception if the run has to stop."""
        if isinstance(call, str):
            return Failure("crashed", f"the metric could not be loaded in its worker process: {call}")
        if not isinstance(subject, Subject):
            return subject
        try:
            return await self._calls.answer(call, subject)
        except Interrupted as error:  # the metric reports that every further call would fail too
            return error.__cause__

    def _loaded(self, pickled: bytes) -> Call | str:
        """Return the call of a metric, or the reason why it cannot be loaded."""
        try:
            return self._calls.call_of(pickle.loads(pickled))  # noqa: S301  # from our own main process
        except Exception as error:  # the border to a plugin's code
            return f"{type(error).__name__}: {error}"

    def _send(self, answers: list[tuple[int, object]]) -> None:
        now = time.monotonic()
        try:
            self._wire.send((answers, now - self._last_sent))
        except Exception:  # the border: evidence may be of any class
            self._wire.send(([(number, _sendable(answer)) for number, answer in answers], now - self._last_sent))
        self._last_sent = now
        answers.clear()


def _read(pickled: bytes) -> Subject | Failure:
    try:
        subject: Subject = pickle.loads(pickled)  # noqa: S301  # as above
    except Exception as error:  # the border: a program's subjects may hold anything
        why = f"its worker process cannot read the subject ({type(error).__name__}: {error}); use dicast/async"
        return Failure("crashed", why)
    return subject


def _sendable(answer: object) -> object:
    try:
        pickle.dumps(answer)
    except Exception as error:  # as above
        why = f"its worker process cannot send the answer ({type(error).__name__}: {error}); use dicast/async"
        return Failure("invalid_score", why)
    return answer
