"""The check of a whole ledger: the chain, the contents, and the states of the segments."""

from __future__ import annotations

from collections.abc import Iterable

from dicast import Head, LedgerError, Verification
from dicast.toolkit.ledger_lines.chain import chain_of

from . import commits
from .commits import LOG, Commit
from .lines import Row
from .log import Log
from .segment import SEGMENTS, Place, Segment
from .state import State
from .stores import Store


def verify(store: Store, head: str | None) -> Verification:
    """Check all segments and commits of a ledger. With *head*, a row must have this digest: without it, a ledger whose end was cut off looks complete."""
    check = Check(store, head)
    try:
        check.run()
        if not check.is_met:
            raise LedgerError(f"no row has the digest {head}")
    except LedgerError as error:
        return Verification(check.seq, check.head, check.seq + 1, str(error), check.absent)
    return Verification(check.seq, check.head, absent=check.absent)


class Check:
    """Walk over all files in their order, which makes the state anew. Its memory does not grow with the events.

    *seq* is the number of the last valid event, *absent* the number of events whose content was erased, *is_met* whether an event has the expected digest.
    """

    def __init__(self, store: Store, expected: str | None) -> None:
        self._log, self._store, self._expected = Log(store), store, expected
        self._state = State()
        self.seq = self.absent = 0
        self.is_met = expected is None

    @property
    def head(self) -> Head | None:
        """The last valid event."""
        return Head(self.seq, self._state.digest.hex()) if self.seq else None

    def run(self) -> None:
        """Check all files.

        :raises LedgerError: for the first fault.
        """
        checked = set[Place]()
        while True:
            place = Place(self._state.commit + 1, self.seq + 1)
            if self._store.exists(place.name):
                self._segment(place, self._log.segment(place))
                checked.add(place)
            elif (commit := self._log.commit(self._state.commit + 1)) is not None:
                self._commit(commit)
            elif not self._store.exists(place.name):  # else the commit was sealed meanwhile
                break
        self._rest(checked)

    def _segment(self, place: Place, segment: Segment) -> None:
        header, state = segment.header, self._state
        if (header.commits[0], header.events[0]) != (place.commit, place.first):
            raise LedgerError(f"{segment.name}: it has the events from {header.events[0]} on")
        self._rows(segment.verified(state.digest))
        state.commit = header.commits[1]
        stored = segment.state()
        state.leases = stored.leases  # they do not follow from the events
        if stored.packed() != state.packed():
            raise LedgerError(f"{segment.name}: the state does not follow from the events")

    def _commit(self, commit: Commit) -> None:
        name = f"{self._store.place}/{commits.name_of(commit.number)}"
        if (commit.first, commit.prev) != (self.seq + 1, self._state.digest):
            raise LedgerError(f"{name}: it does not follow event {self.seq}")
        self._rows(zip(commit.rows, chain_of(commit.prev, (row.line() for row in commit.rows)), strict=True))
        self._state.change_leases(commit.leases)
        self._state.commit = commit.number

    def _rows(self, rows: Iterable[tuple[Row, bytes]]) -> None:
        state = self._state
        for row, digest in rows:
            state.record([row])
            state.bound([row.columns[3]])
            state.seq, state.digest = state.seq + 1, digest
            self.seq = state.seq
            self.absent += row.content_digest is not None and row.content is None
            self.is_met = self.is_met or digest.hex() == self._expected
        state.money.keep()

    def _rest(self, checked: set[Place]) -> None:
        """Check that no file follows the last event.

        :raises LedgerError: if there is one: a file before it is missing.
        """
        numbers = [commits.number_of(name) for name in self._store.names(LOG)]
        later = [number for number in numbers if number is not None and number > self._state.commit]
        places = [Place.of(name) for name in self._store.names(SEGMENTS)]
        strays = [place for place in places if place is not None and place not in checked]
        if later and not self._store.exists(commits.name_of(self._state.commit + 1)):
            name = commits.name_of(self._state.commit + 1)
            raise LedgerError(f"{self._store.place}/{name} is missing, with event {self.seq + 1}")
        if strays and strays[0].commit > self._state.commit + 1:
            name = Place(self._state.commit + 1, self.seq + 1).name
            raise LedgerError(f"{self._store.place}/{name} is missing, with event {self.seq + 1}")
        if strays and strays[0].commit <= self._state.commit:
            raise LedgerError(f"{self._store.place}/{strays[0].name}: another file has the same events")
