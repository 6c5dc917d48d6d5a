"""Several sources as one source."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from dicast import (
    ConfigError,
    DataError,
    Due,
    Problem,
    ReadCounts,
    RunContext,
    Source,
    Subject,
    TraceEvent,
    Trail,
    maybe_await,
)
from dicast.toolkit.repeats import UniqueNames
from dicast.toolkit.session_notes import numbered
from dicast.toolkit.sub_agents import STARTED

_MOST_NAMED = 5
"""Most names of skipped files in a note."""


def _check_sources(_: object, __: object, sources: Sequence[Source]) -> None:
    if not sources:
        raise ConfigError(Problem("no sources; name at least one", path="sources"))


@attrs.frozen
class Joined:
    """Subjects of several sources, one source after the other: for a folder with the files of several tools.

    Session ids stay unique: the second session ``a`` of the input becomes ``a#2``, with its turns. The counts of the sources are added up.

    :param sources: the sources in their order.
    """

    name = "joined"

    sources: tuple[Source, ...] = attrs.field(validator=_check_sources)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds of all sources."""
        return tuple(dict.fromkeys(kind for source in self.sources for kind in getattr(source, "kinds", ())))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveJoined]:
        """Open all sources."""
        async with AsyncExitStack() as stack:
            live = [await open_source(stack, source, run) for source in self.sources]
            read = frozenset(path for source in live for path in getattr(source, "paths", ()))
            left_out = frozenset(path for source in live for path in getattr(source, "left_out", ())) - read
            for source in live:
                if hasattr(source, "note_read_elsewhere"):  # folders that several sources share
                    source.note_read_elsewhere(read | left_out)
            names = sorted(path.name for path in left_out)
            yield LiveJoined(self, live, stack.enter_context(UniqueNames()), names)

    def subjects(self) -> AsyncIterator[Subject | Due]:
        """Fail: several sources are opened by the run."""
        raise RuntimeError("traces/joined yields its subjects once a run has opened it")


async def open_source(stack: AsyncExitStack, source: Any, run: RunContext) -> Any:
    """Return the live form of *source*, which *stack* closes."""
    return await stack.enter_async_context(source.open(run)) if hasattr(source, "open") else source


async def items_of(source: Any) -> AsyncIterator[Subject | Due]:
    """Yield the items of a synchronous or asynchronous source."""
    items = source.subjects()
    if isinstance(items, Iterator):
        for item in items:
            yield item
    else:
        async for item in items:
            yield item


@attrs.define
class LiveJoined:
    """Opened sources. *left_out* names the files in their folders that no source reads. After :meth:`check`, *total* is the number of subjects of all sources, if every source counts its subjects."""

    options: Joined
    sources: Sequence[Any]
    names: UniqueNames
    left_out: Sequence[str] = ()
    total: int | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds of all sources."""
        return self.options.kinds

    async def check(self) -> str:
        """Check all sources and return one digest of their data.

        :raises DataError: with every bad line of all sources.
        """
        digest, problems = hashlib.sha256(), list[Problem]()
        for source in self.sources:
            try:
                part = await maybe_await(source.check()) if hasattr(source, "check") else ""
                digest.update(f"{part}\n".encode())
            except DataError as error:
                problems += error.problems
        if problems:
            raise DataError(problems)
        totals: list[int | None] = [getattr(source, "total", None) for source in self.sources]
        numbered = [total for total in totals if total is not None]
        self.total = sum(numbered) if len(numbered) == len(totals) else None
        return digest.hexdigest()

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield the subjects of one source after the other.

        :raises DataError: at the first bad line, or for a subject whose id another source has too.
        """
        self.names.restart()
        for source in self.sources:
            renaming = _Renaming(self.names)
            async for item in items_of(source):
                yield renaming.item(item)

    def read_counts(self) -> ReadCounts:
        """Return the sums of the counts of the newest pass."""
        counts = [count() for source in self.sources if (count := getattr(source, "read_counts", None)) is not None]
        names = dict.fromkeys(name for part in counts for name in part.details)
        notes = [note for part in counts for note in part.notes]
        if count := len(self.left_out):
            names_left_out = ", ".join(self.left_out[:_MOST_NAMED]) + ", …" * (count > _MOST_NAMED)
            notes.insert(
                0,
                f"{count:,} file{'s' * (count != 1)} left out, which no source of this pipeline reads: {names_left_out}",
            )
        if self.names.repeated:
            occur = "occurs" if self.names.repeated == 1 else "occur"
            ids = numbered(self.names.repeated, "ids of sessions or rows")
            notes.append(f"{ids} {occur} in two sources; the second ends with #2")
        return ReadCounts(
            sum(part.records for part in counts),
            _sum(part.marked for part in counts),
            _sum(part.dropped for part in counts),
            sum(part.failed for part in counts),
            {name: _sum(part.details.get(name, {}) for part in counts) for name in names},
            tuple(dict.fromkeys(notes)),
        )


