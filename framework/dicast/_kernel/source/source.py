"""Reading a source: the border to the code of a plugin, and to subjects that a program passes."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from types import NoneType

import orjson

from ...toolkit.temporary import temporary_database
from ..classes import frozen
from ..contract.define import maybe_await
from ..contract.plugin_errors import error_text
from ..contract.protocols import Source
from ..plan.sections import Pipeline
from ..values import Due, Failure, ReadCounts, Subject, TraceEvent, is_text
from ..values.errors import DataError, DicastError
from ..values.read_only import is_sealed, seal, seal_event

_OPTIONAL = {str, NoneType}

FIRST_IDS = 20_000
"""Number of ids that are compared although the source has a check of its own: all ids would double the time to read a file."""

AHEAD = 256
"""Rows that are read before the first of them is judged."""

AHEAD_SECONDS = 0.01
"""Seconds for which rows are read before the first of them is judged."""

SOURCE_ERROR = "source_error"
"""Kind of the failure of a record that failed in the system that recorded it."""


@frozen
class SubjectList:
    """A source of subjects that a program passes."""

    items: Iterable[Subject | Due]

    def subjects(self) -> Iterator[Subject | Due]:
        """Return an iterator over the subjects; it can be read once."""
        return iter(self.items)


async def data_digest(source: Source, name: str, pipeline: Pipeline, *, needs_outputs: bool = True) -> dict[str, str]:
    """Return the digest of the source's input under the key ``data``; empty if the source has no ``check``.

    ``check`` reads the whole input, so every invalid line is reported before the run starts.

    :raises DataError: naming every invalid line; with *needs_outputs* also when *pipeline* judges outputs without a task and no subject has an output.
    """
    check = getattr(source, "check", None)
    if check is None:
        return {}
    try:
        digest: object = await maybe_await(check())
    except DicastError:
        raise
    except Exception as error:  # code of a plugin
        raise broken_source(name, error) from error
    if not isinstance(digest, str):
        raise DataError(f"{name}: check returned {digest!r:.100}, not a digest of its data")
    if needs_outputs and (problem := getattr(source, "no_output", None)) is not None and _wants_outputs(pipeline):
        raise DataError(problem)
    return {"data": digest}


def _wants_outputs(pipeline: Pipeline) -> bool:
    """Return True if the pipeline needs outputs, and every output comes from the source."""
    slots = (*pipeline.metrics, *pipeline.judges, *pipeline.extractors)
    return pipeline.task is None and any(getattr(slot.component, "needs_output", True) for slot in slots)


async def read(
    source: Source, name: str, folder: Path | None = None, *, most: int | None = None, ahead: int = 1
) -> AsyncGenerator[Due, None]:
    """Yield the subjects of a synchronous or asynchronous source, checked and read-only.

    The place of a subject in *folder* is relative to it. A source with a check has its data: *ahead* of its subjects are read before the first of
    them is yielded, but not more than *most* in all.

    :raises DataError: when the source raises, yields anything but subjects, or yields an id twice; if it has a check of its own, the first ids are compared.
    """
    border = _Border(source, name, folder)
    try:
        items = source.subjects()
        if isinstance(items, AsyncIterator):
            async for item in items:
                yield border.due(item)
        elif ahead == 1 or is_live(source) or not hasattr(source, "check"):
            for item in items:
                yield border.due(item)
        else:
            for batch, error in _batches(map(border.due, items), ahead, most):
                for due in batch:
                    yield due
                if error is not None:
                    raise error
    except DicastError:
        raise
    except Exception as error:  # code of a plugin
        raise broken_source(name, error) from error


def _batches(dues: Iterator[Due], size: int, most: int | None) -> Iterator[tuple[Sequence[Due], Exception | None]]:
    """Yield *dues* in batches of *size*, at most *most* of them; the last batch has the error that ended them.

    The code that reads and the code that judges run faster in turns of many rows. A batch ends earlier after :data:`AHEAD_SECONDS`, so that
    large rows do not collect in memory.
    """
    count = 0
    while most is None or count < most:
        batch: list[Due] = []
        end = size if most is None else min(size, most - count)
        until = time.monotonic() + AHEAD_SECONDS
        try:
            for due in dues:
                batch.append(due)
                if len(batch) >= end or time.monotonic() >= until:
                    break
            else:
                yield batch, None
                return
        except Exception as error:  # raised after the rows before it
            yield batch, error
            return
        count += len(batch)
        yield batch, None


class _Border:
    """Checks of the items of one source."""

    def __init__(self, source: Source, name: str, folder: Path | None) -> None:
        self._name, self._start = name, "" if folder is None else f"{folder}/"
        self._seen_ids = None if is_live(source) else FirstIds() if hasattr(source, "check") else SeenIds()
        self._seen_events = UnsealedEvents() if is_live(source) else SeenEvents()

    def due(self, item: Subject | Due) -> Due:
        """Return *item* as a subject that is due, after it was made read-only.

        :raises DataError: if it is no valid subject, or has the id of a previous one.
        """
        due = item if isinstance(item, Due) else Due.of(item)
        subject, name, seen_ids = due.subject, self._name, self._seen_ids
        _refuse_invalid_subject(subject, name)
        if due.failure is not None:
            _refuse_wrong_failure(due, name)
        if due.recorded:
            _refuse_repeated_names(due, name)
        if subject.events != () or subject.trail.stop:
            fresh = self._seen_events.new(subject)
            _refuse_invalid_events(fresh, f"{name}, {subject.kind} {subject.id!r}")
            for event in fresh:
                seal_event(event)
        if seen_ids is not None and not seen_ids.add(subject.kind, subject.id):
            raise DataError(f"{name} yields {subject.kind} {subject.id!r} twice; ids are unique within a kind")
        seal(subject)
        if (place := subject.place) is not None:
            relative = place.removeprefix(self._start)
            if not relative.isascii():  # the bytes of a file's name may not be UTF-8
                relative = relative.encode(errors="backslashreplace").decode()
            if relative is not place:
                object.__setattr__(subject, "place", relative)
        return due


def is_live(source: Source) -> bool:
    """Return True if the source waits for future subjects: they arrive when they are due, some of them more than once."""
    return getattr(source, "live", False) is True


def read_counts(source: Source, name: str) -> ReadCounts | str | None:
    """Return the counts of the source's current pass; None if the source does not count, a message if it cannot."""
    count = getattr(source, "read_counts", None)
    if count is None:
        return None
    try:
        counts = count()
    except Exception as error:  # code of a plugin
        return f"{name}: read_counts failed: {type(error).__name__}: {error_text(error)}"
    return counts if isinstance(counts, ReadCounts) else f"{name}: read_counts returned {counts!r:.100}, not ReadCounts"


