"""The check of a whole ledger of format 4: the chain, the hints, the makers, the contents, the bounds of runs and the sums."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from itertools import accumulate, compress
from operator import eq
from typing import Any

import attrs
import orjson

from dicast import Head, LedgerError, Verification
from dicast.reading.blocks.making import Layouts, columns_of
from dicast.reading.blocks.stored_columns import UNREADABLE, StoredColumns
from dicast.toolkit.ledger_lines.blocks import Hints, is_end, is_packed, list_in, split
from dicast.toolkit.ledger_lines.chain import MARK_BYTES, START, chain_of
from dicast.toolkit.ledger_lines.lines import CONTENT, CONVERTED, EVENT, EVENT_SIZES, event_of
from dicast.toolkit.ledger_lines.makers import FIRST_EVENT, JUDGED, MAKER, SUBJECT, Maker
from dicast.toolkit.ledger_lines.references import references_of
from dicast.toolkit.ledger_lines.traced import SUBJECTS, TRACED, traces_of

from ..old_chain import integrity
from ..spending import SPENDING_TABLES, Spending, counted_in
from .contents import Contents
from .first_columns import first_texts
from .merging import stored_columns
from .rows import ROW
from .texts import short_keys


class Wrong(Exception):
    """A fault at an event of the ledger."""

    def __init__(self, seq: int, reason: str) -> None:
        super().__init__(reason)
        self.seq = seq


_SPEND = "spend."
_TYPE, _PAYLOAD = 2, 10
"""Places in the line of an event."""


def _unreadable(seq: int, place: int, first: int, error: Exception) -> Wrong:
    return Wrong(seq, f"line {place + 1} of the block from event {first} cannot be read: {error}")


@attrs.define
class Facts:
    """Facts of the events of a block or of a line."""

    runs: set[str] = attrs.field(factory=set)
    types: set[str] = attrs.field(factory=set)
    subjects: set[str] = attrs.field(factory=set)
    times: set[str] = attrs.field(factory=set)
    makers: set[str] = attrs.field(factory=set)
    contents: list[str] = attrs.field(factory=list)
    """The digests of contents."""

    def hints(self) -> Hints:
        """Return the hints of the block."""
        (run_id,) = self.runs if len(self.runs) == 1 else (None,)
        low, high = (min(self.subjects), max(self.subjects)) if self.subjects else (None, None)
        return Hints(run_id, self.types, low, high, min(self.times), max(self.times))


class Check:
    """Walk over all lines in their order, with the tables that follow from them. Its memory grows with the makers, runs and open reservations."""

    def __init__(self, connection: sqlite3.Connection, scratch: sqlite3.Connection, contents: Contents) -> None:
        scratch.executescript(SPENDING_TABLES)
        self._stored, self.spending = Spending(connection), Spending(scratch)
        self.counted: int | None = None
        """The number of the last event that the stored sums count; None for all events."""
        self._is_counted = False
        self.digest, self.seq = START, 0
        self.contents, self.absent = contents, 0
        self.makers: dict[str, Maker] = {}
        self.layouts = Layouts(self.makers)
        self.runs: dict[str, tuple[int, int]] = {}
        self._ended: set[str] = set()
        """Runs whose last event is an event of the run itself."""
        self.unbounded: set[str] = set()
        """Runs without an upper bound in the table ``runs``: their last event is in a small append, and no event of the run itself."""

    def block(self, row: Sequence[Any], expected: str | None) -> bool:
        """Check a block, and return True if one of its lines has the digest *expected*.

        :raises Wrong: for the first fault.
        """
        first, last, count, run_id, types, low, high, began, ended, prev, digest, marks, columns, size, body = row
        start = self.seq + 1
        if self.counted == self.seq:
            self._sums()
        if first != start:
            raise Wrong(start, f"event {start} is missing: the next block begins with event {first!r}")
        if prev != self.digest:
            raise Wrong(start, f"the prev of the block from event {first} is not the digest of the line before it")
        try:
            raw = list_in(size, body)
            lines = split(raw)
            if not isinstance(marks, bytes):
                raise TypeError(f"its marks are {marks!r}")
        except (ValueError, TypeError) as error:
            raise Wrong(start, f"the block from event {first} cannot be read: {error}") from error
        digests = chain_of(self.digest, lines)
        if b"".join([link[:MARK_BYTES] for link in digests]) == marks:
            parsed, facts = self._lines(raw, lines, first)
        else:
            parsed, facts = self._marked_lines(lines, marks, first)
        self.digest = digests[-1]
        is_met = expected is not None and expected in [link.hex() for link in digests]
        if self.digest != digest or len(marks) != MARK_BYTES * len(lines):
            raise Wrong(start, f"the digest of the block from event {first} does not follow from its lines")
        if (last, count) != (self.seq, len(lines)):
            raise Wrong(
                start,
                f"the block from event {first} has {len(lines)} lines up to event {self.seq}, not {count!r} up to {last!r}",
            )
        stored, expected_hints = (run_id, types, low, high, began, ended), self._hints(facts, start, first)
        if stored != expected_hints:
            raise Wrong(
                start,
                f"the hints of the block from event {first} are {stored!r}, but its lines have {expected_hints!r}",
            )
        if columns is not None or is_packed(size, body):
            self._columns(columns, parsed, start, first)
            self.unbounded -= facts.runs
        else:
            self.unbounded |= facts.runs
            self.unbounded -= self._ended
        try:
            keys = short_keys(facts.contents)
        except (TypeError, ValueError) as error:
            raise Wrong(start, f"the contents of the block from event {first} cannot be read: {error}") from error
        self.absent += self.contents.absent(keys)
        return is_met

    def sums(self) -> None:
        """Check the sums after the last event.

        :raises Wrong: if they do not follow from the lines.
        """
        if self.counted in (None, self.seq):
            self._sums()
        elif not self._is_counted:
            raise Wrong(self.seq, f"the sums count the events up to {self.counted}, where no block ends")

    def _sums(self) -> None:
        self._is_counted = True
        self.spending.write()
        if (difference := self._stored.differing(self.spending)) is not None:
            raise Wrong(self.seq, f"the sums do not follow from the lines: {difference}")

    def _lines(self, raw: bytes, lines: Sequence[bytes], first: int) -> tuple[list[Sequence[Any]], Facts]:
        """Check lines, and return their values and facts. *raw* is the list of all lines.

        :raises Wrong: for the first fault.
        """
        try:
            parsed: list[Sequence[Any]] = orjson.loads(raw)
        except ValueError:
            parsed = []
        is_list = len(parsed) == len(lines)
        facts = self._at_once(parsed, first) if is_list else None
        if facts is None:
            facts = Facts()
            values = parsed if is_list else [None] * len(lines)
            parsed = [self._line(line, at, first, facts, values[at]) for at, line in enumerate(lines)]
        return parsed, facts

    def _at_once(self, lines: Sequence[Sequence[Any]], first: int) -> Facts | None:
        """Check lines of one run by their kinds, and return their facts; None if they have to be checked one by one.

        :raises Wrong: for an amount that cannot be added.
        """
        facts, counts, groups = Facts(), dict[str | int, int](), dict[str | int, Sequence[Sequence[Any]]]()
        try:
            kinds = _kinds_of(lines)
            if kinds is None:
                return None
            distinct = dict.fromkeys(kinds)
            for kind in distinct:
                groups[kind] = [*compress(lines, map(partial(eq, kind), kinds))] if len(distinct) > 1 else lines
            for kind, part in groups.items():
                counts[kind] = 1 if isinstance(kind, int) else len(self.makers[kind].parts)
                is_read = _read_events(part, facts) if kind == EVENT else self._read_judged(part, kind, facts)
                if not is_read:
                    return None
        except (TypeError, LookupError, AttributeError, ValueError):
            return None
        facts.subjects.discard(None)  # events that are about no subject
        if len(facts.runs) != 1:
            return None
        (run_id,) = facts.runs
        if spent := {type_ for type_ in facts.types if type_.startswith(_SPEND)}:
            seqs = [*accumulate(map(counts.__getitem__, kinds), initial=self.seq + 1)]
            for place, values in enumerate(lines):
                if values[_TYPE] in spent and kinds[place] == EVENT:
                    try:
                        self.spending.record(seqs[place], run_id, values[_TYPE], values[_PAYLOAD])
                    except LedgerError as error:
                        raise _unreadable(seqs[place], place, first, error) from error
        self._count(run_id, sum(counts[kind] * len(part) for kind, part in groups.items()))
        return facts

    def _read_judged(self, lines: Sequence[Sequence[Any]], name: Any, facts: Facts) -> bool:
        """Add the facts of judged subjects of one maker; return False if one of them has to be checked alone."""
        maker = self.makers[name]
        if set(map(len, lines)) != {maker.length}:
            return False
        values = list(zip(*lines, strict=True))
        for times in values[FIRST_EVENT + 1 : FIRST_EVENT + 2 * len(maker.parts) : 2]:
            facts.times.update((min(times), max(times)))
        facts.subjects.update((min(values[SUBJECT]), max(values[SUBJECT])))
        self._note(maker, facts)
        if maker.content is not None:
            facts.contents.extend(values[maker.content])
        return True

    def _marked_lines(self, lines: Sequence[bytes], marks: bytes, first: int) -> tuple[list[Sequence[Any]], Facts]:
        """Check lines with wrong *marks*, and return their values and facts if the first marks are right.

        :raises Wrong: for the first fault.
        """
        parsed, facts, digest = [], Facts(), self.digest
        for place, line in enumerate(lines):
            (digest,) = chain_of(digest, [line])
            if not marks.startswith(digest[:MARK_BYTES], MARK_BYTES * place):
                raise Wrong(self.seq + 1, f"line {place + 1} of the block from event {first} was changed")
            parsed.append(self._line(line, place, first, facts))
        return parsed, facts

    def _hints(self, facts: Facts, start: int, first: int) -> tuple[str | None, ...]:
        try:
            hints = facts.hints()
            return hints.run_id, " ".join(sorted(hints.types)), hints.low, hints.high, hints.began, hints.ended
        except (TypeError, ValueError) as error:  # a column of an event is no text
            raise Wrong(start, f"the lines of the block from event {first} cannot be read: {error}") from error

    def _columns(self, columns: Any, lines: Sequence[Sequence[Any]], start: int, first: int) -> None:
        try:
            stored = stored_columns(columns)
            texts, expected = stored.texts(), columns_of(lines, self.layouts)
            if isinstance(stored, StoredColumns):
                is_equal = texts == expected.parts()
            else:
                is_equal = texts == first_texts(expected)
                is_equal = is_equal or texts == first_texts(columns_of(lines, self.layouts, has_calls=False))
        except UNREADABLE as error:
            raise Wrong(start, f"the columns of the block from event {first} cannot be read: {error}") from error
        if not is_equal:
            raise Wrong(start, f"the columns of the block from event {first} do not follow from its lines")

    def _line(
        self, line: bytes, place: int, first: int, facts: Facts, parsed: Sequence[Any] | None = None
    ) -> Sequence[Any]:
        try:
            values: Sequence[Any] = orjson.loads(line) if parsed is None else parsed
            kind = values[0]
            if kind in SUBJECTS:
                self._judged(values, facts)
            elif kind == EVENT:
                self._event(values, facts)
            elif kind == MAKER:
                maker = Maker.of(line)
                self.makers[maker.name] = maker
            elif kind != CONVERTED or self.seq or place or len(values) != 3:
                raise ValueError(f"its kind is {kind!r}")
            return values
        except (ValueError, LookupError, TypeError, AttributeError, LedgerError) as error:
            raise _unreadable(self.seq + 1, place, first, error) from error

    def _judged(self, values: Sequence[Any], facts: Facts) -> None:
        maker = self.makers[values[1]]
        length = maker.length + (values[0] == TRACED)
        if len(values) != length:
            raise ValueError(f"it has {len(values)} values, but its maker has {length}")
        self._note(maker, facts)
        facts.times.update(values[6 : 6 + 2 * len(maker.parts) : 2])
        traces = traces_of(values)
        for id_, type_, time, _, payload, *_ in traces:
            if not isinstance(payload, dict):
                raise TypeError(f"the payload of event {id_!r} is not an object")
            facts.types.add(type_)
            facts.times.add(time)
        if values[2] is not None:
            facts.subjects.add(values[2])
        facts.contents.extend(reference.digest for reference in references_of(values, self.makers))
        self._count(maker.run_id, len(maker.parts) + len(traces))

    def _note(self, maker: Maker, facts: Facts) -> None:
        if maker.name not in facts.makers:
            facts.makers.add(maker.name)
            facts.runs.add(maker.run_id)
            facts.types.update(maker.types)

    def _event(self, values: Sequence[Any], facts: Facts) -> None:
        event = event_of(values, lambda _: None)
        facts.runs.add(event.run_id)
        facts.types.add(event.type)
        facts.times.add(event.time)
        if event.subject_id is not None:
            facts.subjects.add(event.subject_id)
        if len(values) > CONTENT:
            facts.contents.append(values[CONTENT])
        if event.type.startswith(_SPEND):
            self.spending.record(self.seq + 1, event.run_id, event.type, event.payload)
        self._count(event.run_id, 1)
        if is_end(event.type):
            self._ended.add(event.run_id)

    def _count(self, run_id: str, events: int) -> None:
        begin, _ = self.runs.get(run_id, (self.seq + 1, 0))
        self.seq += events
        self.runs[run_id] = begin, self.seq
        self._ended.discard(run_id)


def _read_events(lines: Sequence[Sequence[Any]], facts: Facts) -> bool:
    """Add the facts of events; return False if one of them has to be checked alone."""
    _, _, types, times, runs, _, _, _, subjects, _, payloads, *_ = zip(*lines, strict=False)
    facts.types.update(types)
    facts.runs.update(runs)
    facts.times.update((min(times), max(times)))
    facts.subjects.update(subjects)
    facts.contents.extend([values[CONTENT] for values in lines if len(values) > CONTENT])
    return set(map(type, payloads)) == {dict} and not any(map(is_end, facts.types))


def _kinds_of(lines: Sequence[Any]) -> Sequence[str | int] | None:
    """Return the name of the maker of each judged subject, and :data:`EVENT` for each event; None if there is another line.

    :raises TypeError: if a line does not begin with a number.
    """
    if {*map(type, lines)} != {list}:
        return None
    sizes = {*map(len, lines)}
    if min(sizes) <= FIRST_EVENT:
        return None
    firsts = {line[0] for line in lines}
    if firsts == {EVENT}:
        return [EVENT] * len(lines) if sizes <= EVENT_SIZES else None
    if not firsts <= {EVENT, JUDGED} or not all(type(line[1]) is str for line in lines):
        return None
    are_events = (len(line) in EVENT_SIZES for line in lines if line[0] == EVENT)
    return [line[1] if line[0] == JUDGED else EVENT for line in lines] if all(are_events) else None


def verify(connection: sqlite3.Connection, expected: str | None) -> Verification:
    """Check all lines and all tables. With *expected*, a line must have this digest: without it, a chain whose end was cut off looks complete."""
    with closing(sqlite3.connect("")) as scratch:  # a temporary file of SQLite's own: memory stays constant
        check, is_met = Check(connection, scratch, Contents(connection)), expected is None
        try:
            check.counted = counted_in(connection)
            for row in connection.execute(f"SELECT {ROW} FROM blocks ORDER BY first"):
                is_met = check.block(row, expected) or is_met
            if not is_met:
                raise Wrong(check.seq + 1, f"no line has the digest {expected}: the end of the ledger was cut off")
            _tables(connection, check)
        except Wrong as wrong:
            return _result(check, wrong.seq, str(wrong))
        except sqlite3.DatabaseError as error:
            return _result(check, check.seq + 1, f"the file is damaged after event {check.seq}: {error}")
        return _result(check, None, None)


def _result(check: Check, seq: int | None, reason: str | None) -> Verification:
    head = Head(check.seq, check.digest.hex()) if check.seq else None
    return Verification(check.seq, head, None if seq is None else max(1, seq), reason, check.absent)


def _tables(connection: sqlite3.Connection, check: Check) -> None:
    """Check the tables next to the blocks.

    :raises Wrong: for the first fault.
    """
    makers = {name: maker.line.decode() for name, maker in check.makers.items()}
    if dict(connection.execute("SELECT name, line FROM makers")) != makers:
        raise Wrong(check.seq, "the table makers does not follow from the lines")
    stored = {row[0]: row[1:] for row in connection.execute("SELECT run_id, first_seq, last_seq FROM runs")}
    for run_id in {**check.runs, **stored}:
        (low, high), (first, last) = stored.get(run_id, _NO_BOUNDS), check.runs.get(run_id, _NO_BOUNDS)
        if (low, high) != (first, last) and not ((low, high) == (first, None) and run_id in check.unbounded):
            raise Wrong(
                first or check.seq,
                f"run {run_id!r} has the events {first} to {last}, but the table runs has {low!r} to {high!r}",
            )
    check.sums()
    if (fault := check.contents.fault()) is not None:
        raise Wrong(check.seq, fault)
    if (damage := integrity(connection)) is not None:
        raise Wrong(check.seq, damage)


_NO_BOUNDS = 0, 0
