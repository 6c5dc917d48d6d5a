"""What a watch says of itself while it goes on."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

import attrs

from dicast import DataError

from .lines import Line

EVERY_SECONDS = 5.0
SHOWN = 100
"""So many bad lines are named; the others are counted."""


@attrs.frozen
class Snapshot:
    """How a watch stands: *backlog* subjects are due and not judged yet, the oldest of them for *lag_seconds*.

    *open_sessions* have not ended, *waiting_turns* wait for what their users do next, *unread_bytes* of the files were not
    read yet; *accepted*, *duplicates* and *bad_lines* are counted since the watch was started.
    """

    open_sessions: int
    waiting_turns: int
    backlog: int
    lag_seconds: float
    unread_bytes: int
    accepted: int
    duplicates: int
    bad_lines: int

    def __str__(self) -> str:
        parts = [f"{self.open_sessions:,} open sessions", f"{self.waiting_turns:,} turns wait"]
        parts.append(f"backlog {self.backlog:,}" + (f" for {self.lag_seconds:.1f} s" if self.backlog else ""))
        parts.append(f"{self.accepted:,} events")
        counted = {"bytes unread": self.unread_bytes, "duplicates": self.duplicates, "bad lines": self.bad_lines}
        return " · ".join([*parts, *(f"{count:,} {name}" for name, count in counted.items() if count)])


class Console:
    """Writes how a watch stands, and what is wrong with its lines, to stderr."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._shown: Snapshot | None = None
        self._next = 0.0
        self.bad = 0

    def say(self, message: str) -> None:
        """Write a line."""
        self._stream.write(f"{message}\n")
        self._stream.flush()

    def report(self, error: DataError, line: Line) -> None:
        """Say what is wrong with a line that is left out."""
        self.bad += 1
        if self.bad > SHOWN:
            return
        for problem in error.problems:
            self.say(f"{line.problem(problem)}; the line is left out")
        if self.bad == SHOWN:
            self.say("further bad lines are counted, and not shown")

    def show(self, look: Callable[[], Snapshot]) -> None:
        """Write how things stand, now and then, where something has changed."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next, snapshot = now + EVERY_SECONDS, look()
        if snapshot != self._shown:
            self._shown = snapshot
            self.say(str(snapshot))
