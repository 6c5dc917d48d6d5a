"""The source ``traces/recorded``: the subjects of a ledger, to judge them again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, time
from hashlib import sha256
from typing import Any

import attrs

from dicast import ConfigError, DataError, Due, Entry, Failure, Problem, Query, ReadCounts, RunContext, Subject

from .choice import COMPLETE, FINISHED, STARTED, Choice, Part
from .history import History, RecordedOnce, Watched, sortable
from .recording import trace_event
from .retold import is_trace, traced

_PAGE = 1000
_ENDS: Mapping[str, tuple[str, ...]] = {
    "turn": ("turn.completed",),
    "tool_cycle": ("tool.called", "tool.completed", "tool.failed", "turn.completed"),
    "session": ("turn.completed", "session.ended"),
}
"""The types of trace events that give a subject of a kind its time: the last such event counts."""
_PARTS_OF = {"tool.called": STARTED, "tool.completed": FINISHED, "tool.failed": FINISHED}

Read = Callable[[Query], Iterator[Entry]]


@attrs.frozen
class Recorded:
    """Subjects of earlier runs in the run's ledger, each in the state in which it was last read, to judge them again.

    Turns, tool cycles and sessions that no run has read are put together from the trace events in the ledger.
    Subjects within the window are judged: a turn by the time of its ``turn.completed``, a tool cycle by the time of its end,
    a session by the time of its ``session.ended``, or else of its last turn; a subject without a time by the time of its reading.

    :param kind: the kind of subject (``subject`` in a pipeline): ``turn``, ``tool_cycle``, ``session``, ``row`` or any other.
    :param since: the start of the window, an ISO 8601 date or time, in UTC without an offset; included. None: the
        first subject.
    :param until: the end of the window, included; a date is the whole day. None: the last subject.
    :param session: only the subjects of this session.
    """

    kind: str = attrs.field(alias="subject")
    since: str | None = None
    until: str | None = None
    session: str | None = None

    def __attrs_post_init__(self) -> None:
        since, until = self.window
        if since > until:
            raise ConfigError(Problem(f"since ({self.since}) is after until ({self.until})", path="since"))

    @property
    def window(self) -> tuple[str, str]:
        """The first and the last moment."""
        since = "0001-01-01" if self.since is None else self.since
        until = "9999-12-31" if self.until is None else self.until
        return _bound("since", since, time.min), _bound("until", until, time.max)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Recording]:
        """Yield the live source, which reads the ledger of *run*."""
        with Choice() as choice:
            yield Recording(run.read, self, choice)


class Recording:
    """The subjects of one kind in a ledger. Memory holds one page of rows, and the trace of one session."""

    def __init__(self, read: Read, options: Recorded, choice: Choice) -> None:
        self.kinds = (options.kind,)
        self.total: int | None = None
        self._read, self._options, self._choice = read, options, choice
        self._records = self._failed = 0

    def check(self) -> str:
        """Find the subjects in the window; return a digest of their contents.

        :raises DataError: if there are no subjects, if the ledger has only digests of them, or if several subjects that no run has
            read share an id.
        """
        digested = self._note()
        self.total = self._choice.choose(*self._options.window)
        if not self.total:
            raise DataError(self._missing())
        for run_id in (*(part.run_id for part in self._choice.parts()), *(run for run, _, _ in self._choice.traces())):
            if run_id in digested:
                raise DataError(
                    f"the ledger keeps digests in place of the subjects of run {run_id} (content: digest), so that "
                    "nothing can be judged again from it; run the pipeline over the data instead"
                )
        if shared := self._choice.shared():
            id, first_session, another = shared
            raise DataError(
                f"the trace has a {self._options.kind} {id!r} in the sessions {first_session!r} and {another!r}, which a verdict could not "
                "distinguish; judge one session at a time (--session, or the source's option session)"
            )
        digest_ = sha256(self._options.kind.encode())
        for id, digest in self._choice.digests():
            digest_.update(f"\n{id} {digest}".encode())
        return digest_.hexdigest()

    def subjects(self) -> Iterator[Due]:
        """Yield the subjects, one session after another, in the order in which they were first judged.

        :raises DataError: as :meth:`check`, which comes first.
        """
        if self.total is None:
            self.check()
        self._records = self._failed = 0
        for due in self._dues():
            self._records += 1
            self._failed += due.failure is not None
            yield due

    def read_counts(self) -> ReadCounts:
        """Return the number of subjects in the newest pass, and of those whose records had failed."""
        return ReadCounts(self._records, failed=self._failed)

    def _dues(self) -> Iterator[Due]:
        for part in self._choice.parts():
            yield from self._part(part)
        for run_id, session, ids in self._choice.traces():
            for subject in traced(self._pages(Query(run_id=run_id, session_id=session)), session, self._options.kind):
                if subject.id in ids:
                    yield Due(subject, "batch", run_id)

    def _note(self) -> set[str]:
        """Record when every subject was read and when it happened; return the runs that stored only digests."""
        digested = set()
        for entry in self._read(Query(types=("run.started",))):
            if entry.event.payload.get("live"):
                self._choice.note_live(entry.event.run_id)
        kind, types = self._options.kind, _ENDS.get(self._options.kind, ())
        for entry in self._read(Query(types=("subject.read", *types), session_id=self._options.session)):
            event = entry.event
            if event.type != "subject.read":
                if event.payload.keys() == {"digest"}:
                    digested.add(event.run_id)
                self._note_end(entry, kind)
            elif event.subject_kind == kind and "from_run" not in event.payload:
                if event.payload.get("content") is None:
                    digested.add(event.run_id)
                self._choice.note_read(entry)
        return digested

    def _note_end(self, entry: Entry, kind: str) -> None:
        type_ = entry.event.type
        if kind == "tool_cycle" and type_ == "turn.completed":
            self._choice.note_completed(entry)
        elif (end_id := _ended_id(entry, kind)) is not None:
            self._choice.note_end(entry, end_id, _PARTS_OF.get(type_, COMPLETE))

    def _part(self, part: Part) -> Iterator[Due]:
        live = part.session is not None
        history: History = RecordedOnce() if part.session is None else Watched(part.session)
        chosen: Entry | None = None
        for entry in self._pages(Query(run_id=part.run_id, session_id=part.session)):
            if is_trace(entry.event):
                history.add(trace_event(entry.event))
                continue
            if chosen is not None:  # the previous subject has all its events now
                yield _due(chosen, history)
                chosen = None
            if entry.seq > part.last:
                return
            if entry.event.type == "subject.read":
                history.begin(entry)
                chosen = entry if entry.seq in self._choice else None
            if live and chosen is not None:  # in a live run all its events were recorded before its reading
                yield _due(chosen, history)
                chosen = None
        if chosen is not None:
            yield _due(chosen, history)

    def _pages(self, query: Query) -> Iterator[Entry]:
        """Yield the rows of *query* page by page: one long read would block SQLite's checkpoints while the run writes."""
        while page := list(self._read(attrs.evolve(query, limit=_PAGE))):
            yield from page
            query = attrs.evolve(query, after=page[-1].seq)

    def _missing(self) -> str:
        kind, session = self._options.kind, self._options.session
        place = "the ledger" if session is None else f"session {session!r} of the ledger"
        count, first, last = self._choice.extent()
        if count:
            since, until = self._options.since or "the beginning", self._options.until or "the end"
            return f"no {kind} from {since} to {until}: the {count:,} in {place} are from {first:.19}Z to {last:.19}Z"
        reads = self._read(Query(types=("subject.read",), session_id=session))
        other_kinds = ", ".join(sorted({str(entry.event.subject_kind) for entry in reads}))
        return f"{place} has no subject of kind {kind!r}; it has {f'subjects of kind {other_kinds}' if other_kinds else 'none at all'}"


