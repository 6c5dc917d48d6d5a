"""Order of a run's events: to the ledger first, then to the observer, then to the sinks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..contract.protocols import Ledger
from ..values import Claim, Entry, Event, Refusal, Subject
from ..values.clock import Clock
from ..values.errors import LedgerError
from ..values.event import EventFields
from ..values.judged import JudgedRow, Records, events_of
from .sinks import SinkFeed, share_events

BATCH = 10_000
"""Events that are appended to the ledger in one transaction."""

ROWS = 1_000
"""Judged subjects that are appended to the ledger in one transaction."""

SECONDS = 0.2
"""Maximum seconds until a batch is passed on. A batch blocks the event loop while it is passed on."""

Lost = Callable[[Entry], Event]
"""Makes the ``spend.lost`` event for a reservation that ran out."""

Observe = Callable[[Records], None]
"""Receives the events that the ledger has: the report of the run."""

Waiting = tuple[Claim, Lost, asyncio.Future[Refusal | None]]
"""A claim that waits for the ledger, and the future for its decision."""


class Stream:
    """Collector of a run's events, which it passes on in batches.

    The events of one :meth:`emit` are appended together: a batch never ends between them.

    :param observe: receives each batch after the ledger and before the sinks.
    :param progress: is called after each batch that was passed on.
    """

    def __init__(
        self,
        run_id: str,
        clock: Clock,
        ledger: Ledger,
        feeds: Sequence[SinkFeed],
        observe: Observe,
        progress: Callable[[], None] | None = None,
    ) -> None:
        self.run_id, self.clock, self.feeds = run_id, clock, feeds
        self._ledger, self._observe, self._progress = ledger, observe, progress
        self._emitted: list[Event | JudgedRow] = []
        self._committed: list[Event | JudgedRow] = []
        self._judged = 0
        self._append_judged = _judged_append(ledger)
        self._due = time.monotonic() + SECONDS
        self._feeding = asyncio.Lock()
        self._committing = False
        self._waiting: list[Waiting] = []

    def event(
        self,
        type_: str,
        payload: Mapping[str, object],
        subject: Subject | None = None,
        sensitivity: str = "pseudonymous",
        stamp: tuple[str, str] | None = None,
    ) -> Event:
        """Return a new event of this run, about *subject* if there is one, with the id and the time of *stamp*, or new ones."""
        id_, now = stamp or self.clock.stamp()
        if subject is None:
            return Event(id_, type_, now, self.run_id, payload, sensitivity=sensitivity)
        kind = subject.kind
        turn = subject.id if kind == "turn" else subject.parent_id if kind == "tool_cycle" else None
        event: Any = EventFields(
            id_, type_, now, self.run_id, payload, subject.session_id, turn, kind, subject.id, sensitivity
        )
        event.__class__ = Event  # as Event.of does, without a call for each row
        return event  # type: ignore[no-any-return]

    def emit(self, events: Sequence[Event]) -> None:
        """Add *events* to the stream."""
        self._emitted += events

    def emit_judged(self, judged: JudgedRow) -> None:
        """Add the events of a judged subject to the stream."""
        self._emitted.append(judged)
        self._judged += 1

    def claim(self, claim: Claim, lost: Lost) -> asyncio.Future[Refusal | None]:
        """Submit *claim* to the ledger, which decides all current claims in one transaction with the events emitted before them.

        The future has the result or the error of :meth:`Ledger.reserve`. Cancelling it before the decision withdraws the claim.
        """
        answer: asyncio.Future[Refusal | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((claim, lost, answer))
        self.commit_soon()
        return answer

    @property
    def idle(self) -> bool:
        """True if all emitted events have been passed on."""
        return not self._emitted and not self._committed

    @property
    def due(self) -> bool:
        """True if a batch is full, or has waited long enough."""
        return self._judged >= ROWS or len(self._emitted) >= BATCH or time.monotonic() >= self._due

    def commit(self) -> None:
        """Append all emitted events to the ledger, and let it decide the claims.

        :raises LedgerError: if the ledger refuses the events; they stay emitted, and each claim raises the same error.
        """
        waiting = [(claim, lost, answer) for claim, lost, answer in self._waiting if not answer.done()]
        self._waiting = []
        refusals: Sequence[Refusal | None] = ()
        try:
            if waiting:  # all claims are of one run, so any *lost* fits all of them
                before = events_of(self._emitted)
                refusals = self._ledger.reserve([claim for claim, _, _ in waiting], waiting[-1][1], before)
            elif self._judged and self._append_judged is not None:
                self._append_judged(self._emitted)
            elif self._emitted:
                self._ledger.append(events_of(self._emitted))
        except Exception as error:
            for _, _, answer in waiting:
                answer.set_exception(error)
            raise
        self._committed += self._emitted
        self._emitted, self._judged = [], 0
        for (claim, _, answer), refusal in zip(waiting, refusals, strict=True):
            self._committed += [claim.event] if refusal is None else []
            answer.set_result(refusal)

    def commit_soon(self) -> None:
        """Commit after the tasks that are ready now have emitted their events and claims."""
        if not self._committing:
            self._committing = True
            asyncio.get_running_loop().call_soon(self._commit_now)

    def _commit_now(self) -> None:
        self._committing = False
        with suppress(LedgerError):  # the next commit tries again, and raises it
            self.commit()

    async def flush(self) -> None:
        """Commit, then publish."""
        self.commit()
        await self.pass_on()

    async def pass_on(self) -> None:
        """Publish the committed events."""
        async with self._feeding:
            self._due = time.monotonic() + SECONDS
            events, self._committed = self._committed, []
            await self.publish(events)
            if self._progress is not None:
                self._progress()

    async def publish(self, records: Records) -> None:
        """Send *records* to the observer and the sinks, and not to the ledger."""
        self._observe(records)
        if records:
            shared = records if len(self.feeds) > 1 else [record for record in records if isinstance(record, Event)]
            share_events(events_of(shared), self.feeds)
            for feed in self.feeds:
                await feed.send(events_of(records, feed.wants))

    async def replay(self, events: Sequence[Event], *, counted: bool = True) -> None:
        """Send events of an earlier process: to the observer if *counted*, and to the sinks that are rewritten by each process."""
        if counted:
            self._observe(events)
        share_events(events, self.feeds)
        for feed in self.feeds:
            if feed.rewrites:
                await feed.send(events_of(events, feed.wants))

    async def close_sinks(self, which: Callable[[SinkFeed], bool] | None = None) -> None:
        """Close the sinks that are still open and that *which* accepts; all of them without *which*."""
        for feed in self.feeds:
            if not feed.closed and (which is None or which(feed)):
                await feed.close()


def _judged_append(ledger: Ledger) -> Callable[[Records], object] | None:
    """Return the ledger's ``append_judged``; None if its class has an ``append`` of its own and inherits or passes on the other."""
    for class_ in type(ledger).__mro__:
        if "append_judged" in vars(class_):
            append: Callable[[Records], object] = ledger.append_judged  # type: ignore[attr-defined]  # an optional member
            return append
        if "append" in vars(class_):
            return None
    return None
