"""Queries of a ledger: verdicts, failures, runs and subjects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain, islice, pairwise
from typing import Any

import attrs

from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import (
    EVAL_FAILED,
    EVAL_STARTED,
    RECORD_COMPLETED,
    RECORD_ENDS,
    RECORD_FAILED,
    RUN_COMPLETED,
    RUN_STARTED,
    RUN_STOPPED,
    SUBJECT_READ,
    VERDICT_ENDS,
)
from ..report.older import current_document
from ..values import KINDS, Event, Query, Verdict
from ..values.errors import ConfigError, LedgerError, Problem
from ..values.json_form import structure
from ..values.names import nearest
from ..values.output import output_digest
from ..values.stop_reasons import output_ending

_RECORD = "record"
"""Label of a record's failure, as in a run's document."""

_FIELDS = frozenset(field.name for field in attrs.fields(Verdict))
_RARE_FIELDS = frozenset(("adapted", "spared"))


def verdict(event: Event) -> Verdict:
    """Return the verdict of an ``eval.completed`` event.

    :raises LedgerError: when the payload is no verdict, because the ledger was changed.
    """
    from cattrs import BaseValidationError  # imported late, as in make_converter

    payload = {key: value for key, value in event.payload.items() if key in _FIELDS}
    try:
        return structure({**payload, "created_at": event.time, "run_id": event.run_id}, Verdict)
    except BaseValidationError as error:
        raise LedgerError(f"the event {event.id} is no verdict: run dicast ledger verify") from error


def new_verdict(event: Event) -> Verdict:
    """Return the verdict of an ``eval.completed`` event that this process made. Its values need no check, which takes most of the time."""
    payload = {key: value for key, value in event.payload.items() if key in _FIELDS}
    if not _RARE_FIELDS.isdisjoint(payload):
        return verdict(event)
    for key in ("scores", "skipped"):
        payload[key] = tuple(payload[key])  # type: ignore[arg-type]  # lists of a verdict
    for key in ("judge_cost_usd", "judge_cost_msat"):
        payload[key] = None if payload[key] is None else Decimal(payload[key])  # type: ignore[arg-type]  # an amount as text
    return Verdict(**payload, created_at=event.time, run_id=event.run_id)  # type: ignore[arg-type]  # fields of a verdict


@frozen
class Selection:
    """Filter of verdicts or failures to list; *latest* keeps the newest of each subject and judge."""

    run_id: str | None = None
    subject: str | None = None
    kind: str | None = None
    judge: str | None = None
    as_of: str | None = None
    latest: bool = False
    limit: int | None = None

    def events(self, ledger: Ledger, *types: str) -> Iterator[Event]:
        """Yield the selected events of *types*, oldest first; a record's failure only if no verdict failed with it.

        :raises ConfigError: when there are none, and *ledger* has verdicts but no such judge or kind.
        """
        query = Query(self.run_id, types, self.kind, self.subject, until=self.as_of)
        events: Iterable[Event] = _without_duplicates(entry.event for entry in ledger.read(query))
        if self.judge is not None:
            events = (event for event in events if event.payload.get("judge", _RECORD) == self.judge)
        if self.latest:
            events = _latest(events)
        empty = True
        for event in islice(events, self.limit):
            empty = False
            yield event
        if empty and (self.judge, self.kind) != (None, None):  # this check reads the whole ledger
            self._check_names(ledger)

    def _check_names(self, ledger: Ledger) -> None:
        entries = ledger.read(Query(types=(EVAL_STARTED,)))
        pairs = {(str(entry.event.payload["judge"]), str(entry.event.subject_kind)) for entry in entries}
        choices = {"judge": {judge for judge, _ in pairs}, "kind": {*KINDS, *(kind for _, kind in pairs)}}
        for option, names in choices.items():
            name = getattr(self, option)
            if pairs and name not in (None, _RECORD, *names):
                message = f"no {option} {name!r} in this ledger; choose from {', '.join(sorted(names))}"
                raise ConfigError(Problem(message, value=name, hint=nearest(name, names)))


def _without_duplicates(events: Iterable[Event]) -> Iterator[Event]:
    """Yield *events* without a record's failure if the next events are the same failure of its verdicts."""
    for event, after in pairwise(chain(events, [None])):
        if event is not None and not (
            event.type == RECORD_FAILED
            and after is not None
            and (after.run_id, after.subject_kind, after.subject_id, after.type)
            == (event.run_id, event.subject_kind, event.subject_id, EVAL_FAILED)
        ):
            yield event


