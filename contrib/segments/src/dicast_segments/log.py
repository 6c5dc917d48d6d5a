"""Log of commits in their order. The older commits are sealed in segments.

A commit is a file whose name is its number, and a name is written once. So of two writers with the same position one fails, reads the commit of the other, and
decides again: amounts, leases and the chain are exact without a lock.

Commits are removed after their segment is durable. A writer that was suspended could then write a removed name again, so each writer looks for the segment after
its commit: if there is one with its number, the commit does not count.
"""

from __future__ import annotations

import random
import time
import uuid
from bisect import bisect_right
from collections.abc import Callable, Sequence

import attrs
import orjson

from dicast import LedgerError, LedgerRefused

from . import commits, segment
from .commits import LOG, Commit, LeaseChange
from .lines import Row
from .segment import SEGMENTS, WRITER_DIGITS, Place, Segment
from .state import State
from .stores import Store

MARKER = "ledger.json"
_MARK = orjson.dumps({"format": 1, "kind": "dicast segments/ledger"})

SEALED_COMMITS, SEALED_BYTES = 256, 16 * 2**20
"""Number of commits, and of their bytes without compression, from which the next append seals them."""

_ATTEMPTS = 1_000
"""Most commits of faster writers before an append fails."""

_LOOKS = 40
"""Most looks for a file that other writers may be sealing."""

_NAP_SECONDS = 0.05


@attrs.frozen
class Draft:
    """A commit to be written: its rows and their lines, and changes of leases."""

    rows: Sequence[Row] = ()
    lines: Sequence[bytes] = ()
    leases: Sequence[LeaseChange] = ()


@attrs.frozen
class Piece:
    """A commit that is not sealed: its number, its first and last event, and its bytes."""

    number: int
    first: int
    last: int
    size: int


