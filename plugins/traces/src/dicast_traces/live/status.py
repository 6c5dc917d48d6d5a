"""The status of a running watch."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

import attrs

from dicast import DataError
from dicast.toolkit.session_notes import numbered

from .lines import Line

EVERY_SECONDS = 5.0
MAX_BAD_LINES = 100
"""Most bad lines that are reported; further bad lines are only numbered."""


@attrs.frozen
class Snapshot:
    """The state of a watch: *backlog* subjects are due and not judged yet, the oldest of them for *lag_seconds*.

    *open_sessions* have not ended, *waiting_turns* wait for the next messages of their users, *judged* subjects of
    the run have a verdict, *unread_bytes* of the files were not
    read yet. *accepted*, *duplicates* and *bad_lines* are numbered since the start of the watch.
    """

    open_sessions: int
    waiting_turns: int
    judged: int
    backlog: int
    lag_seconds: float
    unread_bytes: int
    accepted: int
    duplicates: int
    bad_lines: int

    def __str__(self) -> str:
        waiting = f"{numbered(self.waiting_turns, 'turns')} wait{'s' * (self.waiting_turns == 1)}"
        parts = [numbered(self.open_sessions, "open sessions"), waiting, f"{self.judged:,} judged"]
        parts.append(f"backlog {self.backlog:,}" + (f" for {self.lag_seconds:.1f} s" if self.backlog else ""))
        parts.append(numbered(self.accepted, "events"))
        others = {"bytes unread": self.unread_bytes, "duplicates": self.duplicates, "bad lines": self.bad_lines}
        return " · ".join([*parts, *(numbered(count, name) for name, count in others.items() if count)])


class Console:
    """Writes the state of a watch, and the faults of its lines, to stderr."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._last_shown: Snapshot | None = None
        self._next = 0.0
        self.bad = 0

    def say(self, message: str) -> None:
        """Write a line."""
        self._stream.write(f"{message}\n")
        self._stream.flush()

    def report(self, error: DataError, line: Line | None) -> None:
        """Report the fault of a line that is left out, or without a *line* of a conversation."""
        self.bad += 1
        if self.bad > MAX_BAD_LINES:
            return
        for problem in error.problems:
            place = attrs.evolve(problem, path=None) if line is None else line.problem(problem)
            self.say(str(place) + "; the line is left out" * (line is not None))
        if self.bad == MAX_BAD_LINES:
            self.say("further bad lines are numbered but not shown")

    def show(self, look: Callable[[], Snapshot]) -> None:
        """Write the state if it has changed, at intervals."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next, snapshot = now + EVERY_SECONDS, look()
        if snapshot != self._last_shown:
            self._last_shown = snapshot
            self.say(str(snapshot))
