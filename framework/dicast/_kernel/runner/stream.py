"""The event stream: one order, told to the ledger first and then to the sinks and the report."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ..clock import Clock
from ..errors import LedgerError
from ..model import Cap, Entry, Event, Refusal, Subject
from ..protocols import Ledger
from ..report import Report
from ..sinks import SinkFeed

BATCH = 10_000
"""Events that are appended to the ledger in one transaction."""

SECONDS = 1.0
"""How long an event waits for its batch, at most."""


class Stream:
    """Collects a run's events and passes them on in batches.

    What was told together is appended together: a batch never ends inside one :meth:`tell`.
    """

    def __init__(self, run_id: str, clock: Clock, ledger: Ledger, report: Report, feeds: Sequence[SinkFeed]) -> None:
        self.run_id, self.clock, self.report, self.feeds = run_id, clock, report, feeds
        self._ledger = ledger
        self._told: list[Event] = []
        self._committed: list[Event] = []
        self._due = time.monotonic() + SECONDS
        self._feeding = asyncio.Lock()
        self._committing = False
        self.progress: Callable[[Report], None] | None = None

    def event(
        self,
        type_: str,
        payload: Mapping[str, object],
        subject: Subject | None = None,
        sensitivity: str = "pseudonymous",
    ) -> Event:
        """Make an event of this run, about *subject* where there is one."""
        id_, now = self.clock.stamp()
        if subject is None:
            return Event(id_, type_, now, self.run_id, payload, sensitivity=sensitivity)
        kind = subject.kind
        turn = subject.id if kind == "turn" else subject.parent_id if kind == "tool_cycle" else None
        return Event(id_, type_, now, self.run_id, payload, subject.session_id, turn, kind, subject.id, sensitivity)

    def tell(self, events: Sequence[Event]) -> None:
        """Put *events* into the stream."""
        self._told += events

    def record(self, event: Event) -> None:
        """Put *event* into the stream and into the ledger at once."""
        self._told.append(event)
        self.commit()

    def claim(self, event: Event, caps: Sequence[Cap], lost: Callable[[Entry], Event]) -> Refusal | None:
        """Let the ledger reserve what *event* says, in one transaction with all that was told before.

        :raises LedgerError: when the ledger did not take it.
        """
        refusal = self._ledger.reserve(event, caps, lost, self._told)
        self._committed += self._told
        self._told = []
        if refusal is None:
            self._committed.append(event)
        return refusal

    @property
    def due(self) -> bool:
        """Whether a batch is full, or has waited long enough."""
        return len(self._told) >= BATCH or time.monotonic() >= self._due

    def commit(self) -> None:
        """Append everything told so far to the ledger.

        :raises LedgerError: when the ledger did not take it.
        """
        if self._told:
            self._ledger.append(self._told)
            self._committed += self._told
            self._told = []

    def commit_soon(self) -> None:
        """Commit once the tasks that can go on now have told what they have to tell."""
        if not self._committing:
            self._committing = True
            asyncio.get_running_loop().call_soon(self._commit_now)

    def _commit_now(self) -> None:
        self._committing = False
        with suppress(LedgerError):  # nobody hears it here; the next commit tries again, and is heard
            self.commit()

    async def flush(self) -> None:
        """Commit, then tell the report and the sinks."""
        self.commit()
        await self.pass_on()

    async def pass_on(self) -> None:
        """Tell the report and the sinks what the ledger has taken."""
        async with self._feeding:
            self._due = time.monotonic() + SECONDS
            events, self._committed = self._committed, []
            await self.tell_outside(events)
            if self.progress is not None:
                self.progress(self.report)

    async def tell_outside(self, events: Sequence[Event]) -> None:
        """Tell the report and the sinks, and not the ledger."""
        for event in events:
            self.report.observe(event)
        if events:
            for feed in self.feeds:
                await feed.tell(events)

    async def tell_again(self, events: Sequence[Event], *, counted: bool = True) -> None:
        """Tell events of an earlier process: to the report if *counted*, and to sinks that are made anew each time."""
        if counted:
            for event in events:
                self.report.observe(event)
        for feed in self.feeds:
            if feed.rewrites:
                await feed.tell(events)

    async def close_sinks(self, which: Callable[[SinkFeed], bool] | None = None) -> None:
        """Close the sinks that are still open, or *which* of them."""
        for feed in self.feeds:
            if not feed.closed and (which is None or which(feed)):
                await feed.close()