def failure(event: Event) -> dict[str, Any]:
    """Return the failure of a verdict or a record, as ``dicast show`` prints it."""
    identity = {
        "run_id": event.run_id,
        "subject_kind": event.subject_kind,
        "subject_id": event.subject_id,
        "judge": _RECORD,
    }
    document_ = {**identity, "error_message": event.payload.get("error"), **event.payload}
    if event.type == RECORD_FAILED and "adapted" in event.payload:
        document_["adapted"] = {"task": event.payload["adapted"]}
    return document_


def _latest(events: Iterable[Event]) -> Iterable[Event]:
    """Return the newest event of each subject and judge, in the order of these events."""
    newest: dict[tuple[Any, ...], Event] = {}
    for event in events:
        key = (event.subject_kind, event.subject_id, event.payload.get("judge", _RECORD))
        newest.pop(key, None)
        newest[key] = event
    return newest.values()


def document(ledger: Ledger, run_id: str) -> Mapping[str, Any] | None:
    """Return the document of a run that was completed or stopped, in the current form; None for a run without an end."""
    query = Query(run_id=run_id, types=(RUN_COMPLETED, RUN_STOPPED), newest_first=True, limit=1)
    payload = next((entry.event.payload for entry in ledger.read(query)), None)
    if payload is None:
        return None
    return current_document({key: value for key, value in payload.items() if key != "reason"})


def subject(ledger: Ledger, subject_id: str, run_id: str) -> Mapping[str, Any] | None:
    """Return a subject as the run *run_id* read it: its kind, id, session, content, and its record if it has one."""
    query = Query(run_id, (SUBJECT_READ,), subject_id=subject_id, newest_first=True, limit=1)
    event = next((entry.event for entry in ledger.read(query)), None)
    if event is None:
        return None
    names: dict[str, object] = {"kind": event.subject_kind, "id": event.subject_id, "session_id": event.session_id}
    names |= {name: event.payload[name] for name in ("place", "weight", "parent_id") if name in event.payload}
    content = event.payload.get("content")
    records = (entry.event for entry in ledger.read(attrs.evolve(query, types=(RECORD_COMPLETED,), limit=None)))
    record = next(
        ({"record": completed.payload} for completed in records if completed.subject_kind == event.subject_kind), {}
    )
    members = content if isinstance(content, Mapping) else {}
    names["output_digest"] = _output_digest(ledger, run_id, members, record.get("record"))
    if (ending := output_ending(record.get("record", {}), event.payload)) is not None:
        names["finish_reason"] = ending
    return {**names, "digest": event.payload["digest"], **members, **record}


def _output_digest(
    ledger: Ledger, run_id: str, content: Mapping[str, Any], record: Mapping[str, Any] | None
) -> str | None:
    """Return the digest by which a label names the judged output; None if the ledger keeps digests of contents."""
    started = next((entry.event.payload for entry in ledger.read(Query(run_id, (RUN_STARTED,), limit=1))), {})
    if started.get("task") is None:
        return output_digest(content.get("output")) if content else None
    response = None if record is None or "digest" in record else record.get("response")
    return output_digest(response["content"]) if isinstance(response, Mapping) else None


def runs_of(ledger: Ledger, subject_id: str) -> list[Event]:
    """Return the ``run.started`` of each run that judged the subject, the most recently started first.

    If no run judged the subject, return the runs that read it.
    """
    for types in ((*RECORD_ENDS, *VERDICT_ENDS), (SUBJECT_READ,)):
        runs = {entry.event.run_id for entry in ledger.read(Query(types=types, subject_id=subject_id))}
        if runs:
            starts = (entry for run in runs for entry in ledger.read(Query(run, (RUN_STARTED,), limit=1)))
            return [entry.event for entry in sorted(starts, key=lambda entry: entry.seq, reverse=True)]
    return []
