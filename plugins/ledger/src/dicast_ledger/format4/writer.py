"""Writing: events become sheets before the transaction, and rows inside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs
import orjson

from dicast import Event, Head

from .blocks import COLUMNS, INSERT, Columns, Hints, Sheet, is_packed, newest, parts_of
from .chain import START, leaf_of
from .judged import RECORD
from .lines import CONVERTED, Encoder, Line
from .makers import Maker
from .sealing import SEALED_APPENDS, SEALED_LINES, Sealing, overdue, seal, sealing_of, small_appends
from .texts import Group, Texts, add_groups, groups_of, unknown

LARGE = 100
"""Lines of an append from which it is compressed at once."""

_DIGEST = COLUMNS.index("digest")

_UNCOUNTED = -1, 0, 0
"""Number of small appends that is not known."""


@attrs.frozen
class Prepared:
    """Lines that are ready to be written.

    *spending* are the events of amounts, by their number from 1, and *runs* the numbers of the first and last event of each run. *known* are digests of contents that the ledger had before the
    transaction.
    """

    spending: Sequence[tuple[int, Event]]
    runs: Mapping[str, tuple[int, int]]
    sheets: Sequence[Sheet]
    makers: Sequence[Maker]
    contents: dict[str, bytes]
    known: Sequence[str]
    groups: Sequence[Group]
    version: int
    sealing: Sealing | None


class Writer:
    """Writer of one connection. Call :meth:`forget` after a failed transaction."""

    def __init__(self, connection: sqlite3.Connection, *, store_content: bool) -> None:
        self._connection = connection
        self._encoder = Encoder(store_content=store_content)
        self._texts = Texts(connection)
        self._small = _UNCOUNTED
        """The state of the file, and the numbers of small appends and of their lines since the last compressed block."""

    @cached_property
    def _columns(self) -> Columns:
        """Function that makes the columns of a compressed block."""
        from .making import packed_columns  # small appends have no columns

        return packed_columns(self._encoder.makers)

    def forget(self) -> None:
        """Forget the state of a transaction that was rolled back."""
        self._encoder.forget()
        self._texts = Texts(self._connection)
        self._small = _UNCOUNTED

    def begin_converted(self, head: Head) -> None:
        """Write the newest row of an older ledger as the first line."""
        self._encoder.preface = orjson.dumps([CONVERTED, head.seq, head.digest])

    def prepare(self, records: Sequence[Any]) -> Prepared:
        """Return *records*, events and judged subjects, as compressed sheets. Call it outside of a transaction, so that other processes can write meanwhile."""
        version = self._version()
        encoded = self._encoder.encode(records)
        is_large = len(encoded.lines) >= LARGE
        leaves = [leaf_of(line) for line, _, _ in encoded.lines]
        sheets = []
        for part, count in parts_of((len(line), count) for line, count, _ in encoded.lines):
            lines = [line for line, _, _ in encoded.lines[part]]
            hints = Hints.of(record for _, _, records in encoded.lines[part] for record in records)
            sheets.append(Sheet.of(lines, leaves[part], count, hints, self._columns if is_large else None))
        new = unknown(self._texts, encoded.contents) if encoded.contents else []
        known = [] if len(new) == len(encoded.contents) else [*encoded.contents.keys() - set(new)]
        groups = groups_of({digest: encoded.contents[digest] for digest in new}, packed=is_large)
        sealing = sealing_of(self._connection) if records and self._is_due(version, is_large=is_large) else None
        return Prepared(
            _numbered(encoded.lines),
            _runs(encoded.lines),
            sheets,
            encoded.makers,
            encoded.contents,
            known,
            groups,
            version,
            sealing,
        )

    def newest(self) -> tuple[int, bytes]:
        """Return the number of the last event and the digest of the last line; zeros for an empty ledger."""
        return newest(self._connection) or (0, START)

    def write(self, prepared: Prepared, seq: int, digest: bytes) -> Head:
        """Write the rows after the event *seq* and the digest *digest*, inside a transaction. Return the newest row."""
        if not prepared.sheets:
            return Head(seq, digest.hex())
        is_current = (prepared.sealing is None and not prepared.known) or self._version() == prepared.version
        if prepared.sealing is not None:
            seal(self._connection, prepared.sealing if is_current else overdue(self._connection))
            self._small = _UNCOUNTED
        if prepared.makers:
            makers = [(maker.name, maker.line.decode()) for maker in prepared.makers]
            self._connection.executemany("INSERT OR IGNORE INTO makers VALUES (?, ?)", makers)
        start, rows = seq, []
        for sheet in prepared.sheets:
            row = sheet.row(seq + 1, digest)
            rows.append(row)
            seq, digest = seq + sheet.events, row[_DIGEST]
        self._connection.executemany(INSERT, rows)
        if prepared.groups:
            add_groups(self._connection, prepared.groups)
        if prepared.known and not is_current:
            texts = {key: prepared.contents[key] for key in unknown(Texts(self._connection), prepared.known)}
            add_groups(self._connection, groups_of(texts, packed=False))
        self._connection.executemany(
            "INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET last_seq = excluded.last_seq",
            [(run_id, start + first, start + last) for run_id, (first, last) in prepared.runs.items()],
        )
        self._count(prepared)
        self._encoder.preface = None
        return Head(seq, digest.hex())

    def _version(self) -> int:
        """Return a number that changes when another connection has written."""
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _count(self, prepared: Prepared) -> None:
        version, appends, lines = self._small
        last = prepared.sheets[-1]
        if version == prepared.version and is_packed(last.size, last.body):
            self._small = (version, 0, 0)
        elif version == prepared.version:
            self._small = (version, appends + len(prepared.sheets), lines + sum(map(_lines, prepared.sheets)))

    def _is_due(self, version: int, *, is_large: bool) -> bool:
        """Return True if the small appends are to be compressed by this append."""
        if self._small[0] != version:
            self._small = (version, *small_appends(self._connection))
        _, appends, lines = self._small
        return appends >= SEALED_APPENDS or lines >= SEALED_LINES or (is_large and appends > 0)


def _lines(sheet: Sheet) -> int:
    return len(sheet.leaves)


def _numbered(lines: Sequence[Line]) -> list[tuple[int, Event]]:
    """Return the events of amounts with their numbers, from 1."""
    number, events = 0, []
    for _, count, records in lines:
        number += count
        if count == 1 and records[0].type.startswith("spend."):
            events.append((number, records[0]))
    return events


def _runs(lines: Sequence[Line]) -> dict[str, tuple[int, int]]:
    """Return the numbers of the first and the last event of each run, from 1."""
    number, bounds = 0, dict[str, tuple[int, int]]()
    for _, count, records in lines:
        if count:
            first = records[0]
            run_id = first.maker.run_id if first.type == RECORD else first.run_id
            bounds[run_id] = bounds[run_id][0] if run_id in bounds else number + 1, number + count
            number += count
    return bounds
