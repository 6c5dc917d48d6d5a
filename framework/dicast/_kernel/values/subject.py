"""Subjects: the objects that are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import orjson

from ..classes import define, field, frozen
from .answer import ReadyAnswer
from .recorded_score import RecordedScore
from .score import Failure

KINDS = ("tool_cycle", "turn", "row", "candidate", "session", "workload")
"""The subject kinds the kernel knows, finest first; any other string is allowed."""

PARENTS = {"tool_cycle": "turn", "turn": "session", "session": "workload"}
"""The next coarser kind: a subject's ``parent_id`` is the id of one of these."""


@define
class TraceEventFields:
    """Fields of :class:`TraceEvent` while they are writable."""

    type: str
    payload: Mapping[str, object] = field(factory=dict)
    time: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    extra: Mapping[str, object] = field(factory=dict)


@frozen
class TraceEvent(TraceEventFields):
    """An event of an agent's trace, as a source read it.

    *time* is ISO 8601 or None; *payload* has the documented form for *type*, unknown fields included; *extra* has unknown
    fields from outside the payload.

    :param session_id: the session, or None.
    :param turn_id: the turn, or None.
    """

    @classmethod
    def of(
        cls,
        type: str,
        payload: Mapping[str, object],
        time: str | None,
        session_id: str | None,
        turn_id: str | None,
        extra: Mapping[str, object],
    ) -> TraceEvent:
        """Return a trace event in half the time of the class: attrs sets the fields of a frozen object one by one. For sources of many events."""
        event = TraceEventFields(type, payload, time, session_id, turn_id, extra)
        event.__class__ = cls
        return cast("TraceEvent", event)


@frozen(eq=False)
class Trail:
    """State of a session when a subject of it was complete, or a tool was called: the first *stop* events of *events*.

    *events* are all events of the session, in order: the events of its subjects, as the same objects, and messages.
    All subjects of the session share this sequence, which may still grow at its end.
    """

    events: Sequence[TraceEvent] = ()
    stop: int = 0

    def __iter__(self) -> Iterator[TraceEvent]:
        return islice(self.events, self.stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and [*self] == [*other]

    def __reduce__(self) -> tuple[type[Trail], tuple[Sequence[TraceEvent], int]]:
        return Trail, (tuple(self), self.stop)  # later events do not belong to the subject

    __hash__ = None  # type: ignore[assignment]  # events hold mappings


@define
class SubjectFields(ReadyAnswer):
    """Fields of :class:`Subject` while they are writable."""

    kind: str
    id: str
    input: object = None
    output: object = None
    reference: object = None
    context: Mapping[str, object] = field(factory=dict)
    events: tuple[TraceEvent, ...] = ()
    session_id: str | None = None
    parent_id: str | None = None
    trail: Trail = Trail()
    columns: Mapping[str, object] = field(factory=dict, eq=False)
    weight: float = 1.0
    place: str | None = field(default=None, eq=False)


@frozen
class Subject(SubjectFields):
    """An object to judge.

    *kind* and *id* name it in every verdict. *input* is the request, *output* the judged output, *reference* the expected
    output (each any JSON value). *context* is all other data of the source. *events* are its trace events, in order. *session_id* groups
    subjects for budgets and for the confidence interval. *parent_id* is the id of
    the subject of the next coarser kind. *trail* is the conversation so far. *columns* are the columns that became the parts above, by
    their names in the data: templates and records use these names too. Columns are in no digest and no evidence. *weight* is the number
    of subjects of the population that this one represents: the inverse of the probability with which a sample drew it. *place* is where
    its data come from, for a reader, such as ``sessions/a.jsonl:12``; like columns, it is in no digest and no evidence.
    """

    @classmethod
    def of_fields(cls, *fields: Any) -> Subject:
        """Return a subject of these *fields* in half the time of the class: attrs sets the fields of a frozen object one by one. For sources of many rows."""
        subject: Any = SubjectFields(*fields)
        subject.__class__ = cls
        result: Subject = subject
        return result

    @property
    def text(self) -> str:
        """The output as text: a string unchanged, None as ``""``, any other JSON value as compact JSON."""
        output = self.output
        if isinstance(output, str):
            return output
        return "" if output is None else orjson.dumps(output).decode()


@define
class DueFields:
    """Fields of :class:`Due` while they are writable."""

    subject: Subject
    trigger: str = "batch"
    from_run: str | None = None
    answered: Callable[[Sequence[Any]], object] | None = None
    failure: Failure | None = None
    finish_reason: str | None = None
    recorded: tuple[RecordedScore, ...] = ()


@frozen
class Due(DueFields):
    """A subject that is due, with the reason: a source may yield it in place of the subject alone.

    *trigger* is ``bus``, ``batch``, ``feedback_arrived`` or ``benchmark``. *from_run* is the run under
    which the ledger already has the subject's trace events; the verdicts on the subjects inside it are then the ledger's newest.
    *answered* is called with the terminal events of the subject, verdicts and failures, once the ledger has them; a run that stops
    earlier does not call it. *failure*, of the kind ``source_error``, means that the recording system reports the failure of the subject:
    each label that accepts the subject fails with it, and no task, metric or judge is called. The subject has its known parts.
    *finish_reason* is the word of the data for the end of the subject's output, such as ``length``. *recorded* are the scores that another tool
    gave to the subject, each with a name of its own: each becomes a verdict, without a call and without a cost.

    :param subject: the subject; of a failed record its known parts.
    """

    @classmethod
    def of(cls, subject: Subject) -> Due:
        """Return *subject* as due in half the time of the class: attrs sets the fields of a frozen object one by one."""
        due: Any = DueFields(subject)
        due.__class__ = cls
        result: Due = due
        return result


@frozen
class PlacedDue(Due):
    """A subject that is due in one shard of a run. *position* is its place among the subjects of all shards, from 0."""

    position: int = 0
