"""A ledger in memory, with the same guarantees as a ledger on disk."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import Any

import attrs
import orjson

from .._kernel.values import Cap, Claim, Cost, Entry, Event, Head, Lease, Query, Refusal, RunContext, Verification
from .._kernel.values.errors import LedgerError
from .._kernel.values.json_form import structure, unstructure

START = "0" * 64


@attrs.frozen
class Row:
    """An appended event: *text* is its canonical JSON, *prev* the digest of the row before."""

    text: bytes
    prev: str
    digest: str


@attrs.frozen
class Reservation:
    """A reservation: the row of its event, its payload, and its state (``open``, ``lost`` or ``closed``).

    *counted* is the unit and the amount that count for caps.
    """

    seq: int
    run_id: str
    payload: Mapping[str, Any]
    state: str = "open"
    counted: tuple[str, Decimal] = ("usd", Decimal(0))


@attrs.define
class Book:
    """State that all live objects of one :class:`MemoryLedger` share."""

    rows: list[Row] = attrs.field(factory=list)
    reservations: dict[str, Reservation] = attrs.field(factory=dict)
    leases: dict[str, Lease] = attrs.field(factory=dict)
    lock: threading.RLock = attrs.field(factory=threading.RLock)


@attrs.frozen
class MemoryLedger:
    """A ledger that lives as long as this object.

    Every ``open`` returns a live object on the same rows. It has no options.
    """

    _book: Book = attrs.field(init=False, factory=Book, eq=False, repr=False)

    @asynccontextmanager
    async def open(self, run: RunContext | None = None, create: bool = True) -> AsyncIterator[Live]:
        """Yield a live ledger. It always exists, so *create* has no effect."""
        yield Live(self._book)

    def __reduce__(self) -> tuple[type[MemoryLedger], tuple[()]]:
        return MemoryLedger, ()


class Live:
    """An open :class:`MemoryLedger`; see :class:`~dicast.Ledger` for the contract of its methods."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._lease: tuple[Lease, float] | None = None

    def append(self, events: Sequence[Event]) -> Head:
        """Append *events*, all or none."""
        with self._transaction():
            self._append(events)
            return self.head() or Head(0, START)

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*."""
        entries = self._entries(query.after)
        matches = (entry for entry in entries if _matches(entry.event, query))
        return itertools.islice(reversed(list(matches)) if query.newest_first else matches, query.limit)

    def head(self) -> Head | None:
        """Return the newest row."""
        rows = self._book.rows
        return Head(len(rows), rows[-1].digest) if rows else None

    def verify(self, head: str | None = None) -> Verification:
        """Check every row's digest and its link to the row before."""
        rows, prev = list(self._book.rows), START
        for seq, row in enumerate(rows, 1):
            if row.prev != prev or row.digest != _digest(prev, row.text):
                return Verification(len(rows), self.head(), seq, "its digest does not follow from its content")
            prev = row.digest
        if head is not None and head not in {row.digest for row in rows}:
            return Verification(len(rows), self.head(), len(rows) + 1, f"no row has the digest {head}")
        return Verification(len(rows), self.head())

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Append *before*, close reservations whose lease is over, and grant each of *claims* whose caps all hold."""
        with self._transaction():
            self._append(before)
            expired = [
                reservation
                for reservation in self._open()
                if _is_over(reservation, claims[-1].event) or self._has_ended_lease(reservation.run_id)
            ]
            self._append([lost(self._entry(reservation.seq)) for reservation in expired])
            return [self._decide(claim) for claim in claims]

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the open reservations of *run_id*, or of all runs, oldest first."""
        return [
            self._entry(reservation.seq)
            for reservation in self._open()
            if run_id is None or reservation.run_id == run_id
        ]

    def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds* and return None; return the current lease instead if it is neither over nor *dead*."""
        with self._book.lock:
            before = self.lease_of(run_id)
            if before is not None and not before.over and not dead(before):
                return before
            lease = Lease(run_id, before.token + 1 if before else 1, owner, _after(seconds))
            self._book.leases[run_id], self._lease = lease, (lease, seconds)
            return None

    def renew_lease(self) -> None:
        """Renew the lease that this object holds.

        :raises LedgerError: if another owner has taken it.
        """
        with self._book.lock:
            if self._lease is None:
                return
            (lease, seconds), newest = self._lease, self._book.leases.get(self._lease[0].run_id)
            if newest is None or newest.token != lease.token:
                raise LedgerError(f"run {lease.run_id} has lost its lease: another process has taken it up")
            self._book.leases[lease.run_id] = attrs.evolve(lease, until=_after(seconds))

    def release_lease(self) -> None:
        """End the lease that this object holds."""
        with self._book.lock:
            lease, self._lease = self._lease, None
            if lease is not None and self._book.leases[lease[0].run_id].token == lease[0].token:
                self._book.leases[lease[0].run_id] = attrs.evolve(lease[0], until="")

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run, or None if it never had one."""
        lease = self._book.leases.get(run_id)
        return None if lease is None else attrs.evolve(lease, over=lease.until < _after(0))

    def _has_ended_lease(self, run_id: str) -> bool:
        lease = self.lease_of(run_id)
        return lease is not None and lease.over

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        book = self._book
        with book.lock:
            self.renew_lease()
            rows, reservations = list(book.rows), dict(book.reservations)
            try:
                yield
            except BaseException:
                book.rows, book.reservations = rows, reservations
                raise

    def _append(self, events: Sequence[Event]) -> None:
        rows = self._book.rows
        for event in events:
            text, prev = _text(event), rows[-1].digest if rows else START
            rows.append(Row(text, prev, _digest(prev, text)))
            self._account(len(rows), event)

    def _decide(self, claim: Claim) -> Refusal | None:
        refusal = self._refusal(claim.event.payload, claim.caps)
        if refusal is None:
            self._append([claim.event])
        return refusal

    def _entries(self, after: int) -> Iterator[Entry]:
        return (self._entry(seq) for seq in range(max(0, after) + 1, len(self._book.rows) + 1))

    def _entry(self, seq: int) -> Entry:
        row = self._book.rows[seq - 1]
        return Entry(seq, structure(orjson.loads(row.text), Event), row.prev, row.digest)

    def _open(self) -> list[Reservation]:
        return [reservation for reservation in self._book.reservations.values() if reservation.state == "open"]

    def _refusal(self, payload: Mapping[str, Any], caps: Sequence[Cap]) -> Refusal | None:
        """Return a refusal by the first cap that can never hold, else by the first cap that holds once reservations are released; None if all caps hold.

        A zero amount always fits.
        """
        amount, unit = Decimal(payload["amount"]), payload["unit"]
        waiting = None
        for cap in caps:
            limit = cap.limit.amount
            if not amount or limit is None or cap.limit.unit != unit:
                continue
            spent = self._sum(("lost", "closed"), cap.scope, unit)
            if spent + amount > limit:
                return Refusal(cap, wait=False, spent=Cost(spent, unit))
            held = self._sum(("open",), cap.scope, unit)
            if waiting is None and spent + held + amount > limit:
                waiting = Refusal(cap, wait=True, spent=Cost(spent + held, unit))
        return waiting

    def _sum(self, states: Sequence[str], scope: str, unit: str) -> Decimal:
        in_scope = [
            reservation for reservation in self._book.reservations.values() if scope in reservation.payload["scopes"]
        ]
        return sum(
            (
                reservation.counted[1]
                for reservation in in_scope
                if reservation.state in states and reservation.counted[0] == unit
            ),
            Decimal(0),
        )

    def _account(self, seq: int, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        if event.type == "spend.reserved":
            if payload["reservation_id"] in self._book.reservations:
                raise LedgerError(f"the reservation {payload['reservation_id']} is made twice")
            reservation = Reservation(seq, event.run_id, payload, counted=_amount(payload))
            self._book.reservations[payload["reservation_id"]] = reservation
        elif event.type in ("spend.settled", "spend.released", "spend.lost"):
            self._close(event.type, payload)

    def _close(self, type_: str, payload: Mapping[str, Any]) -> None:
        """Close a reservation: ``settled`` and ``released`` close an open or lost reservation, ``lost`` an open reservation."""
        reservation = self._book.reservations.get(payload["reservation_id"])
        if (
            reservation is None
            or reservation.state == "closed"
            or (reservation.state == "lost" and type_ == "spend.lost")
        ):
            return
        if type_ == "spend.released":
            counted = (reservation.counted[0], Decimal(0))
        else:
            counted = _amount(reservation.payload if payload.get("amount") is None else payload)
        state = "lost" if type_ == "spend.lost" else "closed"
        self._book.reservations[payload["reservation_id"]] = attrs.evolve(reservation, state=state, counted=counted)


def _after(seconds: float) -> str:
    return (datetime.fromtimestamp(time.time(), UTC) + timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def _amount(payload: Mapping[str, Any]) -> tuple[str, Decimal]:
    return payload["unit"], Decimal(payload["amount"])


def _text(event: Event) -> bytes:
    try:
        return orjson.dumps(unstructure(event), default=unstructure, option=orjson.OPT_SORT_KEYS)
    except TypeError as error:
        raise LedgerError(f"event {event.id} ({event.type}) cannot be written as JSON: {error}") from error


def _digest(prev: str, text: bytes) -> str:
    return sha256(prev.encode() + b"\n" + text).hexdigest()


def _matches(event: Event, query: Query) -> bool:
    fields = ("run_id", "subject_kind", "subject_id", "session_id")
    if any(getattr(query, name) not in (None, getattr(event, name)) for name in fields):
        return False
    return (not query.types or event.type in query.types) and (query.until is None or event.time <= query.until)


def _is_over(reservation: Reservation, event: Event) -> bool:
    lease = reservation.payload.get("lease_until")
    return lease is not None and datetime.fromisoformat(lease) < datetime.fromisoformat(event.time)
