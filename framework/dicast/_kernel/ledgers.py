"""Reading a ledger back: verdicts, failures, runs and subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from .converter import structure
from .model import Event, Query, Verdict
from .protocols import Ledger

_FIELDS = frozenset(field.name for field in attrs.fields(Verdict))


def verdict(event: Event) -> Verdict:
    """The verdict that an ``eval.completed`` event holds."""
    payload = {key: value for key, value in event.payload.items() if key in _FIELDS}
    return structure({**payload, "created_at": event.time, "run_id": event.run_id}, Verdict)


@attrs.frozen
class Wanted:
    """Which verdicts, or failures, to list; *latest* keeps the newest of each subject and judge."""

    run_id: str | None = None
    subject: str | None = None
    kind: str | None = None
    judge: str | None = None
    as_of: str | None = None
    latest: bool = False
    limit: int | None = None

    def events(self, ledger: Ledger, type_: str) -> Iterator[Event]:
        """The events of *type_* that are meant, oldest first."""
        query = Query(self.run_id, (type_,), self.kind, self.subject, until=self.as_of)
        found: Iterable[Event] = (entry.event for entry in ledger.read(query))
        if self.judge is not None:
            found = (event for event in found if event.payload["judge"] == self.judge)
        if self.latest:
            found = _latest(found)
        for number, event in enumerate(found):
            if number == self.limit:
                return
            yield event


def _latest(events: Iterable[Event]) -> Iterable[Event]:
    """The newest of each subject and judge, in the order in which these came."""
    newest: dict[tuple[Any, ...], Event] = {}
    for event in events:
        key = (event.subject_kind, event.subject_id, event.payload["judge"])
        newest.pop(key, None)
        newest[key] = event
    return newest.values()


def newest_run(ledger: Ledger) -> str | None:
    """The id of the run that began last."""
    newest = ledger.read(Query(types=("run.started",), newest_first=True, limit=1))
    return next((entry.event.run_id for entry in newest), None)


def started(ledger: Ledger, run_id: str) -> Event | None:
    """The ``run.started`` event of a run."""
    return next((entry.event for entry in ledger.read(Query(run_id=run_id, types=("run.started",), limit=1))), None)


def document(ledger: Ledger, run_id: str) -> Mapping[str, Any] | None:
    """The document of a run that was completed or stopped, as it stood then; None for one that ended without a word."""
    query = Query(run_id=run_id, types=("run.completed", "run.stopped"), newest_first=True, limit=1)
    payload = next((entry.event.payload for entry in ledger.read(query)), None)
    return None if payload is None else {key: value for key, value in payload.items() if key != "reason"}


def subject(ledger: Ledger, subject_id: str) -> Mapping[str, Any] | None:
    """The newest content of a subject: its kind, id, session and what was judged, and its newest record where it has one."""
    query = Query(types=("subject.read",), subject_id=subject_id, newest_first=True, limit=1)
    event = next((entry.event for entry in ledger.read(query)), None)
    if event is None:
        return None
    names = {"kind": event.subject_kind, "id": event.subject_id, "session_id": event.session_id}
    content = event.payload.get("content")
    made = next(
        ledger.read(Query(types=("record.completed",), subject_id=subject_id, newest_first=True, limit=1)), None
    )
    record = {} if made is None else {"record": made.event.payload}
    return {**names, "digest": event.payload["digest"], **(content if isinstance(content, Mapping) else {}), **record}