async def require_subjects(subjects: AsyncIterator[Due]) -> AsyncIterator[Due]:
    """Return the same subjects, after making sure that there is at least one, before anything is recorded.

    :raises DataError: when there is none.
    """
    first = await anext(subjects, None)
    if first is None:
        raise DataError("there are no subjects to judge; check the source's path and options")
    return _Chained(first, subjects)


class _Chained:
    """The subject *first*, and the subjects after it. A generator would take a turn for each row."""

    def __init__(self, first: Due, subjects: AsyncIterator[Due]) -> None:
        self._first: Due | None = first
        self._subjects = subjects

    def __aiter__(self) -> _Chained:
        return self

    def __anext__(self) -> Awaitable[Due]:
        if self._first is None:
            return self._subjects.__anext__()
        first, self._first = self._first, None
        return _value_of(first)


async def _value_of(first: Due) -> Due:
    return first


async def iterate(source: Source) -> AsyncIterator[Subject | Due]:
    """Yield the items of a synchronous or asynchronous source, unchecked."""
    subjects = source.subjects()
    if isinstance(subjects, AsyncIterator):
        async for subject in subjects:
            yield subject
    else:
        for subject in subjects:
            yield subject


class SeenIds:
    """Ids that were read so far, in a temporary file."""

    def __init__(self) -> None:
        self._database = temporary_database(self, "CREATE TABLE ids(kind, id, PRIMARY KEY (kind, id)) WITHOUT ROWID")

    def add(self, kind: str, subject_id: str) -> bool:
        """Add an id; return False if it was added before."""
        return self._database.execute("INSERT OR IGNORE INTO ids VALUES (?, ?)", (kind, subject_id)).rowcount == 1


class FirstIds:
    """The first :data:`FIRST_IDS` ids of a source that checks its ids itself; they show a check that overlooks an id."""

    def __init__(self) -> None:
        self._ids = set[tuple[str, str]]()
        self._count = 0

    def add(self, kind: str, subject_id: str) -> bool:
        """Add an id; return False if it was added before."""
        if self._count == FIRST_IDS:
            return True
        self._count += 1
        self._ids.add((kind, subject_id))
        return len(self._ids) == self._count


