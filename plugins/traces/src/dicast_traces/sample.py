"""A random sample of the sessions of a source, with weights."""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import attrs

from dicast import DataError, Due, Problem, ReadCounts, RunContext, Source, Subject, Within, maybe_await
from dicast.toolkit.json_values import MISSING, lookup

from .joined import items_of, open_source

NOT_DRAWN = "not_drawn"
"""The reason in ``read.dropped`` for a session or row that is not in the sample."""

_NONE = "none"
_NOTED = 10
_COUNTED = 100_000
"""The most groups beyond the size of the sample that are counted."""

Unit = tuple[str, str]
"""A session, or a row: its kind and its id."""


@attrs.frozen
class Sample:
    """A random sample of the sessions (or rows) of a source. Each subject has the weight of its session.

    The weight is the number of sessions of its group divided by the number that was drawn (Horvitz and Thompson 1952). Means, pass rates and
    intervals of the run use it, so that they are about all sessions. The same seed draws the same sessions, in any order of the input.

    :param source: the source to draw from. It is read twice.
    :param size: the number of sessions to draw; all, if there are not more.
    :param by: draws about equally many sessions from each group, so that rare groups are seen: ``model`` (the session's most frequent model),
        ``day`` (of its first event), or a dotted path in the context, such as ``metadata.team``. Sessions without a value are a group.
    :param seed: the seed of the draw.
    """

    name = "sample"

    source: Source
    size: int = attrs.field(validator=Within(1, math.inf, "1 or more"))
    by: str | None = None
    seed: int = 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds of the source."""
        return tuple(getattr(self.source, "kinds", ()))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveSample]:
        """Open the source."""
        async with AsyncExitStack() as stack:
            yield LiveSample(self, await open_source(stack, self.source, run))

    def subjects(self) -> AsyncIterator[Subject | Due]:
        """Fail: the source is opened by the run."""
        raise RuntimeError("traces/sample yields its subjects once a run has opened it")


@attrs.define
class Group:
    """The sessions of a group: their *count*, and the *first* sessions in the order of their random numbers, as a heap."""

    count: int = 0
    first: list[tuple[int, Unit]] = attrs.field(factory=list)

    def add(self, number: int, unit: Unit, size: int) -> None:
        """Count a session; keep it if it is among the first *size* sessions."""
        self.count += 1
        entry = (-number, unit)
        if len(self.first) < size:
            heapq.heappush(self.first, entry)
        else:
            heapq.heappushpop(self.first, entry)


@attrs.define
class LiveSample:
    """An opened source and the drawn sessions."""

    options: Sample
    source: Any
    total: int | None = None
    _groups: Mapping[str, Group] | None = None
    _weights: Mapping[Unit, float] = attrs.field(factory=dict)
    _drawn: Mapping[str, int] = attrs.field(factory=dict)
    _failed: int = 0
    _left: set[int] = attrs.field(factory=set)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds of the source."""
        return self.options.kinds

    async def check(self) -> str:
        """Check the source, draw the sample, and return the digest of all data.

        :raises DataError: with every bad line, or if there are more groups than sessions to draw.
        """
        digest = str(await maybe_await(self.source.check())) if hasattr(self.source, "check") else ""
        await self._draw()
        return digest

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield the subjects of the drawn sessions with their weights, in the order of the source."""
        if self._groups is None:
            await self._draw()
        self._failed = 0
        self._left.clear()
        async for item in items_of(self.source):
            subject = item.subject if isinstance(item, Due) else item
            weight = self._weights.get(_unit(subject))
            if weight is None:
                self._left |= {hash(subject.id), hash(subject.session_id)}
                continue
            weighted = attrs.evolve(subject, weight=weight)
            if isinstance(item, Due):
                self._failed += item.failure is not None
                yield attrs.evolve(item, subject=weighted)
            else:
                yield weighted

    def undrawn(self, ids: Collection[str]) -> Collection[str]:
        """Return the *ids* of subjects and sessions that were not drawn in the newest pass."""
        return [id_ for id_ in ids if hash(id_) in self._left]

    def read_counts(self) -> ReadCounts:
        """Return the counts of the source, with the sessions that were not drawn."""
        groups = self._groups or {}
        population = sum(group.count for group in groups.values())
        count = getattr(self.source, "read_counts", None)
        counts = ReadCounts(population) if count is None else count()
        left = population - len(self._weights)
        dropped = {**counts.dropped, **({NOT_DRAWN: left} if left else {})}
        details = {**counts.details, "sample": {"drawn": len(self._weights), "of": population}}
        return attrs.evolve(
            counts, dropped=dropped, failed=self._failed, details=details, notes=(*counts.notes, self._note(population))
        )

    def _note(self, population: int) -> str:
        groups = self._groups or {}
        texts = [f"{name} {self._drawn[name]:,} of {group.count:,}" for name, group in groups.items()][:_NOTED]
        more = ", …" * (len(groups) > _NOTED)
        by = "" if self.options.by is None else f" by {self.options.by}: {', '.join(texts)}{more}"
        return f"sample of {len(self._weights):,} of {population:,}{by}"

    async def _draw(self) -> None:
        """Read the source once and draw the sessions.

        :raises DataError: if there are more groups than sessions to draw.
        """
        options, groups, others, previous = self.options, dict[str, Group](), set[str](), None
        async for item in items_of(self.source):
            subject = item.subject if isinstance(item, Due) else item
            unit = _unit(subject)
            if unit == previous:
                continue
            previous = unit
            number = int.from_bytes(
                hashlib.sha256(f"{options.seed}\0{unit[0]}\0{unit[1]}".encode(errors="replace")).digest()[:8]
            )
            name = _group(subject, options.by)
            if len(groups) < options.size or name in groups:
                groups.setdefault(name, Group()).add(number, unit, options.size)
            elif len(others) < _COUNTED:
                others.add(name)
        if others:
            raise DataError(Problem(_too_many(options, len(others)), path="source.by"))
        if options.by not in (None, "model", "day") and groups.keys() == {_NONE}:
            message = f"no session has a value {options.by!r}; group by model, by day, or by a key of the context"
            raise DataError(Problem(message, path="source.by", value=options.by))
        self._groups = dict(sorted(groups.items()))
        self._drawn = allocation({name: group.count for name, group in self._groups.items()}, options.size)
        self._weights = {
            unit: group.count / self._drawn[name]
            for name, group in self._groups.items()
            for _, unit in sorted(group.first, reverse=True)[: self._drawn[name]]
        }


def allocation(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """Return the number of sessions to draw from each group: equal numbers, and all sessions of a small group. The sum is *size*, or all sessions.

    *size* is at least the number of groups.
    """
    drawn: dict[str, int] = {}
    left = min(size, sum(counts.values()))
    for place, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (item[1], item[0]))):
        drawn[name] = min(count, left // (len(counts) - place))
        left -= drawn[name]
    return drawn


def _too_many(options: Sample, more: int) -> str:
    """Return the message about *more* groups than the sample has sessions."""
    groups, limit = f"{options.size:,} group{'s' * (options.size != 1)}", "at least " * (more == _COUNTED)
    number = f"{limit}{options.size + more:,}"
    return (
        f"by {options.by} makes more than {groups}: {number}; draw {number} sessions or more, or group by another key"
    )


def _unit(subject: Subject) -> Unit:
    if subject.session_id is not None and subject.kind in ("tool_cycle", "turn", "session"):
        return "session", subject.session_id
    return subject.kind, subject.id


def _group(subject: Subject, by: str | None) -> str:
    """Return the name of the group of a session, from its first subject."""
    if by is None:
        return ""
    events = subject.trail.events or subject.events
    if by == "model":
        models = Counter(
            str(event.payload["model"])
            for event in events
            if event.payload.get("model") and event.type == "llm.call_completed"
        )
        return max(models.items(), key=lambda item: (item[1], item[0]))[0] if models else _NONE
    if by == "day":
        return next((event.time[:10] for event in events if event.time), _NONE)
    value = lookup(subject.context, by)
    return _NONE if value is MISSING or value is None else str(value)
