"""Reading a source: the border to a plugin's code, and to what a program brings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from types import NoneType

import orjson

from ...toolkit.temporary import temporary_database
from ..classes import frozen
from ..contract.define import maybe_await
from ..contract.protocols import Source
from ..pipeline.sections import Pipeline
from ..values import Due, Failure, ReadCounts, Subject, TraceEvent, is_text
from ..values.errors import DataError, DicastError
from .read_only import seal, seal_event

_OPTIONAL = {str, NoneType}

SOURCE_ERROR = "source_error"
"""The kind of failure of a record that failed where it was recorded."""


@frozen
class GivenSubjects:
    """Subjects that a program brings, as a source."""

    given: Iterable[Subject | Due]

    def subjects(self) -> Iterator[Subject | Due]:
        """The subjects, once."""
        return iter(self.given)


async def data_digest(source: Source, name: str, pipeline: Pipeline) -> dict[str, str]:
    """Let the source check all its input, where it can: every bad line is found first; return a digest of the ``data``.

    :raises DataError: naming every bad line; also where *pipeline* judges outputs, makes none, and no subject has one.
    """
    check = getattr(source, "check", None)
    if check is None:
        return {}
    try:
        found: object = await maybe_await(check())
    except DicastError:
        raise
    except Exception as error:  # the border to a plugin's code
        raise _broken(name, error) from error
    if not isinstance(found, str):
        raise DataError(f"{name} was checked and gave {found!r:.100}, not a digest of its data")
    if (why := getattr(source, "no_output", None)) is not None and _wants_outputs(pipeline):
        raise DataError(why)
    return {"data": found}


def _wants_outputs(pipeline: Pipeline) -> bool:
    """Whether outputs are judged, or read for a record, and all of them are the source's."""
    slots = (*pipeline.metrics, *pipeline.judges, *pipeline.extractors)
    return pipeline.task is None and any(getattr(slot.component, "needs_output", True) for slot in slots)


async def read(source: Source, name: str) -> AsyncIterator[Due]:
    """The source's subjects, whether it yields them synchronously or not.

    :raises DataError: when the source breaks off, yields something else, or has no check of its own and yields an id twice.
    """
    seen = None if hasattr(source, "check") or is_live(source) else SeenIds()
    known = SeenEvents()
    try:
        async for found in each(source):
            due = found if isinstance(found, Due) else Due(found)
            _refuse_other(due.subject, name)
            if due.failure is not None:
                _refuse_other_failure(due, name)
            if due.subject.events != () or due.subject.trail.stop:
                fresh = known.new(due.subject)
                _refuse_other_events(fresh, f"{name}, {due.subject.kind} {due.subject.id!r}")
                for event in fresh:
                    seal_event(event)
            if seen is not None and not seen.add(due.subject.kind, due.subject.id):
                raise DataError(
                    f"{name} yields {due.subject.kind} {due.subject.id!r} twice; ids are unique within a kind"
                )
            seal(due.subject)
            yield due
    except DicastError:
        raise
    except Exception as error:  # the border to a plugin's code
        raise _broken(name, error) from error


def is_live(source: Source) -> bool:
    """Whether the source waits for what is still to happen, so that its subjects come when they are due, some again."""
    return getattr(source, "live", False) is True


def read_counts(source: Source, name: str) -> ReadCounts | str | None:
    """Return the counts of the source's current pass; None if it does not count, a message if it cannot."""
    count = getattr(source, "read_counts", None)
    if count is None:
        return None
    try:
        counts = count()
    except Exception as error:  # the border to a plugin's code
        return f"{name}: read_counts broke off: {type(error).__name__}: {error}"
    return counts if isinstance(counts, ReadCounts) else f"{name}: read_counts gave {counts!r:.100}, not ReadCounts"


async def peeked(subjects: AsyncIterator[Due]) -> AsyncIterator[Due]:
    """The same subjects; that there is one is known before anything is recorded.

    :raises DataError: when there is none.
    """
    first = await anext(subjects, None)
    if first is None:
        raise DataError("there are no subjects to judge; check the source's path and options")

    async def all_of_them() -> AsyncIterator[Due]:
        yield first
        async for subject in subjects:
            yield subject

    return all_of_them()


async def each(source: Source) -> AsyncIterator[Subject | Due]:
    """What the source yields, synchronously or not, and nothing checked."""
    subjects = source.subjects()
    if isinstance(subjects, AsyncIterator):
        async for subject in subjects:
            yield subject
    else:
        for subject in subjects:
            yield subject


