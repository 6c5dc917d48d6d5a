"""Verdicts and failures of a run in a compact form: subjects with equal values share them, so they are decided once."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import orjson

from ..classes import define, field
from ..events import RECORD_ENDS, VERDICT_ENDS
from ..values import RECORDED_PREFIX, Entry, Event, Query
from ..values.passes import SubjectKey

Read = Callable[[Query], Iterator[Entry]]

_MOST = 65_536
"""Most shapes. A run with more of them is read event by event, because its shapes would need as much memory as its events."""

_FIELDS = ("subject_kind", "judge", "score", "raw", "failure_mode")
_SIGNALS = ("metrics", "raw")

Group = tuple[SubjectKey, str | None, tuple[int, ...]]
"""A subject, its session, and the numbers of the shapes of its judgments, which follow one another."""


@define
class RunEnds:
    """Verdicts and failures of a run, one per row, in the order of the ledger.

    A *shape* is the type and the payload without ids, texts and costs. *numbers* are indices into *shapes*.
    """

    subjects: list[SubjectKey] = field(factory=list)
    sessions: list[str | None] = field(factory=list)
    numbers: array[int] = field(factory=lambda: array("i"))
    shapes: list[tuple[str, Mapping[str, Any]]] = field(factory=list)

    def groups(self) -> Iterator[Group]:
        """Yield the judgments of each subject, without recorded scores of other tools. A subject with a failure comes last, because its retries are recorded later."""
        waiting: dict[SubjectKey, tuple[str | None, list[int]]] = {}
        is_failed = [type_ != VERDICT_ENDS[0] for type_, _ in self.shapes]
        is_own = [not str(payload.get("judge", "")).startswith(RECORDED_PREFIX) for _, payload in self.shapes]
        rows = (row for row in zip(self.subjects, self.sessions, self.numbers, strict=True) if is_own[row[2]])
        for subject, part in groupby(rows, lambda row: row[0]):
            (_, session, number), *later = part
            numbers = [number, *(again for _, _, again in later)]
            if subject in waiting:
                waiting[subject][1].extend(numbers)
            elif any(map(is_failed.__getitem__, numbers)):
                waiting[subject] = session, numbers
            else:
                yield subject, session, tuple(numbers)
        for subject, (session, numbers) in waiting.items():
            yield subject, session, tuple(numbers)

    def events(self, numbers: Sequence[int], kind: str) -> list[Event]:
        """Return the events of shapes with these *numbers* for a subject of *kind*, without ids, times and texts."""
        shapes = [self.shapes[number] for number in numbers]
        return [Event("", type_, "", "", payload, subject_kind=kind, subject_id="") for type_, payload in shapes]


def read_ends(read: Read, run_id: str) -> RunEnds | None:
    """Return the verdicts and failures of a run; None if a task or an extractor has made records, or if there are more than :data:`_MOST` shapes.

    :param read: the ledger's ``read``.
    """
    ends, places = RunEnds(), dict[bytes, int]()
    kinds = dict[str | None, str]()
    for entry in read(Query(run_id=run_id, types=(*RECORD_ENDS, *VERDICT_ENDS))):
        event = entry.event
        if event.type in RECORD_ENDS:
            return None
        text = _shape(event)
        number = places.setdefault(text, len(places))
        if number == len(ends.shapes):
            if number == _MOST:
                return None
            ends.shapes.append((event.type, orjson.loads(text)[1]))
        kind = kinds.setdefault(event.subject_kind, str(event.subject_kind))
        ends.subjects.append((kind, str(event.subject_id)))
        ends.sessions.append(event.session_id)
        ends.numbers.append(number)
    return ends


def _shape(event: Event) -> bytes:
    """Return the type and the fields of the payload that determine scores and passes, as JSON text."""
    payload: Mapping[str, Any] = event.payload
    shape = {name: payload[name] for name in _FIELDS if name in payload}
    if "signals" in payload:
        signals = payload["signals"] or {}
        shape["signals"] = {name: signals[name] for name in _SIGNALS if name in signals}
    if "skipped" in payload:
        shape["skipped"] = [{"metric": skip["metric"]} for skip in payload["skipped"] or ()]
    return orjson.dumps((event.type, shape))
