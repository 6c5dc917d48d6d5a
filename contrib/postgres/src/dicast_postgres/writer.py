"""The writer of a live ledger: changes, which are repeated after a lost connection without being made twice."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

import attrs
import orjson
import psycopg

from dicast import Cap, Claim, Cost, Event, Head, JudgedRow, LedgerError, Refusal
from dicast.toolkit.ledger_lines import Encoder
from dicast.toolkit.ledger_lines.blocks import Columns

from .changes import BLOCKS, Blocks, Claims
from .server import STALE, Naps, Server, is_transient

_MOST_STALE = 20
"""Most attempts of a reservation while other processes close the same reservations."""

_FULL_SECONDS = 1.0
"""Seconds after which a reservation looks again for reservations of runs whose lease is over."""

_APPEND = f"SELECT * FROM append_blocks(%s, %s, %s, %s, %s, {BLOCKS})"
_ERASE = f"SELECT * FROM erase_texts(%s, %s, %s, %s, %s, {BLOCKS}, %b::bytea[])"
_RESERVE = f"""SELECT * FROM reserve_claims(%s, %s, %s, %s, %s, {BLOCKS}, %s::timestamptz, %s, %b::text[], %s::jsonb,
    %b::bytea[], %b::text[])"""

_WITHDRAW = """INSERT INTO changes VALUES (%(client)s, %(change)s, 0, NULL, NULL, clock_timestamp()) ON CONFLICT (client) DO UPDATE
    SET change = excluded.change, last = 0, digest = NULL, answers = NULL, at = excluded.at WHERE changes.change < excluded.change
    RETURNING change"""
"""Withdraw a change that is not made. If its transaction is still under way, this waits for its end. A withdrawn change is 0 in ``last``."""

_IS_MADE = "SELECT last IS DISTINCT FROM 0 FROM changes WHERE client = %(client)s"

_SUMS = "SELECT coalesce(sum(spent), 0), coalesce(sum(held), 0) FROM accounts WHERE scope = %s AND unit = %s"


@attrs.frozen
class HeldLease:
    """The lease that a live ledger holds, which a change renews for *seconds*."""

    run_id: str
    token: int
    seconds: float


class Writer:
    """Writer of one live ledger, in its event loop. One change is made at a time."""

    def __init__(
        self, server: Server, connection: psycopg.AsyncConnection[Any], *, store_content: bool, timeout: float
    ) -> None:
        self.server = server
        self.lease: HeldLease | None = None
        self._connection: psycopg.AsyncConnection[Any] | None = connection
        self._encoder = Encoder(store_content=store_content)
        self._packed: Columns | None = None
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._client, self._change = secrets.token_hex(16), 0
        self._last_full = -_FULL_SECONDS
        self._doubt: Sequence[Any] | None = None
        """Records of the newest change, if it is not answered: the server may have made it."""
        self._written = set[str]()
        """Ids of the events of changes that were made and not answered."""

    def _columns(self, lines: Iterable[Sequence[Any]]) -> bytes:
        """Return the columns of a block with these parsed lines."""
        if self._packed is None:
            from dicast.reading.blocks.making import packed_columns  # small appends have no columns

            self._packed = packed_columns(self._encoder.makers)
        return self._packed(lines)

    async def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if self._change:
                with suppress(psycopg.Error):  # the row of a lost connection stays, and hinders nobody
                    await connection.execute("DELETE FROM changes WHERE client = %s", (self._client,))
            await connection.close()

    async def append(self, records: Sequence[Any], erased: Sequence[str] | None = None) -> Head | None:
        """Append *records*. In the same transaction, remove the contents with the digests *erased*. Return None if all records are there already.

        :raises LedgerError: if nothing was appended, or the server did not answer.
        """
        async with self._lock:
            try:
                records = await self._unwritten(records)
                if not records:
                    return None
                blocks = Blocks.of(self._encoder, records, self._columns)
                self._begin(records)
                values = (*self._header(), *blocks.arguments())
                if erased is None:
                    seq, digest = await self._repeated(_APPEND, values)
                else:
                    digests = [bytes.fromhex(text) for text in erased]
                    seq, digest = await self._repeated(_ERASE, (*values, digests))
                self._doubt = None
            except BaseException as error:
                self._encoder.forget()
                if isinstance(error, psycopg.Error):
                    raise self.server.fault(error) from error
                raise
            return Head(seq, digest.hex())

    async def reserve(
        self,
        claims: Sequence[Claim],
        lost: Callable[[Sequence[int]], Sequence[Event]],
        before: Sequence[Event],
    ) -> list[Refusal | None]:
        """Append *before*, and decide *claims*. *lost* makes the events for the reservations with these numbers, whose lease is over.

        :raises LedgerError: if nothing was appended, or the server did not answer.
        """
        async with self._lock:
            try:
                before = await self._unwritten(before)
                self._begin(before)
                refusals = await self._reserve(claims, lost, before)
                self._doubt = None
                return refusals
            except BaseException as error:
                self._encoder.forget()
                if isinstance(error, psycopg.Error):
                    raise self.server.fault(error) from error
                raise

    async def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the row of a statement that may be made twice.

        :raises LedgerError: if it fails.
        """
        async with self._lock:
            try:
                return await self._repeated(statement, values)
            except psycopg.Error as error:
                raise self.server.fault(error) from error

    async def _reserve(
        self,
        claims: Sequence[Claim],
        lost: Callable[[Sequence[int]], Sequence[Event]],
        before: Sequence[Event],
    ) -> list[Refusal | None]:
        for _ in range(_MOST_STALE):
            now = time.monotonic()
            is_full = now - self._last_full >= _FULL_SECONDS
            expired, answers = await self._decide(claims, before, is_full=is_full, ids=None)
            if expired:
                self._encoder.forget()
                events = lost(expired)
                ids = [str(event.payload["reservation_id"]) for event in events]
                try:
                    _, answers = await self._decide(claims, [*before, *events], is_full=is_full, ids=ids)
                except psycopg.Error as error:
                    if error.sqlstate != STALE:
                        raise
                    self._encoder.forget()
                    continue
            if is_full:
                self._last_full = now
            return answers
        raise LedgerError(
            f"{self.server.place}: other processes close the same reservations all the time: repeat the run"
        )

    async def _decide(
        self, claims: Sequence[Claim], before: Sequence[Event], *, is_full: bool, ids: Sequence[str] | None
    ) -> tuple[Sequence[int], list[Refusal | None]]:
        blocks, arguments = Blocks.of(self._encoder, before, self._columns), Claims.of(self._encoder, claims)
        values = (
            *(*self._header(), *blocks.arguments(), claims[-1].event.time, is_full, ids),
            *(_json(arguments.rows), arguments.leaves, arguments.lines),
        )
        expired, answers = await self._repeated(_RESERVE, values)
        refusals = [
            _refusal(claim, places, answer)
            for claim, places, answer in zip(claims, arguments.places, answers or [], strict=not expired)
        ]
        caps = {refusal.cap.scope: refusal.cap for refusal in refusals if refusal is not None}
        sums = {scope: await self._sums(cap) for scope, cap in caps.items()}
        return expired or [], [
            None if refusal is None else _with_spent(refusal, *sums[refusal.cap.scope]) for refusal in refusals
        ]

    async def _sums(self, cap: Cap) -> tuple[Any, ...]:
        """Return the spent and the reserved amount in the scope of *cap*, after the claims were decided."""
        return await self._repeated(_SUMS, (cap.scope, cap.limit.unit))

    def _begin(self, records: Sequence[Any]) -> None:
        """Number a change. Its records are kept until the server answers."""
        self._change += 1
        self._doubt = tuple(records)

    async def _unwritten(self, records: Sequence[Any]) -> Sequence[Any]:
        """Return *records* without the records that an unanswered change has written.

        :raises psycopg.Error: if the server does not answer.
        """
        if self._doubt is not None:
            values = {"client": self._client, "change": self._change}
            await self._repeated(_WITHDRAW, values)
            (is_made,) = await self._repeated(_IS_MADE, values)
            self._written.update(id_ for record in self._doubt if is_made for id_ in _ids_of(record))
            self._doubt = None
        if not self._written:
            return records
        return [record for record in records if self._written.isdisjoint(_ids_of(record))]

    def _header(self) -> tuple[Any, ...]:
        lease = self.lease
        fence = (None, None, None) if lease is None else (lease.run_id, lease.token, lease.seconds)
        return (self._client, self._change, *fence)

    async def _repeated(self, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the row of a statement. It is repeated after a deadlock, and after a lost connection for the time of the timeout.

        :raises psycopg.Error: if it fails.
        """
        naps = Naps(self._timeout)
        while True:
            try:
                if self._connection is None:
                    self._connection = await self.server.connect()
                cursor = await self._connection.execute(statement, values)
                return await cursor.fetchone() or ()
            except psycopg.Error as error:
                if is_transient(error):
                    continue
                await self._disconnect()
                if (nap := naps.next_nap(error)) is None:
                    raise
                await asyncio.sleep(nap)
            except BaseException:
                await self._disconnect()  # the state of the statement is not known
                raise

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _ids_of(record: Event | JudgedRow) -> Sequence[str]:
    return record.ids if isinstance(record, JudgedRow) else (record.id,)


def _json(rows: Sequence[Any]) -> str:
    return orjson.dumps(rows).decode()


def _refusal(claim: Claim, places: Sequence[int], answer: int) -> Refusal | None:
    return None if not answer else Refusal(claim.caps[places[abs(answer) - 1]], wait=answer < 0)


def _with_spent(refusal: Refusal, spent: Decimal, held: Decimal) -> Refusal:
    amount = spent + held if refusal.wait else spent
    return attrs.evolve(refusal, spent=Cost(amount, refusal.cap.limit.unit))
