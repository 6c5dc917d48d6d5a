"""The check of a whole ledger: the chains, the numbers, the hints, the makers, the contents and the sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast import Event, Head, LedgerError, Verification
from dicast.reading.blocks.making import Layouts, columns_of
from dicast.reading.blocks.stored_columns import UNREADABLE, refuse_changed_columns
from dicast.toolkit.ledger_lines import START, Hints, Maker, chained, events_of, leaf_of, lines_in
from dicast.toolkit.ledger_lines.chain import chain_of
from dicast.toolkit.ledger_lines.makers import MAKER
from dicast.toolkit.ledger_lines.references import references_of
from dicast.toolkit.ledger_lines.selection import refuse_changed

from .reading import Snapshot, newest_block
from .sums import Sums

_IN_ORDER = """SELECT b.first, b.last, b.lines, b.run_id, b.shard, b.types, b.low, b.high, b.began, b.ended, b.prev, b.digest, b.marks, b.body,
    b.columns
    FROM blocks b LEFT JOIN chains c USING (run_id, shard) WHERE b.first <= %s ORDER BY c.number NULLS FIRST, b.first"""
_OVERLAP = """SELECT first, before FROM (SELECT first, last, lag(last) OVER (ORDER BY first) AS before FROM blocks) AS numbered
    WHERE first <= before OR last < first ORDER BY first LIMIT 1"""
_ABSENT = """SELECT count(*) FROM unnest(%b::bytea[]) AS wanted WHERE NOT EXISTS (SELECT 1 FROM texts WHERE digest = wanted)"""
_BLOCKS_A_FETCH = 20


class Wrong(Exception):
    """A fault at an event of the ledger."""

    def __init__(self, seq: int, reason: str) -> None:
        super().__init__(reason)
        self.seq = seq


@attrs.define
class Chain:
    """The chain of a run up to a block."""

    run_id: str
    shard: int
    digest: bytes = START
    last: int = 0
    lines: int = 0

    @property
    def row(self) -> tuple[str, int, int, int, bytes]:
        """The values of the table ``chains``."""
        return self.run_id, self.shard, self.last, self.lines, self.digest


@attrs.define
class Check:
    """Walk over the blocks of one chain after the other. Its memory grows with the makers, runs and open reservations."""

    snapshot: Snapshot
    expected: str | None
    is_met: bool
    events: int = 0
    absent: int = 0
    makers: dict[str, Maker] = attrs.field(factory=dict)
    chains: dict[tuple[str, int], Chain] = attrs.field(factory=dict)
    sums: Sums = attrs.field(factory=Sums)
    layouts: Layouts = attrs.field(default=attrs.Factory(lambda check: Layouts(check.makers), takes_self=True))

    def block(self, row: Sequence[Any]) -> None:
        """Check a block.

        :raises Wrong: for the first fault.
        """
        first, last, count, run_id, shard, types, low, high, began, ended, prev, digest, marks, body, columns = row
        chain = self.chains.setdefault((run_id, shard), Chain(run_id, shard))
        place = f"the block from event {first} of run {run_id}"
        if prev != chain.digest:
            raise Wrong(first, f"the prev of {place} is not the digest of the line before it")
        try:
            lines = lines_in(len(text := body.encode()), text)
            refuse_changed(prev, marks, lines)
            events = list(self._events(lines))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise Wrong(first, f"{place}: {error}") from error
        end, all_marks = chained(prev, map(leaf_of, lines))
        if (end, all_marks) != (digest, marks):
            raise Wrong(first, f"the digest of {place} does not follow from its lines")
        if (last, count) != (first + len(events) - 1, len(lines)):
            raise Wrong(
                first, f"{place} has {len(lines)} lines up to event {first + len(events) - 1}, not {count} up to {last}"
            )
        hints = Hints.of(events)
        stored = (run_id, sorted(types), low, high, began, ended)
        expected = (hints.run_id, sorted(hints.types), _bytes(hints.low), _bytes(hints.high), hints.began, hints.ended)
        if stored != expected:
            raise Wrong(first, f"the hints of {place} are {stored}, but its lines have {expected}")
        if columns is not None:
            try:
                refuse_changed_columns(columns, columns_of(orjson.loads(text), self.layouts))
            except UNREADABLE as error:
                raise Wrong(first, f"{place}: {error}") from error
        self._record(first, events, place)
        if self.expected is not None and not self.is_met:
            self.is_met = self.expected in [link.hex() for link in chain_of(prev, lines)]
        chain.digest, chain.last, chain.lines = digest, last, chain.lines + count

    def _events(self, lines: Sequence[bytes]) -> Iterator[Event]:
        parsed = []
        for line in lines:
            values = orjson.loads(line)
            parsed.append(values)
            if values[0] == MAKER:
                maker = Maker.of(line)
                self.makers[maker.name] = maker
            yield from (event for _, event in events_of(values, self.makers, lambda _: None))
        references = (reference for values in parsed for reference in references_of(values, self.makers))
        digests = [bytes.fromhex(reference.digest) for reference in references]
        if digests:
            ((count,),) = self.snapshot.connection.execute(_ABSENT, (digests,)).fetchall()
            self.absent += count

    def _record(self, first: int, events: Sequence[Event], place: str) -> None:
        self.events += len(events)
        for seq, event in enumerate(events, first):
            if event.type.startswith("spend."):
                try:
                    self.sums.record(seq, event)
                except LedgerError as error:
                    raise Wrong(seq, f"{place}: {error}") from error


def verify(snapshot: Snapshot, expected: str | None) -> Verification:
    """Check all lines and all tables. With *expected*, a line must have this digest: without it, a chain whose end was cut off looks complete."""
    check = Check(snapshot, expected, expected is None)
    newest = newest_block(snapshot)
    head = None if newest is None else Head(newest[0], newest[1].hex())
    try:
        _check_numbers(snapshot)
        with snapshot.connection.cursor("blocks") as cursor:
            cursor.itersize = _BLOCKS_A_FETCH
            cursor.execute(_IN_ORDER, (snapshot.newest,))
            for row in cursor:
                check.block(row)
        end = 0 if head is None else head.seq
        _check_chains(snapshot, check, end)
        _check_makers(snapshot, check, end)
        _check_texts(snapshot, end)
        if (difference := check.sums.differing(snapshot.connection)) is not None:
            raise Wrong(end + 1, f"the sums do not follow from the events: {difference}")
        if not check.is_met:
            raise Wrong(end + 1, f"no line has the digest {expected}")
    except Wrong as wrong:
        return Verification(check.events, head, wrong.seq, str(wrong), check.absent)
    return Verification(check.events, head, absent=check.absent)


def _check_numbers(snapshot: Snapshot) -> None:
    row = snapshot.connection.execute(_OVERLAP).fetchone()
    if row is not None:
        raise Wrong(row[0], f"the block from event {row[0]} overlaps with the block up to event {row[1]}")
    ((newest,),) = snapshot.connection.execute("SELECT coalesce(max(last), 0) FROM blocks").fetchall()
    if newest > snapshot.newest:
        raise Wrong(newest, f"the sequence numbers is {snapshot.newest}, but there are events up to {newest}")


def _check_chains(snapshot: Snapshot, check: Check, end: int) -> None:
    """Check the table ``chains``. Its numbers have no gap, so a removed run is noticed unless it is the newest."""
    rows = snapshot.connection.execute(
        "SELECT number, run_id, shard, last, lines, digest FROM chains WHERE last > 0 ORDER BY number"
    ).fetchall()
    ((empty,),) = snapshot.connection.execute("SELECT count(*) FROM chains WHERE last = 0").fetchall()
    for number, row in enumerate(rows, 1):
        if row[0] != number and not empty:
            raise Wrong(row[3], f"run number {number} is missing: the next is number {row[0]}, run {row[1]}")
        chain = check.chains.pop((row[1], row[2]), Chain(row[1], row[2]))
        if tuple(row[1:]) != chain.row:
            at = max(chain.last, 1)
            raise Wrong(
                at,
                f"the chain of run {row[1]} ends at event {chain.last} after {chain.lines} lines, not as in chains: {row[3]}, {row[4]}",
            )
    for chain in check.chains.values():
        raise Wrong(chain.last, f"chains does not have run {chain.run_id}")


def _check_makers(snapshot: Snapshot, check: Check, end: int) -> None:
    stored = dict(snapshot.connection.execute("SELECT name, line FROM makers").fetchall())
    for name, maker in check.makers.items():
        if (line := stored.pop(name, None)) != maker.line.decode():
            raise Wrong(end + 1, f"the maker {name} is {line!r:.100}, but the chain has {maker.line.decode():.100}")
    for name in stored:
        raise Wrong(end + 1, f"the maker {name} is in no chain")


def _check_texts(snapshot: Snapshot, end: int) -> None:
    with snapshot.connection.cursor("texts") as cursor:
        cursor.execute("SELECT digest, body FROM texts")
        for digest, body in cursor:
            if sha256(body.encode()).digest() != digest:
                raise Wrong(
                    end + 1,
                    f"the content {bytes(digest).hex()} was changed: its digest is {sha256(body.encode()).hexdigest()}",
                )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