def _sum(counts: Iterator[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return dict(total)


class _Renaming:
    """Renames the ids of one source: an id that an earlier source has gets a number. The subjects of a session come one after the other."""

    def __init__(self, names: UniqueNames) -> None:
        self._names = names
        self._record: tuple[str, str] | None = None
        self._name = ""
        self._renames: dict[str, str] = {}
        self._events: dict[int, tuple[TraceEvent, TraceEvent]] = {}
        self._logs: dict[int, tuple[Sequence[TraceEvent], list[TraceEvent]]] = {}

    def item(self, item: Subject | Due) -> Subject | Due:
        """Return *item* under a unique id."""
        if isinstance(item, Subject):
            return self._subject(item)
        subject = self._subject(item.subject)
        return item if subject is item.subject else attrs.evolve(item, subject=subject)

    def _subject(self, subject: Subject) -> Subject:
        is_row = subject.session_id is None or subject.kind not in ("tool_cycle", "turn", "session")
        record = (subject.kind, subject.id) if is_row else ("session", str(subject.session_id))
        if record != self._record:
            self._record, self._events, self._logs = record, {}, {}
            self._name = self._names.take(f"{record[0]} {record[1]}").removeprefix(f"{record[0]} ")
            if not is_row and self._name != record[1]:
                self._renames[record[1]] = self._name
        if subject.kind == "tool_cycle" and self._names.take(f"call {subject.id}") != f"call {subject.id}":
            message = (
                f"the tool call {subject.id!r} is in two sources; judge tool cycles with a pipeline for each source"
            )
            raise DataError(Problem(message))
        if subject.kind == "session" and subject.parent_id in self._renames:  # a sub-agent of a renamed session
            subject = attrs.evolve(subject, parent_id=self._renames[subject.parent_id])
        if self._name == record[1]:
            return subject
        if is_row:
            return attrs.evolve(subject, id=self._name)
        events = tuple(map(self._event, subject.events))
        trail = Trail(self._log(subject.trail.events), subject.trail.stop)
        parent_id = self._renamed(subject.parent_id)
        id_ = self._renamed(subject.id) or subject.id
        return attrs.evolve(subject, id=id_, session_id=self._name, parent_id=parent_id, events=events, trail=trail)

    def _renamed(self, id_: str | None) -> str | None:
        """Return the id of the session or of a turn of it under the new name; other ids stay."""
        assert self._record is not None  # as in _subject
        old = self._record[1]
        if id_ is None or (id_ != old and not id_.startswith(f"{old}/")):
            return id_
        return self._name + id_[len(old) :]

    def _event(self, event: TraceEvent) -> TraceEvent:
        if id(event) not in self._events:
            session_id, turn_id = self._renamed(event.session_id), self._renamed(event.turn_id)
            payload = event.payload
            if event.type == STARTED and (parent := self._renames.get(str(payload.get("parent_id")))) is not None:
                payload = {**payload, "parent_id": parent}
            renamed = TraceEvent.of(event.type, payload, event.time, session_id, turn_id, event.extra)
            self._events[id(event)] = (event, renamed)
        return self._events[id(event)][1]

    def _log(self, log: Sequence[TraceEvent]) -> Sequence[TraceEvent]:
        _, renamed = self._logs.setdefault(id(log), (log, []))
        renamed += map(self._event, log[len(renamed) :])
        return renamed
