"""Events of a merged run that a killed process of the merge has recorded."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..classes import evolve
from ..contract.protocols import Ledger
from ..events import SHARD_ROOTED
from ..values import Entry, Event, Query
from ..values.errors import ConfigError
from .merged_events import OF_RUN, SubjectEvents

PAGE = 1_000
"""Number of entries of one read. No read stays open while the merge appends."""


class EarlierMerge:
    """Recorded events of the run *run_id*, in their order. A merge records the events of its shards in one order, so they come first.

    *has_root* is True if the root of the shards is recorded; it is known after :meth:`rest`.
    """

    def __init__(self, run_id: str, recorded: Iterator[Event]) -> None:
        self._run_id, self._recorded = run_id, recorded
        self.has_root = False

    @classmethod
    def read(cls, ledger: Ledger, started: Entry) -> EarlierMerge:
        """Return the events of the run with the entry *started* that the ledger has now."""
        head, run_id = ledger.head(), started.event.run_id
        last = 0 if head is None else head.seq
        return cls(run_id, _events(ledger, Query(run_id, after=started.seq, limit=PAGE), last))

    def recognize(self, subject: SubjectEvents) -> tuple[SubjectEvents, int]:
        """Return *subject* with the ids of its recorded events, and their number.

        :raises ConfigError: if another event is recorded: a shard has gone on since.
        """
        recorded = [*islice(self._recorded, len(subject.events))]
        if not recorded:
            return subject, 0
        ids = dict[str, str]()
        for event, before in zip(subject.events, recorded, strict=False):
            if _key(event) != _key(before):
                raise ConfigError(
                    f"run {self._run_id} is a merge that did not end, and the shards have changed since; "
                    "name another ledger for the merged run with --ledger"
                )
            ids[event.id] = before.id
        events = [evolve(event, id=ids.get(event.id, event.id)) for event in subject.events]
        superseded = frozenset(ids.get(id_, id_) for id_ in subject.superseded)
        return SubjectEvents(events, superseded, subject.read), len(recorded)

    def rest(self) -> list[Event]:
        """Return the recorded events that are not of the shards: the ends of their open reservations."""
        rest = [*self._recorded]
        self.has_root = any(event.type == SHARD_ROOTED for event in rest)
        return rest


def _events(ledger: Ledger, query: Query, last: int) -> Iterator[Event]:
    """Yield the events of *query* up to the sequence number *last*, page by page."""
    while page := [*ledger.read(query)]:
        for entry in page:
            if entry.seq > last:
                return
            if entry.event.type not in OF_RUN:
                yield entry.event
        query = evolve(query, after=page[-1].seq)


def _key(event: Event) -> tuple[str | None, ...]:
    return event.type, event.time, event.subject_kind, event.subject_id
