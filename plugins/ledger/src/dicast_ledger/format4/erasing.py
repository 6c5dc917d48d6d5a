"""Erasure of contents: the texts go, the lines with their digests stay."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast.toolkit.ledger_lines.blocks import body_of, is_packed, lines_in, list_in
from dicast.toolkit.ledger_lines.lines import events_of
from dicast.toolkit.ledger_lines.references import ids_of, references_of
from dicast.toolkit.ledger_lines.separation import separate

from .reading import Makers
from .sealing import ERASED
from .texts import Texts, keys_of


@attrs.frozen
class Erasable:
    """Digests of the contents to erase, and the number of other subjects that have one of them. *left* has the number of events by type
    whose lines have texts, which no erasure removes.
    """

    digests: tuple[str, ...]
    others: int
    left: Mapping[str, int]


def erasable(connection: sqlite3.Connection, subject_id: str | None, before: str | None) -> Erasable:
    """Return the contents of the subject, turn or session *subject_id*, or the contents from before the time *before* that no later event has.

    :raises ValueError: if a block cannot be read.
    """

    def is_chosen(time: str, names: Collection[str | None]) -> bool:
        return subject_id in names if before is None else time < before

    chosen, later, others, left = set[str](), set[str](), dict[str, set[str]](), Counter[str]()
    for line, makers in _lines(connection):
        for reference in references_of(line, makers):
            digest = reference.digest
            if is_chosen(reference.time, reference.names):
                chosen.add(digest)
            else:
                later.add(digest)
                if subject_id is not None:
                    others.setdefault(digest, set()).update(reference.names[:1])
        if before is not None or subject_id in ids_of(line):
            for _, event in events_of(line, makers, lambda _: None):
                if (
                    is_chosen(event.time, (event.subject_id, event.turn_id, event.session_id))
                    and separate(event).places
                ):
                    left[event.type] += 1
    digests = chosen if subject_id is not None else chosen - later
    texts = Texts(connection)
    stored = tuple(digest for digest in sorted(digests) if _has_values(orjson.loads(texts.get(digest) or ERASED)))
    number = len(set[str]().union(*(others.get(digest, ()) for digest in stored)))
    return Erasable(stored, number, dict(sorted(left.items())))


def erase(connection: sqlite3.Connection, digests: Collection[str]) -> None:
    """Remove the contents with these *digests*, inside a transaction. Free pages of the file may still have them."""
    for digest in digests:
        query = "SELECT key FROM contents WHERE key IN (?, ?) ORDER BY length(key) DESC LIMIT 1"
        for (key,) in connection.execute(query, keys_of(digest)).fetchall():
            connection.execute("DELETE FROM contents WHERE key = ?", (key,))
    erased, last = {bytes.fromhex(digest) for digest in digests}, 0
    # every row is read: two processes may have stored a content at the same time
    while row := connection.execute(
        "SELECT id, size, body FROM texts WHERE id > ? ORDER BY id LIMIT 1", (last,)
    ).fetchone():
        last, size, body = row
        texts = lines_in(size, body)
        left = [ERASED if sha256(text).digest() in erased else text for text in texts]
        if left != texts:
            row = (*body_of(left, packed=is_packed(size, body)), last)
            connection.execute("UPDATE texts SET size = ?, body = ? WHERE id = ?", row)


def _has_values(content: Any) -> bool:
    """Return True if a content has a text or a number. Contents without them are shared by many subjects."""
    if isinstance(content, dict | list):
        return any(map(_has_values, content.values() if isinstance(content, dict) else content))
    return content not in (None, "")


def _lines(connection: sqlite3.Connection) -> Iterator[tuple[Sequence[Any], Makers]]:
    """Yield all lines, with the makers."""
    makers = Makers(connection)
    for first, size, body in connection.execute("SELECT first, size, body FROM blocks ORDER BY first"):
        try:
            for line in orjson.loads(list_in(size, body)):
                yield line, makers
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error
