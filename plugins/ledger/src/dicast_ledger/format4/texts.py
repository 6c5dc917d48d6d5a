"""The contents of subjects: up to 1,000 of them as one row of the table ``texts``, and their places by digest in the table ``contents``.

A row of ``texts`` has the form of a block's body. The *place* of a content is 1,024 times the row's *id*, plus its index in the list. The *key* of a content is the
first 6 bytes of the SHA-256 of its JSON text, or the whole digest if another content has the same first bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import count

from dicast.toolkit.ledger_lines.blocks import MOST_BYTES, body_of, lines_in, parts_of

TEXTS_TABLES = (
    "CREATE TABLE texts (id INTEGER PRIMARY KEY, size INTEGER, body BLOB)",
    "CREATE TABLE contents (key BLOB PRIMARY KEY, place INTEGER) WITHOUT ROWID",
)
KEY_BYTES = 6
PLACES = 1024
"""The number of places of a row of ``texts``; a row has at most 1,000 contents."""

_GROUPS = 4
"""Number of rows of ``texts`` that a reader keeps in memory."""

_TOGETHER = 500
"""Number of keys of one statement."""

Group = tuple[tuple[str, ...], int, bytes]
"""Digests of contents, the size of their list, and the list, compressed or not."""


def keys_of(digest: str) -> tuple[bytes, bytes]:
    """Return the two keys that the content with this digest may have: the short one, and the whole digest.

    :raises ValueError: if *digest* is not hexadecimal.
    """
    whole = bytes.fromhex(digest)
    return whole[:KEY_BYTES], whole


def short_keys(digests: Sequence[str]) -> list[bytes]:
    """Return the short keys of contents.

    :raises ValueError: if one of *digests* is no digest.
    """
    digest_bytes = sha256().digest_size
    whole = bytes.fromhex("".join(digests))
    if len(whole) != digest_bytes * len(digests):
        raise ValueError("a digest of a content has another length")
    return [whole[start : start + KEY_BYTES] for start in range(0, len(whole), digest_bytes)]


def groups_of(contents: Mapping[str, bytes], *, packed: bool) -> list[Group]:
    """Return *contents*, by digest, as rows; compressed if *packed*."""
    digests, texts = list(contents), list(contents.values())
    groups = []
    for part, _ in parts_of([(len(text), 1) for text in texts], MOST_BYTES // 2):
        groups.append((tuple(digests[part]), *body_of(texts[part], packed=packed)))
    return groups


Unpack = Callable[[int, int, bytes], list[bytes]]
"""Function of the id, the size and the body of a row of ``texts`` that returns its contents."""


def _unpacked(id_: int, size: int, body: bytes) -> list[bytes]:
    return lines_in(size, body)


class Texts:
    """Reader of contents over one connection."""

    def __init__(self, connection: sqlite3.Connection, unpack: Unpack = _unpacked) -> None:
        self._connection = connection
        self._unpack = unpack
        self._groups: dict[int, list[bytes]] = {}
        self._last = 0

    def get(self, digest: str) -> bytes | None:
        """Return the JSON text of the content with this digest; None if the ledger does not have it.

        :raises ValueError: if a row cannot be read.
        """
        group, index = self._groups.get(self._last // PLACES, ()), self._last % PLACES + 1
        if (
            index < len(group) and sha256(group[index]).hexdigest() == digest
        ):  # most lines refer to one content after the other
            self._last += 1
            following: bytes = group[index]
            return following
        query = "SELECT place FROM contents WHERE key IN (?, ?) ORDER BY length(key) DESC"
        for (place,) in self._connection.execute(query, keys_of(digest)):
            group = self._group(place // PLACES)
            index = place % PLACES
            if index < len(group) and sha256(group[index]).hexdigest() == digest:
                self._last = place
                content: bytes = group[index]
                return content
        return None

    def keys(self, keys: Iterable[bytes]) -> set[bytes]:
        """Return the keys that have a place."""
        requests, known = sorted(keys), set[bytes]()
        for start in range(0, len(requests), _TOGETHER):
            part = requests[start : start + _TOGETHER]
            query = f"SELECT key FROM contents WHERE key IN ({', '.join('?' * len(part))})"
            known.update(key for (key,) in self._connection.execute(query, part))
        return known

    def _group(self, id_: int) -> list[bytes]:
        group = self._groups.get(id_)
        if group is None:
            row = self._connection.execute("SELECT size, body FROM texts WHERE id = ?", (id_,)).fetchone()
            group = [] if row is None else self._unpack(id_, *row)
            if len(self._groups) >= _GROUPS:
                self._groups.pop(next(iter(self._groups)))
            self._groups[id_] = group
        return group


def unknown(texts: Texts, digests: Iterable[str]) -> list[str]:
    """Return the digests whose content the ledger does not have."""
    requests = list(digests)
    keys = short_keys(requests)
    known = texts.keys(keys)
    return [digest for digest, key in zip(requests, keys, strict=True) if key not in known or texts.get(digest) is None]


def add_groups(connection: sqlite3.Connection, groups: Iterable[Group]) -> None:
    """Write *groups*, and the places of their contents. A content that the ledger already has keeps its place."""
    places, rows, added = _insert(connection, groups)
    if added < len(rows):
        missing = unknown(Texts(connection), places)  # another content has the same beginning of its digest
        connection.executemany(
            "INSERT INTO contents VALUES (?, ?)", [(keys_of(digest)[1], places[digest]) for digest in missing]
        )


def add_new_groups(connection: sqlite3.Connection, groups: Iterable[Group]) -> bool:
    """Write *groups* and return True if the ledger has no content of them; else return False, and write nothing."""
    _, rows, added = _insert(connection, groups)
    if added < len(rows):
        connection.executemany("DELETE FROM contents WHERE key = ? AND place = ?", rows)
        connection.executemany("DELETE FROM texts WHERE id = ?", {(place // PLACES,) for _, place in rows})
    return added == len(rows)


def _insert(
    connection: sqlite3.Connection, groups: Iterable[Group]
) -> tuple[dict[str, int], list[tuple[bytes, int]], int]:
    """Write *groups*, and the places of contents with new keys. Return the places by digest, the rows of ``contents``, and the number of new keys."""
    places: dict[str, int] = {}
    for digests, size, body in groups:
        id_ = connection.execute("INSERT INTO texts (size, body) VALUES (?, ?)", (size, body)).lastrowid or 0
        places.update(zip(digests, count(id_ * PLACES), strict=False))
    rows = sorted(zip(short_keys(list(places)), places.values(), strict=True))  # neighbors share pages
    return places, rows, connection.executemany("INSERT OR IGNORE INTO contents VALUES (?, ?)", rows).rowcount
