"""A source in random order: ``shuffle: SEED``, which every source takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from hashlib import blake2b
from typing import Any

from ...toolkit.temporary import temporary_database
from ..contract.protocols import Source
from ..values import Due, Sizes, Subject
from ..values.errors import ConfigError, Problem
from .source import each, is_live

TOGETHER = 1000
"""How many subjects of one session are kept together at most, where they share no trace events."""


def in_its_order(source: Source, seed: int, *, live: bool) -> Source:
    """*source*, in the random order of *seed*.

    :raises ConfigError: where it is *live*: subjects that are still to come have no random order.
    """
    if live or is_live(source):
        message = "subjects that are still to come have no random order: leave shuffle out"
        raise ConfigError(Problem(message, path="source", value=seed))
    return ShuffledSource(source, seed)


class ShuffledSource:
    """A source whose subjects come in a random order, which a seed decides alone: a resumed run has the same.

    The order is that of keyed hashes of the session's id, or of the subject's where it has none; so the subjects of a session stay
    together and in their order. They wait in a temporary file, so that memory does not grow with them. All else is the *source*'s own.
    """

    def __init__(self, source: Source, seed: int) -> None:
        self._source, self._key = source, str(seed).encode()
        self._database = temporary_database(self, "CREATE TABLE rows(place BLOB, subjects BLOB)")
        self._database.execute("CREATE TABLE sizes(session TEXT, kind TEXT, subjects INTEGER)")
        self._alone: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """The subjects in their random order."""
        for statement in ("DELETE FROM rows", "DELETE FROM sizes", "DROP INDEX IF EXISTS places", "BEGIN"):
            self._database.execute(statement)
        self._alone.clear()
        together: list[Subject | Due] = []
        async for found in each(self._source):
            if together and not _are_together(together, found):
                self._keep(together)
                together = []
            together.append(found)
        if together:
            self._keep(together)
        self._database.execute("COMMIT")
        self._database.execute("CREATE INDEX places ON rows(place)")
        for found in self._kept():
            yield found

    def _kept(self) -> Iterator[Subject | Due]:
        import pickle  # as below

        for (kept,) in self._database.execute("SELECT subjects FROM rows ORDER BY place, rowid"):
            yield from pickle.loads(kept)  # noqa: S301  # of this process, in a file without a name

    def _keep(self, together: list[Subject | Due]) -> None:
        import pickle  # for a source in random order alone

        subjects = [_subject(found) for found in together]
        session = subjects[0].session_id
        of = ("i", subjects[0].id) if session is None else ("s", session)
        named = "\0".join(of).encode(errors="surrogatepass")
        place = blake2b(named, digest_size=16, key=self._key, person=b"shuffle").digest()  # not who is audited
        self._database.execute("INSERT INTO rows VALUES (?, ?)", (place, pickle.dumps(together)))
        kinds = Counter(subject.kind for subject in subjects)
        if session is None:
            self._alone.update(kinds)
        else:
            counts = [(place.hex(), kind, count) for kind, count in kinds.items()]
            self._database.executemany("INSERT INTO sizes VALUES (?, ?, ?)", counts)

    def sizes(self, kinds: Collection[str]) -> Sizes:
        """How many subjects of *kinds* there are, all where that is empty; known once the first was read."""
        mine = f"WHERE kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        each_session = f"SELECT sum(subjects) AS size FROM sizes {mine} GROUP BY session"  # noqa: S608  # question marks alone
        row = self._database.execute(f"SELECT count(*), total(size), max(size) FROM ({each_session})", [*kinds])  # noqa: S608
        sessions, subjects, longest = row.fetchone()
        alone = sum(count for kind, count in self._alone.items() if not kinds or kind in kinds)
        return Sizes(tuple(kinds), alone + int(subjects), alone + sessions, max(longest or 0, min(alone, 1)))


def _subject(found: Subject | Due) -> Subject:
    return found.subject if isinstance(found, Due) else found


def _are_together(together: list[Subject | Due], found: Subject | Due) -> bool:
    """Whether *found* is of the same session; such share trace events, and are the same objects only if they are kept as one."""
    first, subject = _subject(together[0]), _subject(found)
    if subject.session_id is None or subject.session_id != first.session_id:
        return False
    return len(together) < TOGETHER or subject.events != () or bool(subject.trail.stop)
