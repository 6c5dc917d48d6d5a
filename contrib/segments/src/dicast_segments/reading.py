"""Readers of a ledger: rows, and columns of very many rows, from the segments and from the commits that are not sealed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from dicast import Entry, Event, Head, LedgerError, Query
from dicast.toolkit.ledger_lines.chain import chain_of

from .commits import Commit
from .lines import Row
from .log import Log, Piece
from .segment import Place, Segment

if TYPE_CHECKING:
    from dicast.reading.blocks.stored_columns import Stored

T = TypeVar("T")

_NEAR = 1_000
"""Most numbers between entries that are read together."""


class Reader:
    """Reader of a log. *lock* is held while it uses the log."""

    def __init__(self, log: Log, lock: threading.RLock) -> None:
        self._log, self._lock = log, lock
        self._types: dict[tuple[Place, int], frozenset[str]] = {}
        """The types of the events of segments that were read, by place and last event: a command asks for rare types several times."""

    def bounds(self, run_id: str | None) -> tuple[Head, int, int]:
        """Return the newest event, and the events of a run or of all runs: the number before the first of them, and the number of the last."""
        with self._lock:
            self._log.refresh()
            state = self._log.state
            first, last = (1, state.seq) if run_id is None else state.runs.get(run_id, (1, 0))
            return Head(state.seq, state.digest.hex()), first - 1, last

    def rows(self, query: Query, low: int, high: int) -> Iterator[tuple[int, Row]]:
        """Yield the rows with numbers above *low* and up to *high* that match *query*. Meanwhile commits may be sealed."""
        equal = _equal(query)
        for part, first in self._parts(low, high, query.types, newest_first=query.newest_first):
            if isinstance(part, Segment):
                rows = part.rows(equal, low, high, newest_first=query.newest_first)
            else:
                numbered = list(enumerate(part.rows, first))
                rows = _matching(numbered, equal, low, high, newest_first=query.newest_first)
            for seq, row in rows:
                if query.until is None or row.columns[2] <= query.until:
                    yield seq, row

    def _parts(
        self, low: int, high: int, types: Sequence[str], *, newest_first: bool = False
    ) -> Iterator[tuple[Segment | Commit, int]]:
        """Yield the segments and commits with events above *low* and up to *high*, each with the number of its first event, without segments that have no event of *types*.

        :raises LedgerError: if a file is missing or was changed.
        """
        while low < high:
            with self._lock:
                place, first, last = self._log.bounds_at(high if newest_first else low + 1)
            if isinstance(place, Piece):
                commit = self._log.commit(place.number)
                if commit is None:
                    with self._lock:
                        self._log.refresh()
                    continue
                yield commit, first
            elif (segment := self._segment(place, first, last, types)) is not None:
                yield segment, first
            if newest_first:
                high = first - 1
            else:
                low = last

    def _segment(self, place: Place, first: int, last: int, types: Sequence[str]) -> Segment | None:
        """Return the segment at *place* with the events from *first* to *last*; None if it has no event of *types*. Without *types* it has one.

        :raises LedgerError: if a file is missing or was changed.
        """
        segment, place_types = None, self._types.get((place, last))
        if place_types is None or not types or not place_types.isdisjoint(types):
            segment = self._log.segment(place)
            if segment.header.events != (first, last):
                after = segment.header.events[1] + 1
                raise LedgerError(
                    f"{segment.name}: the segment after it, with event {after}, is missing. Restore it from a copy"
                )
        if types and segment is not None and place_types is None:
            place_types = self._types[place, last] = segment.types()
        return None if types and place_types is not None and place_types.isdisjoint(types) else segment

    def merged(self, run_id: str | None, types: Sequence[str], merge: Callable[[Any], T]) -> T:
        """Return the result of *merge*, a function of the columns of all groups of rows that may have events of *types*.

        :raises LedgerError: if a file is missing or was changed.
        """
        try:
            return merge(self._columns(run_id, types))
        except ValueError as error:
            raise LedgerError(f"{self._log.store.place}: {error}: run dicast ledger verify") from error

    def _columns(self, run_id: str | None, types: Sequence[str]) -> Iterator[tuple[int, Stored]]:
        """Yield the columns of the groups of rows and of the commits that may have events of *types*, with the number of the first event."""
        from .columns import made_columns  # no run needs it

        head, low, high = self.bounds(run_id)
        equal = _equal(Query(run_id, tuple(types)))
        for part, first in self._parts(low, high, types):
            if isinstance(part, Segment):
                yield from part.columns(equal, low, high, head.seq)
            else:
                yield first, made_columns(part.rows)

    def entries(self, seqs: Sequence[int]) -> Iterator[Entry]:
        """Yield the entries with the ascending numbers *seqs*. Entries that are near each other are read together."""
        start = 0
        for end in range(1, len(seqs) + 1):
            if end == len(seqs) or seqs[end] - seqs[end - 1] > _NEAR:
                wanted = frozenset(seqs[start:end])
                for seq, row in self.rows(Query(), seqs[start] - 1, seqs[end - 1]):
                    if seq in wanted:
                        yield Entry(seq, event_at(seq, row), "", "")
                start = end

    def prev(self, first: int) -> bytes:
        """Return the digest before the event *first*, with which a segment or a commit begins."""
        while True:
            with self._lock:
                place, start, _ = self._log.bounds_at(first)
            if not isinstance(place, Piece):
                segment = self._log.segment(place)
                if start == first:
                    return segment.header.prev
                return chain_of(segment.header.prev, (row.line() for _, row in segment.rows({}, start - 1, first - 1)))[
                    -1
                ]
            commit = self._log.commit(place.number)
            if commit is not None:
                return commit.prev
            with self._lock:
                self._log.refresh()


def _value(value: str | None) -> Collection[str]:
    return () if value is None else (value,)


def _equal(query: Query) -> dict[str, Collection[str]]:
    """Return the values that *query* demands, by column."""
    values = {
        "run_id": _value(query.run_id),
        "type": query.types,
        "subject_kind": _value(query.subject_kind),
        "subject_id": _value(query.subject_id),
        "session_id": _value(query.session_id),
    }
    return {name: chosen for name, chosen in values.items() if chosen}


_PLACES = {"run_id": 3, "type": 1, "subject_kind": 6, "subject_id": 7, "session_id": 4}


def _matching(
    rows: list[tuple[int, Row]], equal: dict[str, Collection[str]], low: int, high: int, *, newest_first: bool
) -> Iterator[tuple[int, Row]]:
    tests = [(_PLACES[name], values) for name, values in equal.items()]
    for seq, row in reversed(rows) if newest_first else rows:
        if low < seq <= high and all(row.columns[place] in values for place, values in tests):
            yield seq, row


def event_at(seq: int, row: Row) -> Event:
    """Return the event of *row*, which has the number *seq*.

    :raises LedgerError: if the row was changed.
    """
    try:
        return row.event()
    except (TypeError, ValueError) as error:
        raise LedgerError(f"event {seq}: {error}") from error