class Log:
    """The log in a store, with the state after the newest commit that this object knows. Its callers hold a lock."""

    def __init__(self, store: Store) -> None:
        self.store, self.state = store, State()
        self.places: list[Place] = []
        self.tail: list[Piece] = []
        self._sealed = 0, 0
        """The last sealed commit, and its last event."""
        self._unsealed = dict[int, Commit]()
        """Commits that are not sealed, by number."""
        self._doubts = dict[tuple[int, str], frozenset[str]]()
        """Ids of the events of commits that may be written although their write failed, by number and writer."""
        self._written = set[str]()
        """Ids of the events of these commits, as far as the store has them."""
        self._is_read = self._has_written = False

    def create(self) -> None:
        """Mark an empty place as a ledger.

        :raises LedgerRefused: if the place has something else.
        """
        mark = self.store.get(MARKER)
        if mark is None:
            has_events = self.store.names(LOG) or self.store.names(SEGMENTS)
            if has_events and self.store.get(MARKER) is None:  # another writer may have begun the ledger meanwhile
                raise LedgerRefused(
                    f"{self.store.place}: {MARKER} is missing. Restore it from a copy, or choose an empty place"
                )
            self.store.put(MARKER, _MARK)
            mark = self.store.get(MARKER)
        self._check(mark)

    def find(self) -> None:
        """Check that the place is a ledger.

        :raises LedgerRefused: if it is none.
        """
        mark = self.store.get(MARKER)
        if mark is None:
            raise LedgerRefused(
                f"no ledger at {self.store.place}: {MARKER} is missing. Name the ledger of an earlier run, or run a pipeline first"
            )
        self._check(mark)

    def refresh(self) -> None:
        """Read the segments and commits that other writers have added.

        :raises LedgerError: if a commit or a segment is missing, or was changed.
        """
        for _ in range(_LOOKS):
            missing = self._read_new()
            if missing is None:
                self._is_read = True
                return
            time.sleep(random.uniform(0, _NAP_SECONDS))
        raise LedgerError(f"{self.store.place}: {missing} is missing. Restore it from a copy: dicast ledger verify")

    def write(self, decide: Callable[[State], Draft | None]) -> None:
        """Write the commit that *decide* returns for the newest state, durable on return; nothing for None. Amounts of the rows must be recorded in the state.

        *decide* is called again if another writer was faster.

        :raises LedgerError: if nothing was written.
        """
        if not self._is_read:
            self.refresh()
        if self._is_due():
            self.seal()
        state = self.state
        for attempt in range(_ATTEMPTS):
            try:
                draft = decide(state := self.state)
                if draft is None:
                    state.money.keep()
                    return
                commit = self._put(draft)
            except BaseException:
                state.money.undo()
                raise
            if commit is not None:
                state.add(commit)
                self._hold(commit)
                self._has_written = True
                return
            state.money.undo()
            if attempt:
                time.sleep(random.uniform(0, min(_NAP_SECONDS, 0.001 * 2**attempt)))
            self.refresh()
        raise LedgerError(
            f"{self.store.place}: other writers were faster {_ATTEMPTS} times. Try again when they have ended"
        )

    def unwritten(self, rows: Sequence[Row]) -> Sequence[Row]:
        """Return *rows* without the rows of commits that are written although their write failed, as when the store broke off before its answer.

        :raises LedgerError: if such a commit cannot be read.
        """
        for number, writer in [key for key in self._doubts if key[0] <= self.state.commit]:
            is_written = self._writer_of(number) == writer
            ids = self._doubts.pop((number, writer))
            self._written |= ids if is_written else frozenset()
        return [row for row in rows if row.columns[0] not in self._written] if self._written else rows

    def seal(self) -> None:
        """Write the commits that are not sealed as a segment, and remove them when it is durable.

        :raises LedgerError: if they cannot be sealed. They stay as commits.
        """
        sealed = list[Commit]()
        for piece in self.tail:
            commit = self.commit(piece.number)
            if commit is None:  # another writer has sealed it
                self.refresh()
                return
            sealed.append(commit)
        if not sealed:
            return
        place, data = segment.encoded(sealed, self.state)
        if self.store.put(place.name, data):
            self.places.append(place)
            self._set_sealed(self.state.commit, self.state.seq)
        else:
            self.refresh()
        old = [commits.number_of(name) for name in self.store.names(LOG)]
        covered = [number for number in old if number is not None and number <= self.sealed_commit]
        self.store.delete([commits.name_of(number) for number in covered])

    @property
    def sealed_commit(self) -> int:
        """The number of the last sealed commit."""
        return self._sealed[0]

    @property
    def sealed_event(self) -> int:
        """The number of the last sealed event."""
        return self._sealed[1]

    def close(self) -> None:
        """Seal the commits, if this object has written, so that other programs can read them."""
        if self._has_written and any(piece.last >= piece.first for piece in self.tail):
            self.seal()

    def commit(self, number: int) -> Commit | None:
        """Return a commit; None if it was sealed.

        :raises LedgerError: if it was changed.
        """
        commit = self._unsealed.get(number)
        return self._load(number) if commit is None else commit

    def _load(self, number: int) -> Commit | None:
        name = commits.name_of(number)
        data = self.store.get(name)
        if data is None:
            return None
        commit = commits.decoded(f"{self.store.place}/{name}", data)
        if commit.number != number:
            raise LedgerError(f"{self.store.place}/{name}: it has the commit {commit.number}")
        return commit

    def segment(self, place: Place) -> Segment:
        """Return a segment.

        :raises LedgerError: if it is missing or was changed.
        """
        name = f"{self.store.place}/{place.name}"
        data = self.store.get(place.name)
        if data is None:
            raise LedgerError(f"{name} is missing. Restore it from a copy")
        return Segment(name, data)

    def bounds_at(self, seq: int) -> tuple[Place | Piece, int, int]:
        """Return the segment or the commit with the event *seq*, and its first and last event."""
        if seq <= self._sealed[1]:
            # An empty segment has the same first event as the segment after it.
            at = bisect_right(self.places, seq, key=lambda place: place.first)
            if not at:
                raise LedgerError(
                    f"{self.store.place}: the segment with event {seq} is missing. Restore it from a copy"
                )
            last = self.places[at].first - 1 if at < len(self.places) else self._sealed[1]
            return self.places[at - 1], self.places[at - 1].first, last
        piece = self.tail[bisect_right(self.tail, seq, key=lambda piece: piece.first) - 1]
        return piece, piece.first, piece.last

    def _read_new(self) -> str | None:
        """Read new segments and commits; return None, or the name of a file that is missing, perhaps because it was sealed meanwhile."""
        # The log is listed first: a commit that is sealed in between is in a segment of the second list.
        numbers = {number for name in self.store.names(LOG) if (number := commits.number_of(name)) is not None}
        places, newest = self._new_segments()
        sealed, base = self._sealed, self.state
        if newest is not None:
            sealed = newest.header.commits[1], newest.header.events[1]
            if sealed[0] > base.commit:
                base = newest.state()
        news = list[Commit]()
        while (number := base.commit + len(news) + 1) in numbers:
            commit = self.commit(number)
            if commit is None:
                return commits.name_of(number)
            news.append(commit)
        if max(numbers, default=0) > base.commit + len(news):
            return commits.name_of(base.commit + len(news) + 1)
        if news and self.store.exists(name := Place(sealed[0] + 1, sealed[1] + 1).name):
            return name  # the commits were sealed meanwhile
        for commit in news:
            self._add(base, commit)
        self.places += places
        self.state = base
        self._set_sealed(*sealed)
        return None

    def _new_segments(self) -> tuple[list[Place], Segment | None]:
        """Return the places of the segments that other writers have added, and the newest of them."""
        last = self.places[-1].name.rpartition("/")[2] if self.places else ""
        names = self.store.names(SEGMENTS, last)
        places = [place for name in names if (place := Place.of(name)) is not None]
        return places, self.segment(places[-1]) if places else None

    def _add(self, state: State, commit: Commit) -> None:
        if (commit.first, commit.prev) != (state.seq + 1, state.digest):
            name = f"{self.store.place}/{commits.name_of(commit.number)}"
            raise LedgerError(f"{name}: it does not follow event {state.seq}, whose digest is {state.digest.hex()}")
        state.record(commit.rows)
        state.add(commit)
        self._hold(commit)

    def _hold(self, commit: Commit) -> None:
        self.tail.append(Piece(commit.number, commit.first, commit.last, commit.size))
        self._unsealed[commit.number] = commit

    def _set_sealed(self, commit: int, seq: int) -> None:
        self._sealed = commit, seq
        self.tail = [piece for piece in self.tail if piece.number > commit]
        self._unsealed = {number: item for number, item in self._unsealed.items() if number > commit}

    def _is_due(self) -> bool:
        return len(self.tail) >= SEALED_COMMITS or sum(piece.size for piece in self.tail) >= SEALED_BYTES

    def _put(self, draft: Draft) -> Commit | None:
        """Write *draft* after the newest commit; return None if another commit has its number."""
        state, writer = self.state, uuid.uuid4().hex[:WRITER_DIGITS]
        number = state.commit + 1
        commit, data = commits.encoded(
            number, state.seq + 1, state.digest, draft.rows, draft.lines, draft.leases, writer
        )
        self._doubts[number, writer] = frozenset(row.columns[0] for row in draft.rows)
        is_written = self._is_put(number, writer, data)
        del self._doubts[number, writer]
        return commit if is_written else None

    def _is_put(self, number: int, writer: str, data: bytes) -> bool:
        """Write a commit; return False if another commit has its number.

        :raises LedgerError: if the commit was not written, or it is not known.
        """
        name = commits.name_of(number)
        try:
            is_put = self.store.put(name, data)
        except LedgerError:
            if self._is_written(number, writer):  # only the answer was lost
                return True
            raise
        if is_put and not self.store.exists(Place(self._sealed[0] + 1, self._sealed[1] + 1).name):
            return True
        if self._is_written(number, writer):  # the client repeated the request, or another writer has sealed the commit
            return True
        if is_put:
            self.store.delete([name])
        return False

    def _is_written(self, number: int, writer: str) -> bool:
        """Return True if the commit with this number is that of *writer*."""
        for _ in range(2):  # the commit may be sealed between the two looks
            places, newest = self._new_segments()
            if newest is not None and newest.header.commits[1] >= number:
                place = [place for place in places if place.commit <= number][-1]
                return self.segment(place).writer_of(number) == writer
            commit = self._load(number)
            if commit is not None:
                return commit.writer == writer
        return False

    def _writer_of(self, number: int) -> str:
        """Return the writer of a commit that this object has read."""
        if number <= self.sealed_commit:
            place = [place for place in self.places if place.commit <= number][-1]
            return self.segment(place).writer_of(number)
        commit = self.commit(number)
        if commit is None:  # another writer has sealed it
            self.refresh()
            return self._writer_of(number)
        return commit.writer

    def _check(self, mark: bytes | None) -> None:
        try:
            kind = orjson.loads(mark or b"")
            is_known = kind["format"] == 1 and kind["kind"] == orjson.loads(_MARK)["kind"]
        except (ValueError, LookupError, TypeError):
            is_known = False
        if not is_known:
            raise LedgerRefused(
                f"{self.store.place}: {MARKER} is not that of a ledger of format 1. Use the version of dicast-segments that wrote it, or choose another place"
            )