class SeenIds:
    """Which ids have been seen, kept in a temporary file."""

    def __init__(self) -> None:
        self._database = temporary_database(self, "CREATE TABLE ids(kind, id, PRIMARY KEY (kind, id)) WITHOUT ROWID")

    def add(self, kind: str, subject_id: str) -> bool:
        """Note an id; False when it was noted before."""
        return self._database.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (kind, subject_id)).rowcount == 1


class SeenEvents:
    """Remembers which trace events of a session were met: its subjects share them, and come together.

    Events are met in the order of the session where the subjects have a trail; so a trail is the first so many of them.
    """

    def __init__(self) -> None:
        self._session: str | None = None
        self._events: dict[int, tuple[int, TraceEvent]] = {}
        self._walked = 0

    def new(self, subject: Subject) -> list[TraceEvent]:
        """The events of *subject*, and of its trail, that no other subject of its session has brought."""
        trail = subject.trail
        if subject.events == () and not trail.stop:
            return []
        if self._session != subject.session_id:
            self._session, self._events, self._walked = subject.session_id, {}, 0
        events = self._events
        fresh = []
        own = {id(event) for event in subject.events} - events.keys()
        while self._walked < trail.stop or (own and self._walked < len(trail.events)):
            event = trail.events[self._walked]
            events[id(event)] = self._walked, event
            fresh.append(event)
            own.discard(id(event))
            self._walked += 1
        for event in subject.events if own else ():  # of a subject without a trail
            if id(event) not in events:  # nor twice in this one
                events[id(event)] = len(events), event
                fresh.append(event)
        return fresh

    def places(self, subject: Subject) -> list[list[int]]:
        """Where the events of *subject* stand among those met of its session, as ranges ``[start, stop]`` from 0."""
        ranges: list[list[int]] = []
        for event in subject.events:
            place = self._events[id(event)][0]
            if ranges and ranges[-1][1] == place:
                ranges[-1][1] += 1
            else:
                ranges.append([place, place + 1])
        return ranges


def _refuse_other(subject: object, name: str) -> None:
    if not isinstance(subject, Subject):
        raise DataError(f"{name} yields {subject!r:.100}, not a Subject")
    named: object = subject.id
    kind, alone = subject.kind, subject.session_id is subject.parent_id is None
    if named and alone and type(named) is type(kind) is str and f"{kind}{named}".isascii():
        return  # as with most rows, without a call for each text
    if not is_text(named) or not named:
        raise DataError(f"{name} yields a {subject.kind} whose id is {named!r:.100}, not text")
    texts = (subject.kind, subject.session_id or "", subject.parent_id or "")
    if not all(map(is_text, texts)):
        raise DataError(f"{name}, subject {named!r}: kind, session_id and parent_id are texts, not {texts!r:.200}")


def _refuse_other_failure(due: Due, name: str) -> None:
    if not isinstance(due.failure, Failure) or due.failure.kind != SOURCE_ERROR:
        wrong = f"{name}, {due.subject.kind} {due.subject.id!r}: the failure of a record is {due.failure!r:.100}"
        raise DataError(f"{wrong}; write Failure({SOURCE_ERROR!r}, message)")


def _refuse_other_events(events: Sequence[object], where: str) -> None:
    if _are_good(events):
        return
    for trace in events:
        if not isinstance(trace, TraceEvent):
            raise DataError(f"{where}: {trace!r:.100} is not a TraceEvent")
        texts = (trace.type, trace.time or "", trace.session_id or "", trace.turn_id or "")
        parts: tuple[object, ...] = (trace.payload, trace.extra)
        if not all(map(is_text, texts)) or not all(isinstance(part, Mapping) for part in parts):
            raise DataError(f"{where}: {trace!r:.200} is not made of texts and mappings")
        try:
            orjson.dumps(parts)
        except TypeError as error:
            raise DataError(f"{where}: its event {trace.type} is not JSON: {error}") from error


def _are_good(events: Sequence[object]) -> bool:
    """Whether all *events* are as they should be, which is quickly said of many together."""
    parts: list[object] = []
    for trace in events:
        if type(trace) is not TraceEvent or type(trace.payload) is not dict or type(trace.extra) is not dict:
            return False
        if type(trace.type) is not str:
            return False
        type_, time, session_id, turn_id = trace.type, trace.time, trace.session_id, trace.turn_id
        if not (type(time) in _OPTIONAL and type(session_id) in _OPTIONAL and type(turn_id) in _OPTIONAL):
            return False
        parts += (type_, time, session_id, turn_id, trace.payload, trace.extra)
    try:
        orjson.dumps(parts)
    except TypeError:
        return False
    return True


def _broken(name: str, error: Exception) -> DataError:
    return DataError(f"{name} broke off: {type(error).__name__}: {error}")
