"""The check of the files of a ledger: the chain, the contents, and the states of the segments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from dicast import Head, LedgerError
from dicast.toolkit.ledger_lines.chain import chain_of

from . import commits
from .commits import LOG, Commit
from .groups import Group
from .log import Log
from .segment import SEGMENTS, Place, Segment
from .state import State
from .stores import Store


@attrs.frozen
class Result:
    """Result of the check of some segments that follow one another, the *places*, from the state *base* on.

    *state* is the state after the last valid event, both as text. *fault* is the first fault, or None.
    """

    base: str
    places: Sequence[Place]
    state: str
    absent: int
    is_met: bool
    fault: str | None


class Check:
    """Walk over all files in their order, which makes the state anew. Its memory does not grow with the events.

    *seq* is the number of the last valid event, *absent* the number of events whose content was erased, *is_met* whether an event has the expected digest.
    """

    def __init__(self, store: Store, expected: str | None, state: State | None = None) -> None:
        self._log, self._store = Log(store), store
        self._expected = None if expected is None else bytes.fromhex(expected)
        self._state = State() if state is None else state
        self.seq, self.absent = self._state.seq, 0
        self.is_met = expected is None

    @property
    def head(self) -> Head | None:
        """The last valid event."""
        return Head(self.seq, self._state.digest.hex()) if self.seq else None

    def run(self, results: Mapping[Place, Callable[[], Result | None]]) -> None:
        """Check all files.

        :param results: functions that return the results of stretches that other processes check, by the first place.
        :raises LedgerError: for the first fault.
        """
        checked = set[Place]()
        while True:
            place = Place(self._state.commit + 1, self.seq + 1)
            result = results[place]() if place in results else None
            if result is not None and result.base == self._base():
                checked.update(result.places)
                self._apply(result)
            elif self._store.exists(place.name):
                self._segment(place, self._log.segment(place))
                checked.add(place)
            elif (commit := self._log.commit(self._state.commit + 1)) is not None:
                self._commit(commit)
            elif not self._store.exists(place.name):  # else the commit was sealed meanwhile
                break
        self._rest(checked)

    def stretch(self, places: Sequence[Place]) -> Result:
        """Check the segments at *places*, as long as each begins where the segment before it ends."""
        base, fault, count = self._base(), None, 0
        try:
            for place in places:
                if place != Place(self._state.commit + 1, self.seq + 1):
                    break
                count += 1
                self._segment(place, self._log.segment(place))
        except LedgerError as error:
            fault = str(error)
        return Result(base, places[:count], self._state.packed().decode(), self.absent, self.is_met, fault)

    def _base(self) -> str:
        return self._state.packed().decode()

    def _apply(self, result: Result) -> None:
        """Go on after the segments of *result*.

        :raises LedgerError: for the fault of the result.
        """
        self._state = State.of(result.state.encode())
        self.seq, self.absent = self._state.seq, self.absent + result.absent
        self.is_met = self.is_met or result.is_met
        if result.fault is not None:
            raise LedgerError(result.fault)

    def _segment(self, place: Place, segment: Segment) -> None:
        header, state = segment.header, self._state
        if (header.commits[0], header.events[0]) != (place.commit, place.first):
            raise LedgerError(f"{segment.name}: it has the events from {header.events[0]} on")
        self._groups(segment.verified(state.digest))
        state.commit = header.commits[1]
        stored = segment.state()
        state.leases = stored.leases  # they do not follow from the events
        if stored.packed() != state.packed():
            raise LedgerError(f"{segment.name}: the state does not follow from the events")

    def _commit(self, commit: Commit) -> None:
        name = f"{self._store.place}/{commits.name_of(commit.number)}"
        if (commit.first, commit.prev) != (self.seq + 1, self._state.digest):
            raise LedgerError(f"{name}: it does not follow event {self.seq}")
        digests = chain_of(commit.prev, (row.line() for row in commit.rows))
        self._groups([Group.of(commit.rows, digests)])
        self._state.change_leases(commit.leases)
        self._state.commit = commit.number

    def _groups(self, groups: Iterable[Group]) -> None:
        state = self._state
        for group in groups:
            for place, row in group.amounts:
                try:
                    state.money.record(state.seq + place + 1, row, row.event().payload)
                except LedgerError:
                    self._pass(group.digests[:place])
                    raise
            state.bound(group.runs)
            self._pass(group.digests)
            self.absent += group.absent
        state.money.keep()

    def _pass(self, digests: Sequence[bytes]) -> None:
        """Go on after the events with *digests*."""
        if digests:
            self._state.seq, self._state.digest = self._state.seq + len(digests), digests[-1]
        self.seq = self._state.seq
        self.is_met = self.is_met or self._expected in digests

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
