"""Erasure of contents: the texts go, the lines with their digests stay."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from typing import Any

import attrs
import orjson

from dicast.toolkit.ledger_lines.blocks import body_of, is_packed, lines_in, list_in
from dicast.toolkit.ledger_lines.lines import CONTENT, EVENT
from dicast.toolkit.ledger_lines.makers import SUBJECT
from dicast.toolkit.ledger_lines.traced import SUBJECTS

from .reading import Makers
from .sealing import ERASED
from .texts import PLACES, Texts, keys_of

_TIME, _SUBJECT_OF_EVENT = 3, 8
"""Places in the line of an event."""


@attrs.frozen
class Erasable:
    """Digests of the contents to erase, and the number of other subjects that have one of them."""

    digests: tuple[str, ...]
    others: int


def erasable(connection: sqlite3.Connection, subject_id: str | None, before: str | None) -> Erasable:
    """Return the contents of the subject *subject_id*, or the contents that were read before the time *before* and not later.

    :raises ValueError: if a block cannot be read.
    """
    chosen, later, others = set[str](), set[str](), dict[str, set[str | None]]()
    for subject, time, digest in _readings(connection):
        if (subject_id is not None and subject == subject_id) or (before is not None and time < before):
            chosen.add(digest)
        else:
            later.add(digest)
            if subject_id is not None:
                others.setdefault(digest, set()).add(subject)
    digests = chosen if subject_id is not None else chosen - later
    texts = Texts(connection)
    stored = tuple(digest for digest in sorted(digests) if texts.get(digest) is not None)
    return Erasable(stored, len(set[str | None]().union(*(others.get(digest, ()) for digest in stored))))


def erase(connection: sqlite3.Connection, digests: Collection[str]) -> None:
    """Remove the contents with these *digests*, inside a transaction. ``PRAGMA secure_delete`` overwrites their pages."""
    groups: dict[int, list[int]] = {}
    for digest in digests:
        for key, place in connection.execute(
            "SELECT key, place FROM contents WHERE key IN (?, ?) ORDER BY length(key) DESC LIMIT 1",
            keys_of(digest),
        ).fetchall():
            groups.setdefault(place // PLACES, []).append(place % PLACES)
            connection.execute("DELETE FROM contents WHERE key = ?", (key,))
    for id_, indexes in groups.items():
        size, body = connection.execute("SELECT size, body FROM texts WHERE id = ?", (id_,)).fetchone()
        texts = lines_in(size, body)
        for index in indexes:
            texts[index] = ERASED
        row = (*body_of(texts, packed=is_packed(size, body)), id_)
        connection.execute("UPDATE texts SET size = ?, body = ? WHERE id = ?", row)


def _readings(connection: sqlite3.Connection) -> Iterator[tuple[str | None, str, str]]:
    """Yield the subject, the time and the digest of each content that a line refers to."""
    makers = Makers(connection)
    for first, size, body in connection.execute("SELECT first, size, body FROM blocks ORDER BY first"):
        try:
            for line in orjson.loads(list_in(size, body)):
                if (reading := _reading(line, makers)) is not None:
                    yield reading
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error


def _reading(line: list[Any], makers: Makers) -> tuple[str | None, str, str] | None:
    if line[0] == EVENT and len(line) > CONTENT:
        return line[_SUBJECT_OF_EVENT], line[_TIME], line[CONTENT]
    if line[0] in SUBJECTS and (place := makers[line[1]].content) is not None:
        return line[SUBJECT], line[6], line[place]
    return None
