"""A subject that was judged at once and for free: its three events as one value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..classes import define, field, frozen
from ..events import EVAL_COMPLETED, EVAL_STARTED, SUBJECT_READ
from .event import Event, sensitivity
from .score import Score
from .subject import Subject

JUDGED = "judged"
"""Type of a judged subject among the types of events."""

JUDGED_EVENTS = frozenset((SUBJECT_READ, EVAL_STARTED, EVAL_COMPLETED))
"""The types of the events of a judged subject."""


@frozen(eq=False)
class JudgedMaker:
    """Facts that all judged subjects of one kind in a run share.

    *started* has the members of ``eval.started`` without the ids. *metrics* are the labels of the metrics in the order of their calls,
    the proxies first. *keeps_texts* is True if the verdicts hold texts of other authors.

    :param run_id: the run.
    :param kind: the kind of the subjects.
    :param judge: the label of the verdict.
    """

    run_id: str
    kind: str
    judge: str
    started: Mapping[str, object]
    metrics: tuple[str, ...]
    keeps_texts: bool


@define(eq=False)
class JudgedRow:
    """A subject with its verdict, in place of the events ``subject.read``, ``eval.started`` and ``eval.completed``.

    *read* is the payload of ``subject.read``. *verdict* is the payload of ``eval.completed``, shared by all subjects with equal values:
    its ids, its latency, and the texts and signals of its scores are empty. *answers* are the scores, in the order of the maker's metrics; the
    truth metrics are missing if the proxies held the subject back. *ids* are the ids of the three events, and *times* the time of the
    first two and the time of the last.

    :param maker: the facts that the subject shares with others.
    :param subject: the subject.
    :param eval_id: the id of the verdict.
    :param latency_ms: the duration in whole milliseconds.
    :param has_notes: True if a score has a text or signals.
    :param text: the JSON text of the content in *read*, whose SHA-256 is the digest there; None if it was not made.
    """

    type = JUDGED

    maker: JudgedMaker
    subject: Subject
    read: Mapping[str, Any]
    verdict: Mapping[str, Any]
    answers: Sequence[Score]
    eval_id: str
    ids: Sequence[str]
    times: tuple[str, str]
    latency_ms: int
    has_notes: bool
    text: bytes | None = None
    _events: tuple[Event, ...] = field(init=False, default=())

    @property
    def payload(self) -> Mapping[str, Any]:
        """The payload of the verdict that subjects with equal values share."""
        return self.verdict

    @property
    def session_id(self) -> str | None:
        """The session of the subject."""
        return self.subject.session_id

    @property
    def subject_kind(self) -> str:
        """The kind of the subject."""
        return self.maker.kind

    @property
    def subject_id(self) -> str:
        """The id of the subject."""
        return self.subject.id

    def completed(self) -> dict[str, Any]:
        """Return the payload of ``eval.completed``."""
        payload = {**self.verdict, "eval_id": self.eval_id, "subject_id": self.subject.id}
        payload["judge_latency_ms"] = self.latency_ms
        payload["scores"] = [
            {**item, "details": answer.details, "signals": answer.signals}
            for item, answer in zip(self.verdict["scores"], self.answers, strict=True)
        ]
        # a sink may change its event, and other rows share the verdict
        signals = self.verdict["signals"]
        payload["signals"] = {**signals, "metrics": {**signals["metrics"]}}
        payload["skipped"] = [*self.verdict["skipped"]]
        if "spared" in payload:
            payload["spared"] = [{**spared} for spared in payload["spared"]]
        return payload

    def events(self) -> tuple[Event, ...]:
        """Return the three events. They are made once."""
        if not self._events:
            self._events = self._make_events()
        return self._events

    def _make_events(self) -> tuple[Event, ...]:
        maker, subject, eval_id, (began, ended) = self.maker, self.subject, self.eval_id, self.times
        run_id, kind, id_, session = maker.run_id, maker.kind, subject.id, subject.session_id
        started = {"eval_id": eval_id, "subject_kind": kind, "subject_id": id_, **maker.started}
        completed = self.completed()
        level = "user_controlled" if maker.keeps_texts else sensitivity(completed)
        first, second, third = self.ids
        make = Event.of
        return (
            make(first, SUBJECT_READ, began, run_id, self.read, session, None, kind, id_, "user_controlled"),
            make(second, EVAL_STARTED, began, run_id, started, session, None, kind, id_),
            make(third, EVAL_COMPLETED, ended, run_id, completed, session, None, kind, id_, level),
        )


Records = Sequence[Event | JudgedRow]
"""Events in their order; a judged subject is in the place of its three events."""


def events_of(records: Records, wants: Collection[str] = ()) -> list[Event]:
    """Return *records* as events; only the types in *wants*, if it is not empty."""
    makes_events = not wants or not JUDGED_EVENTS.isdisjoint(wants)
    events: list[Event] = []
    for record in records:
        if isinstance(record, Event):
            if not wants or record.type in wants:
                events.append(record)
        elif makes_events:
            made = record.events()
            events += [event for event in made if event.type in wants] if wants else made
    return events
