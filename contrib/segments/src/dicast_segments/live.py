"""The live ledger."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Claim, Entry, Event, Head, JudgedRow, Lease, LedgerError, Query, Refusal, Verification
from dicast.toolkit.ledger_lines import Encoder
from dicast.toolkit.ledger_lines.chain import chain_of

from .lines import Row
from .log import Draft, Log
from .reading import Reader, event_at
from .state import NO_TIME, State, time_text

if TYPE_CHECKING:
    from dicast.reading import ActivityColumns, VerdictColumns
    from dicast.reading.blocks.spent import Spent
    from dicast.reading.names import SharedNames

_RENEWED_BELOW = 2 / 3
"""Remaining share of a lease below which an append renews it."""


class _Stale(Exception):
    """A claim is refused for a state that may be old: a refusal writes nothing, so it would not find out about other writers."""


@attrs.define
class HeldLease:
    """The lease that a live ledger holds."""

    run_id: str
    token: int
    owner: str
    seconds: float


class SegmentLedger:
    """An open ledger. Its methods may be called from any thread."""

    def __init__(self, log: Log, *, store_content: bool) -> None:
        self._log = log
        self._encoder = Encoder(store_content=store_content)
        self.keeps_content = store_content
        self._lock = threading.RLock()
        self._reader = Reader(log, self._lock)
        self._lease: HeldLease | None = None

    def close(self) -> None:
        """Seal the appended events.

        :raises LedgerError: if they cannot be sealed. They stay in the log.
        """
        with self._lock:
            self._log.close()

    def append(self, events: Sequence[Event]) -> Head:
        """Append *events* as one commit, durable on return.

        :raises LedgerError: if no event was appended.
        """
        encoded = self._encoded(events)

        def decide(state: State) -> Draft | None:
            leases, rows = self._renewals(state), self._log.unwritten(encoded)
            state.record(rows)
            return Draft(rows, [row.line() for row in rows], leases) if rows or leases else None

        with self._lock:
            self._log.write(decide)
            state = self._log.state
            return Head(state.seq, state.digest.hex())

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Append *before*, close each reservation whose lease is over, and grant each of *claims* whose caps all hold, as one commit.

        :meth:`dicast.Ledger.reserve` has the rules.

        :raises LedgerError: if nothing was appended.
        """
        first, claim_rows = self._encoded(before), self._encoded([claim.event for claim in claims])
        refusals: list[Refusal | None] = []
        is_fresh = False

        def decide(state: State) -> Draft | None:
            refusals.clear()
            leases = self._renewals(state)
            money, rows = state.money, list[Row]()

            def add(row: Row) -> None:
                rows.append(row)
                if row.columns[1].startswith("spend."):
                    money.record(state.seq + len(rows), row, row.event().payload)

            for row in self._log.unwritten(first):
                add(row)
            for reservation in money.expired(claims[-1].event.time, time_text(time.time()), state.lease_end):
                add(*self._encoded([lost(self._entry(state, reservation.seq, reservation.row))]))
            for claim, row in zip(claims, claim_rows, strict=True):
                refusals.append(money.refusal(claim.caps, claim.event))
                if refusals[-1] is None:
                    add(row)
            if not is_fresh and any(refusals):
                raise _Stale
            return Draft(rows, [row.line() for row in rows], leases) if rows or leases else None

        with self._lock:
            try:
                self._log.write(decide)
            except _Stale:
                self._log.refresh()
                is_fresh = True
                self._log.write(decide)
            return refusals

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``spend.reserved`` entries of *run_id*, or of all runs, that are not settled, released or lost, oldest first."""
        with self._lock:
            self._log.refresh()
            state = self._log.state
            open_ = sorted(state.money.open.values(), key=lambda reservation: reservation.seq)
            return [
                self._entry(state, reservation.seq, reservation.row)
                for reservation in open_
                if run_id in (None, reservation.run_id)
            ]

    def head(self) -> Head | None:
        """Return the newest row, or None for an empty ledger."""
        with self._lock:
            self._log.refresh()
            state = self._log.state
            return Head(state.seq, state.digest.hex()) if state.seq else None

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*, up to the newest row when the first is requested. Only the newest row has a digest.

        ``query.until`` is compared as text: give it in the form of the events' times.

        :raises LedgerError: if a file is missing or was changed.
        """
        head, low, high = self._reader.bounds(query.run_id)
        for seq, row in islice(self._reader.rows(query, max(query.after, low), high), query.limit):
            yield Entry(seq, event_at(seq, row), "", head.digest if seq == head.seq else "")

    @cached_property
    def _names(self) -> SharedNames:
        from dicast.reading.names import SharedNames  # no run needs it

        return SharedNames()

    def read_judged(self, run_id: str, after: int = 0) -> Iterator[tuple[int, Event | JudgedRow]]:
        """Yield the events of a run after the event *after* with their numbers; a free subject that was judged at once is one value, with the number of its first event.

        :raises LedgerError: if a file is missing or was changed.
        """
        from .judged import records_of  # most runs read no records

        _, low, high = self._reader.bounds(run_id)
        yield from records_of(self._reader.rows(Query(run_id), max(after, low), high))

    def verdict_columns(self, run_id: str | None = None) -> VerdictColumns:
        """Return the verdicts and failures of the ledger, or of one run, as columns.

        :raises LedgerError: if a file is missing or was changed.
        """
        from dicast.reading.blocks.block_columns import VERDICTS  # no run needs it
        from dicast.reading.blocks.merging import merge_verdicts

        return self._reader.merged(
            run_id, VERDICTS.types, lambda blocks: merge_verdicts(blocks, run_id, self._names.get(run_id))
        )

    def pricing_version(self, run_id: str | None = None) -> str | None:
        """Return the version of the price list of the newest verdict of the ledger, or of one run, that has one.

        :raises LedgerError: if a file is missing or was changed.
        """
        from dicast.reading.blocks.block_columns import VERDICTS  # no run needs it
        from dicast.reading.blocks.merging import newest_pricing_version

        return self._reader.merged(run_id, VERDICTS.types, lambda blocks: newest_pricing_version(blocks, run_id))

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return the events of *types* of the ledger or of one run, as columns.

        :raises LedgerError: if a file is missing or was changed.
        """
        from dicast.reading.blocks.merging import merge_activity  # no run needs it

        return self._reader.merged(
            run_id, types, lambda blocks: merge_activity(blocks, run_id, types, self._names.get(run_id))
        )

    def open_judgments(self, run_id: str | None = None) -> Sequence[Entry]:
        """Return the ``eval.started`` entries of the ledger, or of one run, without a verdict or failure yet, oldest first.

        :raises LedgerError: if a file is missing or was changed.
        """
        from dicast.reading.blocks.block_columns import EVALS  # no run needs it
        from dicast.reading.blocks.merging import open_starts

        seqs = self._reader.merged(run_id, EVALS, open_starts)
        return [entry for entry in self._reader.entries(seqs) if run_id in (None, entry.event.run_id)]

    def spent(self, run_id: str | None = None) -> Spent | None:
        """Return the spending of the ledger, or of one run, which may include other runs; None if an event has another form than its type.

        :raises LedgerError: if a file is missing or was changed.
        """
        from dicast.reading.blocks.block_columns import SPENT  # no run needs it
        from dicast.reading.blocks.merging import merge_spent

        return self._reader.merged(run_id, SPENT.types, lambda blocks: merge_spent(blocks, self._names.get(run_id)))

    def digest_of(self, seq: int) -> str | None:
        """Return the digest of the event with the number *seq*; None if there is none.

        :raises LedgerError: if a file is missing or was changed.
        """
        with self._lock:
            self._log.refresh()
            if not 0 < seq <= self._log.state.seq:
                return None
            _, first, _ = self._log.bounds_at(seq)
        prev = self._reader.prev(first)
        return chain_of(prev, (row.line() for _, row in self._reader.rows(Query(), first - 1, seq)))[-1].hex()

    def prove(self, eval_id: str, until: int | None = None) -> dict[str, Any]:
        """Return a document which shows that the verdict with this id is in the ledger; see :class:`dicast.optional.HasProofs`.

        :raises LedgerError: if the ledger does not have it.
        """
        from .proving import prove  # no run needs it

        return prove(self._reader.rows, self.digest_of, eval_id, self._end() if until is None else until)

    def verify(self, head: str | None = None) -> Verification:
        """Check all segments and commits; with *head*, also that a row has this digest."""
        return self.verify_in(1, head)

    def verify_in(self, jobs: int, head: str | None = None) -> Verification:
        """Check the ledger as :meth:`verify` does, in *jobs* processes."""
        from .verification import verify  # no run needs it

        return verify(self._log.store, head, jobs)

    def erase(self, subject_id: str | None, before: str | None, erased: Callable[[Sequence[str]], Event]) -> Any:
        """Remove the contents of a subject, turn or session, or the contents from before a time that no later event has. Verdicts and the chain stay.

        *erased* returns the event about the digests, which is appended first. Nothing is appended without a content to remove.

        :raises LedgerError: if not all contents were removed. Repeat the call.
        """
        from .erasing import erasable, erase  # no run needs it

        rows = self._reader.rows(Query(), 0, self._end())
        result = erasable((row for _, row in rows), subject_id, before)
        if result.digests:
            with self._lock:
                self.append([erased(result.digests)])
                erase(self._log, self._erasures, self._log.state.seq)
        return result

    def _end(self) -> int:
        head = self.head()
        return 0 if head is None else head.seq

    def _erasures(self) -> dict[str, int]:
        """Return the digests of erased contents, each with the number of the event of its newest erasure."""
        seqs = dict[str, int]()
        for entry in self.read(Query(types=("content.erased",))):
            payload: Mapping[str, Any] = entry.event.payload
            seqs.update(dict.fromkeys(payload["digests"], entry.seq))
        return seqs

    def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds*, and return None; or return the lease that blocks it, which is neither over nor *dead*."""
        blocking: list[Lease] = []
        tokens: list[int] = []

        def decide(state: State) -> Draft | None:
            blocking.clear()
            older = state.lease_of(run_id)
            if older is not None and not older.over and not dead(older):
                blocking.append(older)
                return None
            tokens[:] = [1 if older is None else older.token + 1]
            return Draft(leases=[(run_id, tokens[0], owner, time_text(time.time() + seconds))])

        with self._lock:
            self._log.refresh()
            self._log.write(decide)
            if blocking:
                return blocking[0]
            self._lease = HeldLease(run_id, tokens[0], owner, seconds)
            return None

    def renew_lease(self) -> None:
        """Renew the lease that this object holds, as each append does.

        :raises LedgerError: if another owner has taken it.
        """
        with self._lock:
            if self._lease is not None:
                self._log.refresh()
                self.append([])

    def release_lease(self) -> None:
        """End the lease that this object holds; do nothing if the lease was lost."""
        with self._lock:
            lease, self._lease = self._lease, None
            if lease is None:
                return

            def decide(state: State) -> Draft | None:
                newest = state.lease_of(lease.run_id)
                if newest is None or newest.token != lease.token:
                    return None
                return Draft(leases=[(lease.run_id, lease.token, lease.owner, NO_TIME)])

            self._log.refresh()
            self._log.write(decide)

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run; None if it never had one."""
        with self._lock:
            self._log.refresh()
            return self._log.state.lease_of(run_id)

    def _encoded(self, events: Sequence[Event]) -> list[Row]:
        """Return the rows of events.

        :raises LedgerError: if a value is not JSON.
        """
        with self._lock:
            return [Row.of(event, self._encoder) for event in events]

    def _renewals(self, state: State) -> list[tuple[str, int, str, str]]:
        """Return the change that renews the held lease if it is due.

        :raises LedgerError: if another owner has taken the lease.
        """
        lease = self._lease
        if lease is None:
            return []
        newest = state.lease_of(lease.run_id)
        if newest is None or newest.token != lease.token:
            raise LedgerError(
                f"run {lease.run_id} has lost its lease: another process has taken over the run. "
                "The recorded events stay, and this process records nothing more"
            )
        now = time.time()
        if newest.until >= time_text(now + lease.seconds * _RENEWED_BELOW):
            return []
        return [(lease.run_id, lease.token, lease.owner, time_text(now + lease.seconds))]

    def _entry(self, state: State, seq: int, row: Row) -> Entry:
        return Entry(seq, event_at(seq, row), "", state.digest.hex() if seq == state.seq else "")
