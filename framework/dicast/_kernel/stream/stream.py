"""Order of a run's events: to the ledger first, then to the observer, then to the sinks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..events import SPEND_RELEASED
from ..values import Claim, Event, Lost, Refusal, Subject
from ..values.clock import Clock
from ..values.errors import LedgerError
from ..values.event import EventFields
from ..values.judged import JudgedRow, Records, events_of
from .awaited_ledger import AwaitedLedger
from .sinks import SinkFeed, share_events

BATCH = 10_000
"""Events that are appended to the ledger in one transaction."""

ROWS = 1_000
"""Judged subjects that are appended to the ledger in one transaction."""

SECONDS = 0.2
"""Maximum seconds until a batch is passed on. A batch blocks the event loop while it is passed on."""

Observe = Callable[[Records], None]
"""Receives the events that the ledger has: the report of the run."""

_APPENDS = ("append", "append_judged")

Waiting = tuple[Claim, Lost, asyncio.Future[Refusal | None]]
"""A claim that waits for the ledger, and the future for its decision."""


@frozen
class Commit:
    """Records and claims that are passed to the ledger together. *judged* is the number of judged subjects among the records."""

    records: list[Event | JudgedRow]
    judged: int
    waiting: Sequence[Waiting]


@frozen
class Sent:
    """A commit that the thread of a ledger has. *ended* is done after its answer was taken."""

    commit: Commit
    answer: Future[Any]
    ended: asyncio.Future[None]


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
        self._appends_judged = _appends_judged(ledger)
        self._due = time.monotonic() + SECONDS
        self._feeding = asyncio.Lock()
        self._committing = False
        self._waiting: list[Waiting] = []
        self._sent: Sent | None = None

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
        return not self._emitted and not self._committed and self._sent is None

    @property
    def due(self) -> bool:
        """True if a batch is full, or has waited long enough."""
        return self._judged >= ROWS or len(self._emitted) >= BATCH or time.monotonic() >= self._due

    def commit(self) -> None:
        """Append all emitted events to the ledger, and let it decide the claims.

        :raises LedgerError: if the ledger refuses the events; they stay emitted, and each claim raises the same error.
        """
        self._end_sent()
        commit = self._take()
        if (call := self._call(commit)) is None:
            return
        name, arguments = call
        try:
            answer = getattr(self._ledger, name)(*arguments)
        except Exception as error:
            self._refused(commit, error)
            raise
        self._accepted(commit, answer)

    def commit_soon(self) -> None:
        """Commit after the tasks that are ready now have emitted their events and claims."""
        if not self._committing:
            self._committing = True
            asyncio.get_running_loop().call_soon(self._commit_now)

    def _commit_now(self) -> None:
        self._committing = False
        with suppress(LedgerError):  # the next commit tries again, and raises it
            if not isinstance(self._ledger, AwaitedLedger):
                self.commit()
            elif self._sent is None:
                self._send(self._ledger)

    def _send(self, ledger: AwaitedLedger) -> None:
        """Pass all emitted events and claims to the thread of *ledger*."""
        commit = self._take()
        if (call := self._call(commit)) is None:
            return
        name, arguments = call
        loop = asyncio.get_running_loop()
        self._sent = sent = Sent(commit, ledger.start(name, *arguments), loop.create_future())

        def end() -> None:
            if self._sent is sent:
                with suppress(LedgerError):  # as in _commit_now
                    self._end_sent()

        def answered(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: the run has ended with an error
                loop.call_soon_threadsafe(end)

        sent.answer.add_done_callback(answered)

    def _end_sent(self) -> None:
        """Take the answer of the ledger to the commit in its thread; without an answer yet, wait for it and block the event loop.

        :raises LedgerError: as :meth:`commit`.
        """
        if self._sent is None:
            return
        sent, self._sent = self._sent, None
        try:
            answer = sent.answer.result()
        except Exception as error:
            self._refused(sent.commit, error)
            raise
        finally:
            sent.ended.set_result(None)
        self._accepted(sent.commit, answer)
        if self._waiting:
            self.commit_soon()

    def _take(self) -> Commit:
        """Return all emitted events and claims, which are no longer emitted."""
        waiting = [item for item in self._waiting if not item[2].done()]
        commit = Commit(self._emitted, self._judged, waiting)
        self._emitted, self._judged, self._waiting = [], 0, []
        return commit

    def _call(self, commit: Commit) -> tuple[str, Sequence[Any]] | None:
        """Return the method of the ledger for *commit*, and its arguments; None if there is nothing to commit."""
        if commit.waiting:  # all claims are of one run, so any *lost* fits all of them
            claims = [claim for claim, _, _ in commit.waiting]
            return "reserve", (claims, commit.waiting[-1][1], events_of(commit.records))
        if commit.judged and self._appends_judged:
            return "append_judged", (commit.records,)
        return ("append", (events_of(commit.records),)) if commit.records else None

    def _refused(self, commit: Commit, error: Exception) -> None:
        self._emitted, self._judged = commit.records + self._emitted, commit.judged + self._judged
        for _, _, answer in commit.waiting:
            if not answer.done():
                answer.set_exception(error)

    def _accepted(self, commit: Commit, refusals: Any) -> None:
        self._committed += commit.records
        for (claim, _, answer), refusal in zip(commit.waiting, refusals if commit.waiting else (), strict=True):
            self._committed += [claim.event] if refusal is None else []
            if not answer.done():
                answer.set_result(refusal)
            elif refusal is None:  # the claim was withdrawn while the ledger granted it
                self._emitted.append(self._release(claim.event))
                self.commit_soon()

    def _release(self, reserved: Event) -> Event:
        """Return the end of a reservation that no call uses."""
        id_, now = self.clock.stamp()
        payload = {"reservation_id": reserved.payload["reservation_id"]}
        return evolve(reserved, id=id_, type=SPEND_RELEASED, time=now, payload=payload)

    async def flush(self) -> None:
        """Commit, then publish."""
        if isinstance(self._ledger, AwaitedLedger):
            await self._commit_in_thread(self._ledger)
        else:
            self.commit()
        await self.pass_on()

    async def _commit_in_thread(self, ledger: AwaitedLedger) -> None:
        """Commit like :meth:`commit`, while the event loop runs other tasks."""
        while (sent := self._sent) is not None:
            await asyncio.wait([sent.ended])
        self._send(ledger)
        if (sent := self._sent) is not None:
            await asyncio.wait([sent.ended])
            sent.answer.result()

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
        if records and self.feeds:
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


def _appends_judged(ledger: object) -> bool:
    """Return False if the ledger has no ``append_judged``, or if its class has an ``append`` of its own and inherits or passes on the other."""
    if isinstance(ledger, AwaitedLedger):
        return _appends_judged(ledger.live)
    members = (vars(class_) for class_ in type(ledger).__mro__)
    return next(("append_judged" in names for names in members if not names.keys().isdisjoint(_APPENDS)), False)
