"""Random order of a source: the key ``shuffle: SEED``, which every source accepts."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from hashlib import blake2b
from typing import Any

from ...toolkit.temporary import temporary_database
from ..contract.protocols import Source
from ..values import Due, Sizes, Subject
from ..values.errors import ConfigError, Problem
from .source import is_live, iterate

TOGETHER = 1000
"""Largest number of subjects of one session in one stored row, unless they share trace events."""


def shuffled_source(source: Source, seed: int, *, live: bool) -> Source:
    """Return *source* in the random order of *seed*.

    :raises ConfigError: when the source is *live*, because future subjects cannot be put in a random order.
    """
    if live or is_live(source):
        message = "future subjects of a live source have no random order: remove shuffle"
        raise ConfigError(Problem(message, path="source", value=seed))
    return ShuffledSource(source, seed)


class ShuffledSource:
    """A source that yields its subjects in a random order. The seed alone decides the order, so a resumed run has the same order.

    Subjects are sorted by a keyed hash of the session's id, or of the subject's id if it has no session. So the subjects of a
    session stay together and keep their order. They are stored in a temporary file, so that memory use does not grow with
    their number. Attributes that this class lacks are read from *source*.
    """

    def __init__(self, source: Source, seed: int) -> None:
        self._source, self._key = source, str(seed).encode()
        self._database = temporary_database(self, "CREATE TABLE rows(place BLOB, subjects BLOB)")
        self._database.execute("CREATE TABLE sizes(session TEXT, kind TEXT, subjects INTEGER)")
        self._single: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield the subjects in their random order."""
        for statement in ("DELETE FROM rows", "DELETE FROM sizes", "DROP INDEX IF EXISTS places", "BEGIN"):
            self._database.execute(statement)
        self._single.clear()
        group: list[Subject | Due] = []
        async for item in iterate(self._source):
            if group and not _are_together(group, item):
                self._store(group)
                group = []
            group.append(item)
        if group:
            self._store(group)
        self._database.execute("COMMIT")
        self._database.execute("CREATE INDEX places ON rows(place)")
        for item in self._rows():
            yield item

    def _rows(self) -> Iterator[Subject | Due]:
        import pickle  # imported late, as in _store

        for (row,) in self._database.execute("SELECT subjects FROM rows ORDER BY place, rowid"):
            yield from pickle.loads(row)  # noqa: S301  # written by this process, to an unnamed file

    def _store(self, group: list[Subject | Due]) -> None:
        import pickle  # needed by shuffled sources alone

        subjects = [_subject(item) for item in group]
        session = subjects[0].session_id
        key = ("i", subjects[0].id) if session is None else ("s", session)
        name = "\0".join(key).encode(errors="surrogatepass")
        place = blake2b(
            name, digest_size=16, key=self._key, person=b"shuffle"
        ).digest()  # a different hash than the selection of audits
        self._database.execute("INSERT INTO rows VALUES (?, ?)", (place, pickle.dumps(group)))
        kinds = Counter(subject.kind for subject in subjects)
        if session is None:
            self._single.update(kinds)
        else:
            counts = [(place.hex(), kind, count) for kind, count in kinds.items()]
            self._database.executemany("INSERT INTO sizes VALUES (?, ?, ?)", counts)

    def sizes(self, kinds: Collection[str]) -> Sizes:
        """Return the number of subjects of *kinds*, or of all kinds if *kinds* is empty. Valid after the first subject was read."""
        condition = f"WHERE kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        sessions_sql = f"SELECT sum(subjects) AS size FROM sizes {condition} GROUP BY session"  # noqa: S608  # the text holds placeholders only
        row = self._database.execute(f"SELECT count(*), total(size), max(size) FROM ({sessions_sql})", [*kinds])  # noqa: S608
        sessions, subjects, longest = row.fetchone()
        single = sum(count for kind, count in self._single.items() if not kinds or kind in kinds)
        return Sizes(tuple(kinds), single + int(subjects), single + sessions, max(longest or 0, min(single, 1)))


def _subject(item: Subject | Due) -> Subject:
    return item.subject if isinstance(item, Due) else item


def _are_together(group: list[Subject | Due], item: Subject | Due) -> bool:
    """Return True if *item* is stored in one row with *group*: it has the same session, and the row is not full.

    Subjects of one session may share trace events. The events stay the same objects only within one row.
    """
    first, subject = _subject(group[0]), _subject(item)
    if subject.session_id is None or subject.session_id != first.session_id:
        return False
    return len(group) < TOGETHER or subject.events != () or bool(subject.trail.stop)
