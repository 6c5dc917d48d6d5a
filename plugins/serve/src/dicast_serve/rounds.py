"""Rounds: moments at which all viewers of a ledger refresh their figures, so that they share one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic, time

import attrs

from dicast import Head

SOONEST = 1.5
"""Least number of seconds between the starts of two rounds."""

SHARE = 9
"""Pause after a round, as a multiple of the CPU time of its answers. A run that writes meanwhile needs the processor, too."""

LATEST_OF_RUNS, LATEST_OF_ALL = 6.0, 30.0
"""Longest pauses in seconds after a round: for figures of runs, and for figures of all verdicts."""

State = tuple[Head | None, frozenset[str]]
"""The newest row of a ledger, and the ids of its running runs: a run whose process was killed writes no row."""


@attrs.define
class Figures:
    """Figures with a common pause, which is *latest* seconds at most."""

    latest: float
    state: State | None = None
    _began: float = float("-inf")
    _busy: float = 0.0

    def is_due(self, state: State) -> bool:
        """Return whether *state* is new, and the pause after the last figures is over."""
        pause = min(self.latest, max(SOONEST, (1 + SHARE) * self._busy))
        return state != self.state and monotonic() - self._began >= pause

    def begin(self, state: State) -> None:
        """Record that viewers read the figures of *state* now."""
        self.state, self._began, self._busy = state, monotonic(), 0.0

    def add_busy_time(self, seconds: float) -> None:
        """Add the CPU *seconds* of an answer."""
        self._busy += seconds


class Rounds:
    """Rounds of one ledger. *name* is the last round's, None before the first.

    Figures of runs and figures of all verdicts have their own pauses, so that expensive figures do not delay the progress of a run.
    """

    def __init__(self) -> None:
        self.name: str | None = None
        self.has_all = False
        """Whether viewers read the figures of all verdicts in the last round, too."""
        self.of_runs, self.of_all = Figures(LATEST_OF_RUNS), Figures(LATEST_OF_ALL)
        self._count, self._start = 0, 0.0
        self._head: asyncio.Task[Head | None] | None = None

    def begin(self, head: Head | None, running: frozenset[str] = frozenset()) -> str | None:
        """Return the name of the last round. A new round starts if figures are due for *head* or for the *running* runs."""
        state = (head, running)
        if self.of_runs.state is None:  # a new viewer has just made its own requests
            self.of_runs.state = self.of_all.state = state
        has_all = self.of_all.is_due(state)
        if has_all or self.of_runs.is_due(state):
            self._count += 1
            self.name, self.has_all, self._head = f"{self._count}-{_name(head)}", has_all, None
            self._start = time()
            self.of_runs.begin(state)
            if has_all:
                self.of_all.begin(state)
        return self.name

    def moment(self, name: str | None) -> float:
        """Return the time that answers depend on, in seconds since 1970: the start of the round *name* if it is the last one and not old, else now.

        So all requests of a round get one answer, wherever the page shows it.
        """
        now = time()
        return self._start if name is not None and name == self.name and now - self._start < LATEST_OF_RUNS else now

    async def head(self, name: str | None, read: Callable[[], Awaitable[Head | None]]) -> Head | None:
        """Return the head of answers: the head of the round *name* if it is the last one, else the newest."""
        if name is None or name != self.name:
            return await read()
        if self._head is None or _went_wrong(self._head):
            self._head = asyncio.ensure_future(read())
        return await asyncio.shield(self._head)


def _name(head: Head | None) -> str:
    """Return a name of *head*."""
    return "empty" if head is None else f"{head.seq}-{head.digest[:12]}"


def _went_wrong(task: asyncio.Task[Head | None]) -> bool:
    """Return whether *task* ended without a head. The next request then tries again."""
    return task.done() and (task.cancelled() or task.exception() is not None)
