"""The intake of events: a batch is recorded together with the subjects that it makes due; then the subjects are passed on to be judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import attrs

from dicast import DataError, Due, Entry, Failure, Problem, Query, ReadCounts, RunContext, TraceEvent
from dicast.toolkit.reception import ReceivedSession
from dicast.toolkit.scan import Scan
from dicast.toolkit.session_reading import Failed
from dicast.toolkit.sessions import Kind

from ..messages import Layout
from ..recording import recorded_at, trace_event
from .archive import LedgerArchive, is_trace
from .backlog import Backlog, Item
from .lines import Line
from .listening import Post
from .names import Names
from .scanning import Scanning
from .status import Console, Snapshot
from .tail import Position
from .transcripts import Growth, Transcripts, context_of
from .watched import Decision
from .windows import Windows, no_context

POSITION = "source.position"
"""Type of the row after the events of each batch, in the same transaction: the positions in the files, and the decisions on due subjects."""


_NAMED = 100
"""Most bad lines in the answer to a request."""


class Intake:
    """Reads lines, and decides which subjects are due.

    Each decision is in the ledger before its subjects are passed on, so that the successor of a killed process repeats no decision.

    :param give: receives each subject, in the order of judging.
    :param conversations: the layout of the lines if each is a whole conversation, not one event. Posted lines are
        always events.
    :param receives: whole sessions are added with :meth:`step`.
    :param scan: search for secrets in events and sessions, before they are recorded.
    """

    def __init__(
        self,
        run: RunContext,
        kinds: Sequence[Kind],
        console: Console,
        names: Names,
        give: Callable[[Due], None],
        conversations: Layout | None = None,
        *,
        receives: bool = False,
        scan: Scan = "off",
    ) -> None:
        self._run, self._console, self._give = run, console, give
        self._calls_named = "tool_cycle" in kinds
        self._archive = LedgerArchive(run)
        self.windows = Windows(
            kinds, run.lookahead, self._archive, names, context_of if receives or conversations else no_context
        )
        self._scanning = Scanning(scan)
        self.growth = Growth(names, self.windows.log, self._scanning)
        self._has_sessions = receives or conversations is not None
        self._transcripts = (
            None if conversations is None else Transcripts(conversations, names, self.windows.log, self._scanning)
        )
        self.backlog = Backlog(self.windows.settle)
        self._accepted = 0
        self.accepted = self.duplicates = self.rejected = self._restored = 0

    def rebuild(self) -> list[Position]:
        """Restore the state of an earlier process of the run, pass on its remaining subjects, and return its positions in the files."""
        positions: list[Position] = []
        batch: list[Entry] = []
        for entry in self._run.read(Query(run_id=self._run.run_id)):
            event = entry.event
            if is_trace(event):
                batch.append(entry)
            elif event.type == POSITION:
                position: Mapping[str, Any] = event.payload
                self._again(batch, position, recorded_at(event))
                positions += position["files"]
                batch = []
            elif event.subject_kind is not None:
                self.backlog.observe(event)
        self.backlog.settle()
        self._archive.before = None
        for item in self.backlog:
            self._pass_on(item)
        return positions

    def step(
        self,
        lines: Iterable[Line],
        posts: Sequence[Post],
        positions: Sequence[Position],
        now: float,
        sessions: Sequence[ReceivedSession] = (),
    ) -> None:
        """Read the input up to *now*, record it, and pass on the due subjects; then answer the *posts*."""
        events = [event for line in lines for event in self._read(line, now)]
        events += [event for session in sessions for event in self._read_session(session, now)]
        answers = [self._read_post(post, now, events) for post in posts]
        self._record(events, self.windows.due(now), positions, now)
        for post, answer in zip(posts, answers, strict=True):
            post.answer.set_result(answer)

    def close(self, now: float) -> None:
        """Pass on the remaining subjects, because the input has ended."""
        self._record([], self.windows.close(now), [], now)

    def snapshot(self, unread: int, now: float) -> Snapshot:
        """Return the state of the watch; *unread* is the number of bytes that wait."""
        lag = round(self.backlog.lag(now), 1)
        windows, counts = self.windows, (self.accepted, self.duplicates, self._console.bad + self.rejected)
        return Snapshot(windows.going_on, windows.waiting, self.backlog.judged, len(self.backlog), lag, unread, *counts)

    def _again(self, batch: Sequence[Entry], position: Mapping[str, Any], now: float) -> None:
        """Take the events of an earlier process, and repeat its decisions."""
        if batch:
            self._archive.before = batch[0].seq
        self._restored += sum(self._is_record(trace_event(entry.event)) for entry in batch)
        for entry in batch:
            event = trace_event(entry.event)
            own_time = _seconds(event.time) if position["backfill"] else None
            self.windows.add(event, recorded_at(entry.event), own_time, trusted=True)
        for decision in (Decision(*fields) for fields in position["due"]):
            for subject in self.windows.take(decision):
                self.backlog.add(subject, decision.trigger, now)
        self.backlog.settle()
        self.windows.sweep(now)

    def _record(
        self, events: list[TraceEvent], decisions: Sequence[Decision], positions: Sequence[Position], now: float
    ) -> None:
        subjects_of = [(decision.trigger, self.windows.take(decision)) for decision in decisions]
        if not (events or decisions or positions):
            return
        due = [attrs.astuple(decision) for decision in decisions]
        self._run.record(events, {"files": positions, "due": due, "backfill": self.windows.backfilling})
        for trigger, subjects in subjects_of:
            for subject in subjects:
                self._pass_on(self.backlog.add(subject, trigger, now))

    def _pass_on(self, item: Item) -> None:
        """Pass the subject of *item* on to be judged."""
        finish = partial(self.backlog.finish, item)
        self._give(Due(item.subject, item.trigger, self._run.run_id, finish))

    def _read(self, line: Line, now: float) -> Iterator[TraceEvent]:
        """Yield the new events of a line. A fault is reported, and the rest of the line is left out."""
        try:
            if self._transcripts is None:
                event = line.event(calls_named=self._calls_named)
                events_found = [] if event is None else [self._scanning.event(event)]
            else:
                added = self._transcripts.events(line)
                events_found, self.duplicates = [*(added or ())], self.duplicates + (added is not None and not added)
            for event in events_found:
                if self._admit(event, now):
                    self.windows.note_place(event.session_id, line.source)
                    yield event
        except DataError as error:
            self._console.report(error, line)

    def _read_session(self, received: ReceivedSession, now: float) -> Iterator[TraceEvent]:
        """Yield the new events of a session; a failed session, or one whose earlier events have changed, is reported."""
        session = received.session
        try:
            failure = Failure("source_error", session.reason) if isinstance(session, Failed) else session
            fresh = self.growth.events(failure, session.id, is_over=received.is_over)
            for event in fresh:
                if self._admit(event, now):
                    if session.place is not None:
                        self.windows.note_place(event.session_id, session.place)
                    yield event
        except DataError as error:
            self._console.report(error, None)

    def _read_post(self, post: Post, now: float, events: list[TraceEvent]) -> dict[str, Any]:
        """Add the request's new events to *events*, and return the answer for the time after they are recorded."""
        errors: list[dict[str, Any]] = []
        accepted, duplicates, rejected = len(events), self.duplicates, self.rejected
        for line in post.lines:
            try:
                event = line.event(calls_named=self._calls_named)
                event = None if event is None else self._scanning.event(event)
                is_new = event is not None and self._admit(event, now)
            except DataError as error:
                self.rejected += 1
                if self.rejected - rejected <= _NAMED:
                    errors += [{"line": line.number, "message": _unplaced(problem)} for problem in error.problems]
            else:
                events += [event] if event is not None and is_new else []
        if (bad := self.rejected - rejected) > _NAMED:
            errors.append({"line": errors[-1]["line"], "message": f"of {bad:,} bad lines the first {_NAMED} are named"})
        return {"accepted": len(events) - accepted, "duplicates": self.duplicates - duplicates, "errors": errors}

    def _admit(self, event: TraceEvent, now: float) -> bool:
        """Add an event, and return False for a repeat of an earlier event."""
        own_time = _seconds(event.time) if self.windows.backfilling else None
        if not self.windows.add(event, now, own_time):
            self.duplicates += 1
            return False
        self.accepted += 1
        self._accepted += self._is_record(event)
        return True

    def _is_record(self, event: TraceEvent) -> bool:
        """Return True if *event* counts as a record: any event of a trace, the last event of a conversation."""
        return not self._has_sessions or event.type == "session.ended"

    def read_counts(self) -> ReadCounts:
        """Return the counts of the records that were read. For an earlier process they have its accepted records, without its bad lines."""
        left_out = {"duplicate": self.duplicates, "bad_line": self._console.bad + self.rejected}
        dropped = {reason: count for reason, count in left_out.items() if count}
        records = self._restored + self._accepted + sum(dropped.values())
        if self._transcripts is None:
            return self._scanning.add_counts(ReadCounts(records, dropped=dropped))
        totals = self._transcripts.totals
        counts = ReadCounts(records, totals.contents.marked, dropped, details={"formats": totals.formats})
        return self._scanning.add_counts(counts)


def _seconds(time: str | None) -> float | None:
    """Return an event's own time in seconds since the epoch; a time without a zone is UTC."""
    if time is None:
        return None
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _unplaced(problem: Problem) -> str:
    return str(attrs.evolve(problem, file=None, line=None, column=None))
