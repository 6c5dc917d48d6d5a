"""A run's records, read out of its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..model import Event, Query, Record, Results
from ..protocols import Ledger
from ..sections import METRICS

TYPES = ("record.completed", "eval.completed")
"""The events that :class:`RecordReader` reads."""


class RecordReader:
    """Finds the records in the events of one run.

    Where *started*, the payload of its ``run.started``, says that neither a task nor an extractor makes any, a subject's record is
    made of its verdicts: ``metrics.scores`` has what each metric and judge said of it, by label.
    """

    def __init__(self, started: Mapping[str, Any]) -> None:
        self._made = bool(started.get("task") or started.get("extractors"))
        self._verdicts: list[Event] = []

    def read(self, events: Iterable[Event]) -> Iterator[tuple[str, Record]]:
        """The subjects' ids with their records. One that is made of verdicts comes once the next subject's first is there."""
        for event in events:
            if event.type == "record.completed":
                yield str(event.subject_id), event.payload
            elif event.type == "eval.completed" and not self._made:
                if self._verdicts and _subject(self._verdicts[0]) != _subject(event):
                    yield from self.rest()
                self._verdicts.append(event)

    def rest(self) -> Iterator[tuple[str, Record]]:
        """The record of the subject that came last."""
        if self._verdicts:
            verdicts, self._verdicts = self._verdicts, []
            yield str(verdicts[0].subject_id), _record(verdicts)


def results(ledger: Ledger, run_id: str) -> Results:
    """The records of the run *run_id*, which are read each time they are asked for.

    :raises LookupError: when the ledger has no such run.
    """
    begun = next((entry.event for entry in ledger.read(Query(run_id=run_id, types=("run.started",), limit=1))), None)
    if begun is None:
        raise LookupError(run_id)
    started: Mapping[str, Any] = begun.payload

    def records() -> Iterator[tuple[str, Record]]:
        reader = RecordReader(started)
        yield from reader.read(entry.event for entry in ledger.read(Query(run_id=run_id, types=TYPES)))
        yield from reader.rest()

    counting = {key: value for key, value in started["fingerprints"].items() if not key.startswith(_BESIDE)}
    return Results(run_id, str(started.get("name")), records, counting)


_BESIDE = ("aggregates[", "early_stop[")
"""Fingerprints of what changes no number of a subject."""


def _subject(event: Event) -> tuple[str | None, str | None]:
    return event.subject_kind, event.subject_id


def _record(verdicts: Iterable[Event]) -> Record:
    scores: dict[str, float] = {}
    metrics: dict[str, object] = {"scores": scores}
    row = {}
    for event in verdicts:
        row = {"id": event.subject_id} | ({} if event.session_id is None else {"session_id": event.session_id})
        payload: Mapping[str, Any] = event.payload
        if payload["judge"] == METRICS:
            metrics["score"] = payload["score"]
            scores.update(payload["signals"]["metrics"])
        else:
            metrics.setdefault("score", payload["score"])
            scores[payload["judge"]] = payload["score"]
    return {"row": row, "metrics": metrics}