class SeenEvents:
    """Trace events of the current session that were read so far. The subjects of a session share events and arrive together.

    If the subjects have a trail, events are read in the order of the session, so a trail is a prefix of them.
    """

    def __init__(self) -> None:
        self._session: str | None = None
        self._events: dict[int, tuple[int, TraceEvent]] = {}
        self._walked = 0

    def new(self, subject: Subject) -> list[TraceEvent]:
        """Return the events of *subject* and of its trail that no previous subject of the session had."""
        trail = subject.trail
        if subject.events == () and not trail.stop:
            return []
        if self._session != subject.session_id:
            self._session, self._events, self._walked = subject.session_id, {}, 0
        events = self._events
        fresh = []
        pending = set(map(id, subject.events)).difference(events)
        while self._walked < trail.stop or (pending and self._walked < len(trail.events)):
            event = trail.events[self._walked]
            events[id(event)] = self._walked, event
            fresh.append(event)
            pending.discard(id(event))
            self._walked += 1
        for event in subject.events if pending else ():  # a subject without a trail
            if id(event) not in events:  # each event once
                events[id(event)] = len(events), event
                fresh.append(event)
        return fresh

    def places(self, subject: Subject) -> list[list[int]]:
        """Return the positions of the events of *subject* among the session's events, as ranges ``[start, stop]`` from 0."""
        ranges: list[list[int]] = []
        for event in subject.events:
            place = self._events[id(event)][0]
            if ranges and ranges[-1][1] == place:
                ranges[-1][1] += 1
            else:
                ranges.append([place, place + 1])
        return ranges


class UnsealedEvents:
    """Trace events of a live source that were not read so far: its sessions are interleaved, and each event that was read is read-only."""

    def __init__(self) -> None:
        self._log: Sequence[TraceEvent] = ()
        self._walked = 0

    def new(self, subject: Subject) -> list[TraceEvent]:
        """Return the events of *subject* and of its trail that are not read-only yet."""
        log, stop = subject.trail.events, subject.trail.stop
        start = self._walked if log is self._log else 0
        self._log, self._walked = log, max(start, stop)
        events = (*log[start:stop], *subject.events)
        return [*{id(event): event for event in events if not is_sealed(event)}.values()]


def _refuse_invalid_subject(subject: object, name: str) -> None:
    if not isinstance(subject, Subject):
        raise DataError(f"{name} yields {subject!r:.100}, not a Subject")
    subject_id: object = subject.id
    if subject.weight != 1 and not (type(subject.weight) in (int, float) and 0 < subject.weight < inf):
        raise DataError(f"{name}: the weight {subject.weight!r} of {subject.id!r} is not a finite number above 0")
    if subject.place is not None and not isinstance(subject.place, str):
        raise DataError(
            f"{name}: the place of {subject.kind} {subject_id!r:.100} is {subject.place!r:.100}, not a text"
        )
    kind, alone = subject.kind, subject.session_id is subject.parent_id is None
    if subject_id and alone and type(subject_id) is type(kind) is str and kind.isascii() and subject_id.isascii():
        return  # fast path for most rows
    if not is_text(subject_id) or not subject_id:
        raise DataError(f"{name} yields a {subject.kind} whose id is {subject_id!r:.100}, not text")
    texts = (subject.kind, subject.session_id or "", subject.parent_id or "")
    if not all(map(is_text, texts)):
        raise DataError(f"{name}, subject {subject_id!r}: kind, session_id and parent_id are texts, not {texts!r:.200}")


def _refuse_repeated_names(due: Due, name: str) -> None:
    names = [score.name for score in due.recorded]
    if len(names) > len(set(names)):
        repeated = next(score for place, score in enumerate(names) if score in names[:place])
        message = f"{name}, {due.subject.kind} {due.subject.id!r}: two recorded scores have the name {repeated!r:.100}"
        raise DataError(f"{message}; give each score a name of its own")


def _refuse_wrong_failure(due: Due, name: str) -> None:
    if not isinstance(due.failure, Failure) or due.failure.kind != SOURCE_ERROR:
        problem = f"{name}, {due.subject.kind} {due.subject.id!r}: the failure of a record is {due.failure!r:.100}"
        raise DataError(f"{problem}; write Failure({SOURCE_ERROR!r}, message)")


def _refuse_invalid_events(events: Sequence[object], place: str) -> None:
    if _are_valid(events):
        return
    for trace in events:
        if not isinstance(trace, TraceEvent):
            raise DataError(f"{place}: {trace!r:.100} is not a TraceEvent")
        texts = (trace.type, trace.time or "", trace.session_id or "", trace.turn_id or "")
        parts: tuple[object, ...] = (trace.payload, trace.extra)
        if not all(map(is_text, texts)) or not all(isinstance(part, Mapping) for part in parts):
            raise DataError(f"{place}: {trace!r:.200} must consist of texts and mappings")
        try:
            orjson.dumps(parts)
        except TypeError as error:
            raise DataError(f"{place}: its event {trace.type} is not JSON: {error}") from error


def _are_valid(events: Sequence[object]) -> bool:
    """Return True if all *events* are valid. One call for many events is fast."""
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


def broken_source(name: str, error: Exception) -> DataError:
    """Return the error of the source *name* whose code raised *error*."""
    return DataError(f"{name} failed: {type(error).__name__}: {error_text(error)}")