def _ended_id(entry: Entry, kind: str) -> object:
    """Return the id of the subject of *kind* that a trace event ends."""
    event = entry.event
    if kind == "tool_cycle":
        return event.payload.get("tool_use_id")
    return event.turn_id if kind == "turn" else event.session_id


def _due(read: Entry, history: History) -> Due:
    event, content = read.event, read.event.payload["content"]
    assert isinstance(content, Mapping)  # check has looked
    kind, id = str(event.subject_kind), str(event.subject_id)
    parents = {"turn": event.session_id, "tool_cycle": event.turn_id, "session": event.payload.get("parent_id")}
    subject = Subject(
        kind,
        id,
        content["input"],
        content["output"],
        content["reference"],
        content["context"],
        history.events(),
        event.session_id,
        parents.get(kind),  # type: ignore[arg-type]  # the kernel records a text
        history.trail(),
    )
    payload: Mapping[str, Any] = event.payload
    further = {name: payload[name] for name in ("weight", "place") if name in payload}
    subject = attrs.evolve(subject, **further) if further else subject
    source_columns: Any = payload.get("columns", {})
    columns = {
        name: getattr(subject, part) if isinstance(part, str) else part[0] for name, part in source_columns.items()
    }
    subject = attrs.evolve(subject, columns=columns) if columns else subject
    failure = event.payload.get("failure")
    assert failure is None or isinstance(failure, Mapping)
    failed = None if failure is None else Failure(str(failure["kind"]), str(failure["message"]))
    ending: Any = event.payload.get("finish_reason")
    return Due(subject, "batch", event.run_id, failure=failed, finish_reason=ending)


def _bound(name: str, text: str, edge: time) -> str:
    """Return the moment of *text*; for a date, the *edge* of the day."""
    try:
        parsed = datetime.fromisoformat(text)
        if len(text) <= len("2026-01-31"):
            parsed = datetime.combine(parsed.date(), edge)
        return sortable(parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        message = f"{name} is not an ISO 8601 date or time: {text!r}; write it like 2026-01-31 or 2026-01-31T12:00:00Z"
        raise ConfigError(Problem(message, path=name, value=text)) from error
