"""Writing: events become sheets before the transaction, and rows inside it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

import attrs
import orjson

from dicast import Event, Head
from dicast.toolkit.ledger_lines.blocks import COLUMNS, Columns, Hints, Sheet, is_end, is_packed, parts_of
from dicast.toolkit.ledger_lines.chain import START
from dicast.toolkit.ledger_lines.judged import RECORD
from dicast.toolkit.ledger_lines.lines import CONVERTED, Encoded, Encoder, Line
from dicast.toolkit.ledger_lines.makers import Maker

from .rows import INSERT, newest
from .sealing import SEALED_APPENDS, SEALED_LINES, Sealing, overdue, seal, sealing_of, small_appends
from .texts import Group, Texts, add_groups, add_new_groups, groups_of, unknown

LARGE, LARGE_EVENTS = 100, 300
"""Lines of an append from which it is compressed at once, and their events: a line of a trace has many."""

_DIGEST = COLUMNS.index("digest")

_BOUND = "INSERT INTO runs VALUES (?, ?, ?) ON CONFLICT (run_id) DO UPDATE SET last_seq = excluded.last_seq"


@attrs.define(eq=False)
class Prepared:
    """Lines that are ready to be written.

    *spending* are the events of amounts, by their number from 1, and *runs* the numbers of the first and last event of each run, with the type of the last. *known* are digests of contents that the ledger had in the state
    *version* of the file; None if they were not looked up.
    """

    spending: Sequence[tuple[int, Event]]
    runs: Mapping[str, tuple[int, int, str]]
    sheets: Sequence[Sheet]
    makers: Sequence[Maker]
    contents: dict[str, bytes]
    known: Sequence[str] | None
    groups: Sequence[Group]
    version: int | None
    sealing: Sealing | None

    @property
    def is_large(self) -> bool:
        """True if the lines are compressed at once."""
        return bool(self.sheets) and self.sheets[-1].columns is not None

    @property
    def ends_appends(self) -> bool:
        """True if tables next to the chain are written with these lines, and not by a later append."""
        return self.sealing is not None or self.is_large or any(is_end(type_) for _, _, type_ in self.runs.values())


class Writer:
    """Writer of one connection. Call :meth:`forget` after a failed transaction, and :meth:`refresh` after another connection has written."""

    def __init__(self, connection: sqlite3.Connection, *, store_content: bool) -> None:
        self._connection = connection
        self._encoder = Encoder(store_content=store_content)
        self._texts = Texts(connection)
        self._version: int | None = None
        """Number of the state of the file to which the next three values belong; None for no state."""
        self._newest: tuple[int, bytes] | None = None
        self._small: tuple[int, int] | None = None
        """The numbers of small appends and of their lines since the last compressed block."""
        self._has_known = True
        """True if the newest append had contents that the ledger knew. Otherwise large appends do not look them up: probably all are new."""
        self._unbounded: set[str] = set()
        """Runs whose last event the table ``runs`` does not have."""

    @cached_property
    def _columns(self) -> Columns:
        """Function that makes the columns of a compressed block."""
        from dicast.reading.blocks.making import packed_columns  # small appends have no columns

        return packed_columns(self._encoder.makers)

    def forget(self) -> None:
        """Forget the state of a transaction that was rolled back."""
        self._encoder.forget()
        self._texts = Texts(self._connection)
        self.refresh(None)

    def refresh(self, version: int | None) -> None:
        """Forget the values of the file in memory. *version* is the state that values will be read from."""
        self._version, self._newest, self._small = version, None, None
        self._unbounded.clear()

    def begin_converted(self, head: Head) -> None:
        """Write the newest row of an older ledger as the first line."""
        self._encoder.preface = orjson.dumps([CONVERTED, head.seq, head.digest])

    def prepare(self, records: Sequence[Any]) -> Prepared:
        """Return *records*, events and judged subjects, as compressed sheets. Call it outside of a transaction, so that other processes can write meanwhile."""
        encoded = self._encoder.encode(records)
        lines, contents = encoded.lines, encoded.contents
        is_large = len(lines) >= LARGE or sum(count for _, count, _ in lines) >= LARGE_EVENTS
        sheets = [
            self._sheet(encoded, part, count, packed=is_large)
            for part, count in parts_of([(len(line), count) for line, count, _ in lines])
        ]
        version = self._file_version() if contents or self._version is None else self._version
        known: Sequence[str] | None = ()
        groups: Sequence[Group] = ()
        if is_large and not self._has_known:
            known, groups = None, groups_of(contents, packed=True)
        elif contents:
            new = unknown(self._texts, contents)
            known = [] if len(new) == len(contents) else [*contents.keys() - set(new)]
            groups = groups_of({digest: contents[digest] for digest in new}, packed=is_large)
            self._has_known = bool(known)
        sealing = sealing_of(self._connection) if records and self._is_due(is_large=is_large) else None
        return Prepared(*_numbered(lines), sheets, encoded.makers, contents, known, groups, version, sealing)

    def _sheet(self, encoded: Encoded, part: slice, count: int, *, packed: bool) -> Sheet:
        """Return a *part* of the lines, with *count* events, as a sheet; compressed with columns if *packed*."""
        items = encoded.lines[part]
        lines, columns = [line for line, _, _ in items], None
        if packed:
            values = map(encoded.values.get, range(part.start, part.stop))
            columns = self._columns(known or orjson.loads(line) for known, line in zip(values, lines, strict=True))
        return Sheet.of(lines, count, Hints.of([*chain.from_iterable(records for _, _, records in items)]), columns)

    def newest(self) -> tuple[int, bytes]:
        """Return the number of the last event and the digest of the last line; zeros for an empty ledger."""
        if self._newest is None:
            self._newest = newest(self._connection) or (0, START)
        return self._newest

    def write(self, prepared: Prepared) -> Head:
        """Write the rows after the newest row, inside a transaction. Return the newest row."""
        seq, digest = self.newest()
        if not prepared.sheets:
            return Head(seq, digest.hex())
        is_current = prepared.version == self._version
        if prepared.sealing is not None:
            seal(self._connection, prepared.sealing if is_current else overdue(self._connection))
            self._small = (0, 0) if is_current else None
            self._unbounded.clear()
        if prepared.makers:
            makers = [(maker.name, maker.line.decode()) for maker in prepared.makers]
            self._connection.executemany("INSERT OR IGNORE INTO makers VALUES (?, ?)", makers)
        start, rows = seq, []
        for sheet in prepared.sheets:
            row = sheet.row(seq + 1, digest)
            rows.append(row)
            seq, digest = seq + sheet.events, row[_DIGEST]
        self._connection.executemany(INSERT, rows)
        self._add_contents(prepared)
        if prepared.known and not is_current:
            texts = {key: prepared.contents[key] for key in unknown(Texts(self._connection), prepared.known)}
            add_groups(self._connection, groups_of(texts, packed=False))
        self._bound(prepared, start)
        self._count(prepared)
        self._encoder.preface = None
        self._newest = seq, digest
        return Head(seq, digest.hex())

    def _add_contents(self, prepared: Prepared) -> None:
        """Write the contents that the ledger does not have."""
        if not prepared.groups:
            return
        if prepared.known is not None:
            add_groups(self._connection, prepared.groups)
        elif not add_new_groups(self._connection, prepared.groups):
            self._has_known = True
            new = unknown(Texts(self._connection), prepared.contents)
            add_groups(self._connection, groups_of({key: prepared.contents[key] for key in new}, packed=True))

    def _file_version(self) -> int:
        """Return a number that changes when another connection has written."""
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def _bound(self, prepared: Prepared, start: int) -> None:
        """Write the bounds of the runs. A run has no upper bound between a small append and its end, so that further small appends need not write it."""
        is_large = prepared.is_large
        rows: list[tuple[str, int, int | None]] = []
        for run_id, (first, last, type_) in prepared.runs.items():
            if is_large or is_end(type_):
                self._unbounded.discard(run_id)
                rows.append((run_id, start + first, start + last))
            elif run_id not in self._unbounded:
                self._unbounded.add(run_id)
                rows.append((run_id, start + first, None))
        if rows:
            self._connection.executemany(_BOUND, rows)

    def _count(self, prepared: Prepared) -> None:
        last = prepared.sheets[-1]
        if is_packed(last.size, last.body):
            self._small = 0, 0
        elif self._small is not None:
            appends, lines = self._small
            self._small = appends + len(prepared.sheets), lines + sum(len(sheet.leaves) for sheet in prepared.sheets)

    def _is_due(self, *, is_large: bool) -> bool:
        """Return True if the small appends are to be compressed by this append."""
        if self._small is None:
            self._small = small_appends(self._connection)
        appends, lines = self._small
        return appends >= SEALED_APPENDS or lines >= SEALED_LINES or (is_large and appends > 0)


def _numbered(lines: Sequence[Line]) -> tuple[list[tuple[int, Event]], dict[str, tuple[int, int, str]]]:
    """Return the events of amounts with their numbers, from 1, and for each run the numbers of its first and last event, and the type of the last."""
    number, events = 0, list[tuple[int, Event]]()
    firsts, lasts = dict[str, int](), dict[str, tuple[int, str]]()
    for _, count, records in lines:
        if not count:
            continue
        last = records[-1]
        type_ = last.type
        run_id = last.maker.run_id if type_ == RECORD else last.run_id
        if run_id not in firsts:
            firsts[run_id] = number + 1
        number += count
        lasts[run_id] = number, type_
        if count == 1 and type_.startswith("spend."):
            events.append((number, last))
    return events, {run_id: (first, *lasts[run_id]) for run_id, first in firsts.items()}
