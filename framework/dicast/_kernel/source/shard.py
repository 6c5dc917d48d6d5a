"""Shard of a run: a slice that the source offers, or every N-th session or single subject, for runs on several machines."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import attrs

from ...toolkit.temporary import temporary_database
from ..classes import frozen
from ..contract.protocols import Source
from ..values import PARENTS, Cost, Due, Subject
from ..values.errors import PluginError
from ..values.subject import PlacedDue

MOST_SHARDS = 10_000
"""Largest number of shards of a run."""

_FAMILIES = frozenset((*PARENTS, *PARENTS.values()))
"""Kinds whose subjects are parts of others, or have parts."""


@frozen
class Shard:
    """One of several parts of a run.

    :param number: the number of the shard, from 1.
    :param of: the number of shards.
    :param run_id: the run whose executor started the shard; None for a shard that a user started.
    :param digest: the digest of the data that the shard has to read; None for any data.
    :param size: the number of subjects in a slice. A shard has the sessions that begin in its slice. None: the shard has every N-th session.
    :param allotment: the id and the amounts of what all shards may spend together on all days; None if the caps of the day are their limits.
    """

    number: int
    of: int
    run_id: str | None = None
    digest: str | None = None
    size: int | None = None
    allotment: tuple[str, tuple[Cost, ...]] | None = None

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class ShardSubjects:
    """The subjects of *shard* among all subjects of a source.

    A session with its turns is one group, and so is a subject without a session. Groups are numbered in the order of the source, and the
    shard has every N-th group, or the groups that begin in its slice. *read* counts the subjects of all shards that were read. *span* has the
    places of the first and the last subject of the shard.
    """

    def __init__(self, shard: Shard) -> None:
        self._shard, self._groups = shard, 0
        self._current: tuple[str, int] | None = None
        self._database = temporary_database(self, "CREATE TABLE groups(id PRIMARY KEY, number) WITHOUT ROWID")
        self.read = 0
        self.span: tuple[int, int] | None = None

    async def pick(self, subjects: AsyncIterator[Due], limit: int | None) -> AsyncIterator[Due]:
        """Yield the subjects of the shard, each with its place among all *subjects*; read at most *limit* subjects."""
        if limit == 0:
            return
        async for due in subjects:
            position, self.read = self.read, self.read + 1
            if self._shard_of(self._group(due.subject, position)) == self._shard.number:
                self.span = (position if self.span is None else self.span[0]), position
                yield _placed(due, position)
            if self.read == limit:
                break

    def _shard_of(self, group: int) -> int:
        """Return the number of the shard that has the *group*."""
        size, of = self._shard.size, self._shard.of
        return group % of + 1 if size is None else min(group // size + 1, of)

    def _group(self, subject: Subject, position: int) -> int:
        """Return the number of the group of *subject*, from 0; in slices the place of its first subject."""
        id_ = subject.session_id
        if id_ is None and subject.kind in _FAMILIES:
            id_ = subject.parent_id or subject.id
        if id_ is None:
            return self._next(position)
        if self._current is None or self._current[0] != id_:
            row = self._database.execute("SELECT number FROM groups WHERE id = ?", (id_,)).fetchone()
            number = self._next(position) if row is None else row[0]
            if row is None:
                self._database.execute("INSERT INTO groups VALUES (?, ?)", (id_, number))
            self._current = id_, number
        return self._current[1]

    def _next(self, position: int) -> int:
        number, self._groups = self._groups, self._groups + 1
        return number if self._shard.size is None else position


class SliceSubjects:
    """The subjects of *shard* as a *slice* that the source offers; *total* is the number of subjects of all slices.

    It is a source, and gives each of its subjects its place in :meth:`pick`.
    """

    def __init__(self, slice_: Iterable[tuple[int, Subject | Due]], total: int) -> None:
        self._slice, self._places = slice_, deque[int]()
        self.read = total

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the subjects of the slice."""
        for place, item in self._slice:
            self._places.append(place)
            yield item

    async def pick(self, subjects: AsyncIterator[Due], limit: int | None) -> AsyncIterator[Due]:
        """Yield *subjects*, which were read from this slice, each with its place. A slice has no *limit*."""
        async for due in subjects:
            yield _placed(due, self._places.popleft())


def slice_of(source: Source, name: str, shard: Shard) -> SliceSubjects | None:
    """Return the slice that *source*, called *name*, offers for *shard*; None if it offers none, or does not know the number of its subjects.

    :raises PluginError: if it offers another number of slices.
    """
    offer, total = getattr(source, "shards", None), getattr(source, "total", None)
    if offer is None or total is None:
        return None
    slices = offer(shard.of)
    if len(slices) != shard.of:
        raise PluginError(f"{name}: shards({shard.of}) returned {len(slices)} slices; return one for each shard")
    return SliceSubjects(slices[shard.number - 1], total)


def _placed(due: Due, position: int) -> PlacedDue:
    fields: dict[str, Any] = {field.name: getattr(due, field.name) for field in attrs.fields(Due)}
    return PlacedDue(**fields, position=position)
