"""Conversion of a ledger of format 2 or 3 into a new file of format 4."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from itertools import islice, zip_longest
from pathlib import Path

import attrs
import orjson

from dicast import Entry, Head, LedgerError, LedgerRefused, Query

from ..file import explain, open_file
from ..old import OldLedger
from ..old_chain import has_table
from .live import BlockLedger
from .schema import FORMAT, VERSIONS

_TOGETHER = 6_000
"""Events of one append."""

_TIMEOUT = 5.0


@attrs.frozen
class Conversion:
    """Result of a conversion: the number of events, and the newest rows of the old and of the new ledger."""

    events: int
    old_head: Head | None
    head: Head | None


def convert(old: Path, new: Path) -> Conversion:
    """Write the events of the ledger *old* into the new file *new*, and compare each of them with the old ledger.

    The chain of *old* is checked before. *old* is not changed, and *new* gets its name when it is complete.

    :raises LedgerRefused: if *old* has format 4, or *new* exists.
    :raises LedgerError: if *old* was changed or gets new events, or an event of *new* differs.
    """
    if new.exists():
        raise _exists(new)
    part = new.with_name(f".{new.name}.dicast-part")
    with closing(open_file(old, create=False, timeout=_TIMEOUT)) as connection:
        if connection.execute("PRAGMA user_version").fetchone()[0] in VERSIONS:
            raise LedgerRefused(f"{old} has format {FORMAT}: it needs no conversion")
        with closing(OldLedger(old, connection, store_content=True, timeout=_TIMEOUT)) as live:
            result = live.verify()
            if not result.ok:
                raise LedgerError(f"{old} was changed at row {result.bad_seq}, and is not converted: {result.reason}")
            has_leases = has_table(connection, "leases")
            leases = connection.execute("SELECT * FROM leases").fetchall() if has_leases else []
            _remove(part)
            try:
                conversion = _write(live, result.head, leases, part)
                if live.head() != result.head:
                    raise LedgerError(f"{old} has new events, and was not converted: let its run end, then convert it")
                _rename(part, new)
            except sqlite3.Error as error:
                _remove(part)
                raise LedgerError(explain(new, error, _TIMEOUT)) from error
            except BaseException:
                _remove(part)
                raise
    return conversion


def _exists(new: Path) -> LedgerRefused:
    return LedgerRefused(f"{new} exists: choose a new file for the converted ledger")


def _rename(part: Path, new: Path) -> None:
    """Give the complete file its name.

    :raises LedgerRefused: if another process has made a file of this name.
    """
    try:
        os.link(part, new)
    except FileExistsError as error:
        raise _exists(new) from error
    except OSError:  # the file system has no hard links
        part.rename(new)
    else:
        part.unlink()


def _write(live: OldLedger, head: Head | None, leases: Iterable[tuple[object, ...]], part: Path) -> Conversion:
    with closing(open_file(part, create=True, timeout=_TIMEOUT)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        with closing(BlockLedger(part, connection, store_content=True, timeout=_TIMEOUT)) as blocks:
            if head is not None:
                blocks.begin_converted(head)
            entries = iter(live.read(Query()))
            while events := [entry.event for entry in islice(entries, _TOGETHER)]:
                blocks.append(events)
            connection.executemany("INSERT INTO leases VALUES (?, ?, ?, ?)", leases)
            _compare(live.read(Query()), blocks.read(Query()))
            result = blocks.verify()
        if not result.ok:
            raise LedgerError(f"the converted ledger is wrong at event {result.bad_seq}: {result.reason}")
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise LedgerError(f"another process reads {part}: nothing was converted")
    return Conversion(result.events, head, result.head)


def _compare(old: Iterable[Entry], new: Iterable[Entry]) -> None:
    """Compare the events of two ledgers.

    :raises LedgerError: for the first event that differs.
    """
    for before, after in zip_longest(old, new):
        if before is None or after is None or _bytes(before) != _bytes(after):
            seq = (before or after).seq
            raise LedgerError(f"event {seq} would not be the same in the converted ledger; nothing was converted")


def _bytes(entry: Entry) -> bytes:
    return orjson.dumps([entry.seq, attrs.astuple(entry.event, recurse=False)])


def _remove(path: Path) -> None:
    """Remove an unfinished file, with the files that SQLite keeps next to it."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).unlink()
