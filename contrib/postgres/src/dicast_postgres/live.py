"""The live ledger: changes in the event loop of its thread, and readers with connections of their own in any thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

import psycopg

from dicast import Claim, Entry, Event, Head, JudgedRow, Lease, LedgerError, Query, Refusal, Verification

from .reading import Readers, Snapshot, all_lines, block_columns, digest_at, entries, entries_at, newest_block, records
from .server import Server
from .versions import prepare
from .writer import HeldLease, Writer

if TYPE_CHECKING:
    from dicast.reading import ActivityColumns, VerdictColumns
    from dicast.reading.blocks.spent import Spent
    from dicast.reading.names import SharedNames
    from dicast.toolkit.ledger_lines.erasing import Erasable

_OVER = "until < clock_timestamp()"
_UNTIL = """CASE WHEN until = '-infinity' THEN '' ELSE to_char(until, 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') END"""

_TAKE = """INSERT INTO leases VALUES (%(run)s, 1, %(owner)s, clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (run_id) DO UPDATE SET token = leases.token + 1, owner = excluded.owner, until = excluded.until
    WHERE leases.token = %(before)s RETURNING token"""
_RENEW = """UPDATE leases SET until = clock_timestamp() + make_interval(secs => %s) WHERE run_id = %s AND token = %s RETURNING token"""
_RELEASE = """WITH lease AS (SELECT %s::text AS run_id, %s::bigint AS token), escrow AS (
        UPDATE accounts SET escrow = 0 FROM lease JOIN leases USING (run_id, token) WHERE accounts.run_id = lease.run_id AND escrow > 0),
    unused AS (DELETE FROM leases USING lease WHERE leases.run_id = lease.run_id AND leases.token = lease.token AND lease.token = 1
        AND NOT EXISTS (SELECT 1 FROM chains WHERE chains.run_id = lease.run_id) RETURNING 1)
    UPDATE leases SET until = '-infinity' FROM lease WHERE leases.run_id = lease.run_id AND leases.token = lease.token
        AND NOT EXISTS (SELECT 1 FROM unused) RETURNING 1"""


@asynccontextmanager
async def open_ledger(
    url: str, schema: str, *, store_content: bool, seconds: float, create: bool
) -> AsyncIterator[PostgresLedger]:
    """Open the ledger in a schema of the database at *url*. *seconds* is the time to wait for the server after a lost connection.

    :raises dicast.LedgerRefused: if the server cannot be reached, or the schema has another version.
    """
    server = Server.of(url, schema)
    try:
        connection = await server.connect()
        try:
            await prepare(connection, server, create=create)
        except BaseException:
            await connection.close()
            raise
    except psycopg.Error as error:
        raise server.refused(error) from error
    writer = Writer(server, connection, store_content=store_content, timeout=seconds)
    with closing(Readers(server, seconds if create else 0.0)) as readers:
        try:
            yield PostgresLedger(writer, readers, keeps_content=store_content)
        finally:
            await writer.close()


class PostgresLedger:
    """An open ledger in PostgreSQL. *keeps_content* is True if the judged texts can be read back."""

    def __init__(self, writer: Writer, readers: Readers, *, keeps_content: bool) -> None:
        self.keeps_content = keeps_content
        self._writer, self._readers = writer, readers

    async def append(self, events: Sequence[Event]) -> Head:
        """Append *events* in one transaction. ``spend.*`` events also move the amounts that :meth:`reserve` reads.

        :raises LedgerError: if nothing was appended, or the server did not answer. Then a later call leaves out the events that are there.
        """
        return await self.append_judged(events)

    async def append_judged(self, records: Sequence[Any]) -> Head:
        """Append *records* in one transaction: events, and judged subjects in place of their three events.

        :raises LedgerError: if nothing was appended.
        """
        head = await self._writer.append(records)
        return head or self.head() or Head(0, bytes(32).hex())

    async def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Append *before*, close each reservation whose lease is over, and grant each of *claims* whose caps all hold, in one transaction.

        :raises LedgerError: if nothing was appended.
        """

        def lost_events(seqs: Sequence[int]) -> list[Event]:
            return [lost(entry) for entry in self._entries(seqs)]

        return await self._writer.reserve(claims, lost_events, before)

    async def erase(
        self, subject_id: str | None, before: str | None, erased: Callable[[Sequence[str]], Event]
    ) -> Erasable:
        """Remove the texts of a subject, a turn or a session, or the texts from before a time that no later event has. Verdicts and the chain stay.

        *erased* returns the event about the digests, which is appended in the same transaction. Nothing is appended without a content to remove. The table of
        contents is written again without the bytes of the texts. The server's log and backups may have them still.

        :raises LedgerError: if nothing was removed because of an error, or the user does not own the table.
        """
        from dicast.toolkit.ledger_lines.erasing import erasable  # no run needs it

        def read(snapshot: Snapshot) -> Erasable:
            def content(digest: str) -> bytes | None:
                return snapshot.content([digest]).get(digest)

            return erasable(all_lines(snapshot), content, subject_id, before)

        result = self._readers.result_of(read)
        if result.digests:
            await self._writer.append([erased(result.digests)], result.digests)
            self._readers.answer_of(lambda connection: connection.execute("VACUUM FULL texts"))
        return result

    async def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds*, and return None; or return the lease that blocks it, which is neither over nor *dead*."""
        while True:
            before = self.lease_of(run_id)
            if before is not None and not before.over and not dead(before):
                return before
            values = {"run": run_id, "owner": owner, "seconds": seconds, "before": before.token if before else 0}
            if row := await self._writer.execute(_TAKE, values):
                self._writer.lease = HeldLease(run_id, row[0], seconds)
                return None

    async def renew_lease(self) -> None:
        """Renew the lease that this live object holds.

        :raises LedgerError: if another owner has taken it, or the server cannot be reached.
        """
        lease = self._writer.lease
        if lease is not None and not await self._writer.execute(_RENEW, (lease.seconds, lease.run_id, lease.token)):
            raise LedgerError(f"run {lease.run_id} has lost its lease: another process has taken over the run")

    async def release_lease(self) -> None:
        """Give back the lease of this live object, and the escrow of its run. A lost lease is ignored."""
        lease, self._writer.lease = self._writer.lease, None
        if lease is not None:
            await self._writer.execute(_RELEASE, (lease.run_id, lease.token))

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run; None if it never had a lease."""
        query = f"SELECT token, owner, {_UNTIL}, {_OVER} FROM leases WHERE run_id = %s"
        row = self._readers.answer_of(lambda connection: connection.execute(query, (run_id,)).fetchone())
        return None if row is None else Lease(run_id, *row)

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*, from the state of the ledger when the first row is requested. Only the newest row has a digest.

        :raises LedgerError: if the server cannot be reached, or a block was changed.
        """
        return self._readers.rows_of(lambda snapshot: entries(snapshot, query))

    def read_judged(self, run_id: str, after: int = 0) -> Iterator[tuple[int, Event | JudgedRow]]:
        """Yield the events of a run after the row *after*, each with its number. A judged subject is in the place of its three events, with the number of the first.

        :raises LedgerError: if the server cannot be reached, or a block was changed.
        """
        return self._readers.rows_of(lambda snapshot: records(snapshot, run_id, after))

    @cached_property
    def _names(self) -> SharedNames:
        from dicast.reading.names import SharedNames  # no run needs it

        return SharedNames()

    def verdict_columns(self, run_id: str | None = None) -> VerdictColumns:
        """Return the verdicts and failures of the ledger, or of one run, as columns.

        :raises LedgerError: if the server cannot be reached, or a block was changed.
        """
        from dicast.reading.blocks.block_columns import VERDICTS  # no run needs it
        from dicast.reading.blocks.merging import merge_verdicts

        return self._readers.result_of(
            lambda snapshot: merge_verdicts(
                block_columns(snapshot, Query(run_id, VERDICTS.types)), run_id, self._names.get(run_id)
            )
        )

    def pricing_version(self, run_id: str | None = None) -> str | None:
        """Return the version of the price list of the newest verdict of the ledger, or of one run, that has one.

        :raises LedgerError: if the ledger cannot be read.
        """
        from dicast.reading.blocks.block_columns import VERDICTS  # no run needs it
        from dicast.reading.blocks.merging import newest_pricing_version

        return self._readers.result_of(
            lambda snapshot: newest_pricing_version(block_columns(snapshot, Query(run_id, VERDICTS.types)), run_id)
        )

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return the events of *types* of the ledger or of one run, as columns.

        :raises LedgerError: if the server cannot be reached, or a block was changed.
        """
        from dicast.reading.blocks.merging import merge_activity  # no run needs it

        return self._readers.result_of(
            lambda snapshot: merge_activity(
                block_columns(snapshot, Query(run_id, tuple(types))), run_id, types, self._names.get(run_id)
            )
        )

    def open_judgments(self, run_id: str | None = None) -> Sequence[Entry]:
        """Return the ``eval.started`` entries of the ledger, or of one run, without a verdict or failure yet, oldest first.

        :raises LedgerError: if the server cannot be reached, or a block was changed.
        """
        from dicast.reading.blocks.block_columns import EVALS  # no run needs it
        from dicast.reading.blocks.merging import open_starts

        return self._readers.result_of(
            lambda snapshot: entries_at(snapshot, open_starts(block_columns(snapshot, Query(run_id, EVALS))))
        )

    def spent(self, run_id: str | None = None) -> Spent | None:
        """Return the spending of the ledger, or of one run; None if an event has another form than its type.

        :raises LedgerError: if the server cannot be reached, or a block was changed.
        """
        from dicast.reading.blocks.block_columns import SPENT  # no run needs it
        from dicast.reading.blocks.merging import merge_spent

        return self._readers.result_of(
            lambda snapshot: merge_spent(block_columns(snapshot, Query(run_id, SPENT.types)), self._names.get(run_id))
        )

    def head(self) -> Head | None:
        """Return the newest row, with the digest of its run's chain; None for an empty ledger."""
        newest = self._readers.result_of(newest_block)
        return None if newest is None else Head(newest[0], newest[1].hex())

    def digest_of(self, seq: int) -> str | None:
        """Return the digest of the line whose last event has the number *seq*, in the chain of its run; None if there is no such line.

        :raises LedgerError: if the server cannot be reached, or the block was changed.
        """
        return self._readers.result_of(lambda snapshot: digest_at(snapshot, seq))

    def prove(self, eval_id: str, until: int | None = None) -> dict[str, Any]:
        """Return a document which shows that the verdict with this id is in the chain of its run; see :class:`dicast.optional.HasProofs`.

        :raises LedgerError: if the ledger does not have it, or the server cannot be reached.
        """
        from .proving import prove  # no run needs it

        return self._readers.result_of(lambda snapshot: prove(snapshot, eval_id, until))

    def verify(self, head: str | None = None) -> Verification:
        """Check all chains and all tables; with *head*, also that a line has this digest."""
        from .check import verify  # no run needs it

        return self._readers.result_of(lambda snapshot: verify(snapshot, head))

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``spend.reserved`` entries of *run_id*, or of all runs, that are not settled, released or lost, oldest first."""
        query = "SELECT seq FROM reservations WHERE run_id = %(run)s OR %(run)s::text IS NULL ORDER BY seq"

        def read(snapshot: Snapshot) -> Sequence[Entry]:
            return entries_at(snapshot, [seq for (seq,) in snapshot.connection.execute(query, {"run": run_id})])

        return self._readers.result_of(read)

    def _entries(self, seqs: Sequence[int]) -> Sequence[Entry]:
        return self._readers.result_of(lambda snapshot: entries_at(snapshot, seqs))
