"""The live ledger of format 4."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dicast import Claim, Entry, Event, Head, JudgedRow, LedgerError, Query, Refusal, Verification
from dicast.toolkit.ledger_lines.amounts import claimed_amount

from ..opened import Opened
from ..spending import Spending
from .counting import count_later, counted
from .reading import digest_at, entries, entries_at
from .recent import Recent
from .rows import newest
from .writer import Prepared, Writer

if TYPE_CHECKING:
    from dicast.reading import ActivityColumns, VerdictColumns
    from dicast.reading.blocks.spent import Spent
    from dicast.reading.names import SharedNames
    from dicast.toolkit.ledger_lines.erasing import Erasable


class BlockLedger(Opened):
    """An open ledger of format 4."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, store_content: bool, timeout: float) -> None:
        super().__init__(path, connection, store_content=store_content, timeout=timeout)
        self._writer = Writer(connection, store_content=store_content)
        self._recent = Recent()

    @cached_property
    def _names(self) -> SharedNames:
        from dicast.reading.names import SharedNames  # no run needs it

        return SharedNames()

    def begin_converted(self, head: Head) -> None:
        """Make the first line of a new ledger from the newest row of an older ledger. The next append writes it."""
        self._writer.begin_converted(head)

    def append(self, events: Sequence[Event]) -> Head:
        """Append *events* in one transaction. They are compressed before it.

        ``spend.*`` events also move the amounts that :meth:`reserve` reads.

        :raises LedgerError: when nothing was appended.
        """
        return self.append_judged(events)

    def append_judged(self, records: Sequence[Any]) -> Head:
        """Append *records* in one transaction: events, and judged subjects in place of their three events.

        :raises LedgerError: when nothing was appended.
        """
        with self._writing():
            prepared = self._writer.prepare(records)
            with self._transaction() as spending:
                return self._write(prepared, spending)

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows that match *query*, from the state of the ledger when the first row is requested. Only the newest row has a digest.

        ``query.until`` is compared as text: give it in the form of the events' times.

        :raises LedgerError: when the file cannot be read.
        """
        with self._reading() as connection:
            yield from entries(connection, query, self._recent)

    def read_judged(self, run_id: str, after: int = 0) -> Iterator[tuple[int, Event | JudgedRow]]:
        """Yield the events of a run after the row *after*, each with its number. A judged subject is in the place of its three events, with the number of the first.

        :raises LedgerError: when the file cannot be read.
        """
        from .reading import records  # most runs read no records

        with self._reading() as connection:
            yield from records(connection, run_id, after)

    def verdict_columns(self, run_id: str | None = None) -> VerdictColumns:
        """Return the verdicts and failures of the ledger, or of one run, as columns.

        :raises LedgerError: if the file cannot be read.
        """
        from .merging import read_verdicts  # no run needs it

        with self._reading() as connection:
            return read_verdicts(connection, run_id, self._names.get(run_id))

    def pricing_version(self, run_id: str | None = None) -> str | None:
        """Return the version of the price list of the newest verdict of the ledger, or of one run, that has one.

        :raises LedgerError: if the file cannot be read.
        """
        from .merging import read_pricing_version  # no run needs it

        with self._reading() as connection:
            return read_pricing_version(connection, run_id)

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return the events of *types* of the ledger or of one run, as columns.

        :raises LedgerError: if the file cannot be read.
        """
        from .merging import read_activity  # no run needs it

        with self._reading() as connection:
            return read_activity(connection, run_id, types, self._names.get(run_id))

    def open_judgments(self, run_id: str | None = None) -> Sequence[Entry]:
        """Return the ``eval.started`` entries of the ledger, or of one run, without a verdict or failure yet, oldest first.

        :raises LedgerError: if the file cannot be read.
        """
        from dicast.reading.blocks.block_columns import STARTED  # no run needs them

        from .merging import read_open

        with self._reading() as connection:
            return list(entries_at(connection, read_open(connection, run_id), Query(run_id, (STARTED,))))

    def spent(self, run_id: str | None = None) -> Spent | None:
        """Return the spending of the ledger, or of one run, which may include other runs; None if an event has another form than its type.

        :raises LedgerError: if the file cannot be read.
        """
        from .merging import read_spent  # no run needs it

        with self._reading() as connection:
            return read_spent(connection, run_id, self._names.get(run_id))

    def head(self) -> Head | None:
        """Return the newest row, or None for an empty ledger."""
        with self._reader() as connection:
            head = newest(connection)
            return None if head is None else Head(head[0], head[1].hex())

    def digest_of(self, seq: int) -> str | None:
        """Return the digest of the line whose last event has the number *seq*; None if there is no such line.

        :raises LedgerError: if the file cannot be read.
        """
        with self._reading() as connection:
            return digest_at(connection, seq)

    def verify(self, head: str | None = None) -> Verification:
        """Check all lines and all tables; with *head*, also that a line has this digest."""
        from .check import verify  # no run needs it

        with self._reader() as connection:
            return verify(connection, head)

    def prove(self, eval_id: str, until: int | None = None) -> dict[str, Any]:
        """Return a document which shows that the verdict with this id is in the ledger; see :class:`dicast.optional.HasProofs`.

        :raises LedgerError: if the ledger does not have it.
        """
        from .proofs import prove  # no run needs it

        with self._reading() as connection:
            return prove(connection, eval_id, until)

    def erase(self, subject_id: str | None, before: str | None, erased: Callable[[Sequence[str]], Event]) -> Erasable:
        """Remove the texts of a subject, a turn or a session, or the texts from before a time that no later event has. Verdicts and the chain stay.

        The file has no bytes of them afterwards. *erased* returns the event about the digests, which is appended in the same transaction. Nothing is appended without a content to remove.

        :raises LedgerError: if nothing was removed because of an error, or the log of the file still has the texts.
        """
        from dicast.toolkit.ledger_lines.erasing import erasable  # no run needs it

        from .erasing import erase, lines_of
        from .texts import Texts

        with self._writing():
            with self._transaction(fenced=False) as spending:
                try:
                    content = Texts(self._connection).get
                    result = erasable(lines_of(self._connection), content, subject_id, before)
                except ValueError as error:
                    raise LedgerError(f"{self.path}: {error}: run dicast ledger verify") from error
                if result.digests:
                    erase(self._connection, result.digests)
                    self._write(self._writer.prepare([erased(result.digests)]), spending)
            self._forget()  # the writer may have the removed contents in memory
            self._overwrite()
            return result

    def _overwrite(self) -> None:
        """Write the file again without its free pages and its log, which may have removed contents.

        :raises LedgerError: if another process reads the file.
        """
        self._connection.execute("VACUUM")
        (is_busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise LedgerError(
                f"the texts are erased, but another process reads {self.path}, so its log still has them: "
                "give the same command again when the process has ended"
            )

    def reserve(
        self, claims: Sequence[Claim], lost: Callable[[Entry], Event], before: Sequence[Event] = ()
    ) -> Sequence[Refusal | None]:
        """Append *before*, close each reservation whose lease is over, and grant each of *claims* whose caps all hold, in one transaction.

        :meth:`dicast.Ledger.reserve` has the rules.

        :raises LedgerError: if nothing was appended.
        """
        with self._writing():
            writer = self._writer
            prepared = writer.prepare(before)
            with self._transaction() as spending:
                if before:
                    self._write(prepared, spending)
                expired = self._expired(spending, claims[-1].event.time)
                if expired:
                    self._write(writer.prepare([lost(self._entry(seq)) for seq in expired]), spending)
                granted: list[Event] = []
                refusals = []
                seq, _ = writer.newest()
                for claim in claims:
                    event = claim.event
                    refusals.append(spending.exceeded(claim.caps, *claimed_amount(event)))
                    if refusals[-1] is None:
                        granted.append(event)
                        spending.record(seq + len(granted), event.run_id, event.type, event.payload)
                self._put(writer.prepare(granted), spending)
                return refusals

    def reservations(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``spend.reserved`` entries of *run_id*, or of all runs, that are not settled, released or lost, oldest first."""
        with self._reading() as connection, counted(connection) as spending:
            return list(entries_at(connection, spending.open(run_id), Query()))

    def _write(self, prepared: Prepared, spending: Spending) -> Head:
        seq, _ = self._writer.newest()
        for number, event in prepared.spending:
            spending.record(seq + number, event.run_id, event.type, event.payload)
        return self._put(prepared, spending)

    def _put(self, prepared: Prepared, spending: Spending) -> Head:
        """Write lines whose amounts are recorded. A small append leaves the changes of amounts in memory."""
        head = self._writer.write(prepared)
        if prepared.ends_appends or spending.is_large:
            spending.count(head.seq)
        return head

    def _expired(self, spending: Spending, now: str) -> Sequence[int]:
        """Return the rows of the open reservations that are over."""
        ledgers_now = self._leases.now()
        if spending.is_calm(now, ledgers_now):
            return ()
        spending.count(self._writer.newest()[0])
        return spending.expired(now, ledgers_now)

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Open a reader. A block that cannot be read is an error of the ledger."""
        with self._reader() as connection:
            try:
                yield connection
            except (ValueError, LookupError) as error:
                raise LedgerError(f"{self.path}: {error}: run dicast ledger verify") from error

    def _entry(self, seq: int) -> Entry:
        for entry in entries_at(self._connection, [seq], Query()):
            return entry
        raise LedgerError(f"row {seq} of {self.path} is missing: run dicast ledger verify")

    def _forget(self) -> None:
        super()._forget()
        self._writer.forget()

    def _refresh(self) -> None:
        super()._refresh()
        self._writer.refresh(self._version)
        try:
            if count_later(self._connection, self._spending):
                self._spending.count(self._writer.newest()[0])
        except ValueError as error:
            raise LedgerError(f"{self.path}: {error}: run dicast ledger verify") from error
