"""What is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import orjson

from ..classes import define, field, frozen
from .score import Failure

KINDS = ("tool_cycle", "turn", "row", "candidate", "session", "workload")
"""The subject kinds the kernel knows, finest first; any other string is allowed."""

PARENTS = {"tool_cycle": "turn", "turn": "session", "session": "workload"}
"""The next coarser kind: a subject's ``parent_id`` is the id of one of these."""


@define
class TraceEventFields:
    """The fields of :class:`TraceEvent`, as long as they can be written."""

    type: str
    payload: Mapping[str, object] = field(factory=dict)
    time: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    extra: Mapping[str, object] = field(factory=dict)


@frozen
class TraceEvent(TraceEventFields):
    """One event of an agent's trace, as a source read it.

    *time* is ISO 8601 or None; *payload* is as design gives it for *type*, unknown fields kept; *extra* holds unknown
    fields from beside the payload.
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
        """As the class itself, in half the time: attrs sets the fields of what is frozen one by one. For sources of many."""
        event = TraceEventFields(type, payload, time, session_id, turn_id, extra)
        event.__class__ = cls
        return cast("TraceEvent", event)


@frozen(eq=False)
class Trail:
    """How far a session had come when a subject of it was complete, or a tool was called: the first *stop* of *events*.

    *events* are all that happened in the session, in order: the events of its subjects, the very same objects, and messages.
    The subjects share the one sequence, which may still grow at its end; each of them sees its own beginning of it.
    """

    events: Sequence[TraceEvent] = ()
    stop: int = 0

    def __iter__(self) -> Iterator[TraceEvent]:
        return islice(self.events, self.stop)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trail) and [*self] == [*other]

    def __reduce__(self) -> tuple[type[Trail], tuple[Sequence[TraceEvent], int]]:
        return Trail, (tuple(self), self.stop)  # what follows is none of the subject's business

    __hash__ = None  # type: ignore[assignment]  # events hold mappings


@frozen
class Subject:
    """One thing to judge.

    *kind* and *id* name it in every verdict; *input* is what was asked, *output* what is judged, *reference* what would
    have been right (each any JSON value); *context* is everything else the source knew; *events* are the trace events it is
    made of, in order; *session_id* groups subjects for budgets and for the confidence interval; *parent_id* is the id of
    the subject of the next coarser kind; *trail* is the conversation so far. *columns* are the columns that became the parts above, by
    their names in the data: templates and records know them by these names, too. They are in no digest and no evidence.
    """

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

    @property
    def text(self) -> str:
        """The output as text: a string as it is, nothing as ``""``, any other JSON value as compact JSON."""
        output = self.output
        if isinstance(output, str):
            return output
        return "" if output is None else orjson.dumps(output).decode()


@frozen
class Due:
    """A subject that is to be judged now, and why: what a source may yield in place of the subject alone.

    *trigger* is ``bus``, ``batch``, ``feedback_arrived`` or ``benchmark``. *from_run* is the run under
    which the ledger has the subject's trace events already; the verdicts on what it is made of are the ledger's newest then.
    *answered* is called with the terminal events of the subject, verdicts and failures, once the ledger has them; a run that stops
    before does not call it. *failure*, of the kind ``source_error``, says that the record of the subject failed where it was recorded:
    each label that accepts the subject fails with it, and no task, metric or judge is asked. The subject has what is known of it.
    *finish_reason* is the word of the data for the end of the subject's output, such as ``length``.
    """

    subject: Subject
    trigger: str = "batch"
    from_run: str | None = None
    answered: Callable[[Sequence[Any]], object] | None = None
    failure: Failure | None = None
    finish_reason: str | None = None
