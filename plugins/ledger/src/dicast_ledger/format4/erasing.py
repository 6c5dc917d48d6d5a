"""Erasure of contents: the texts go, the lines with their digests stay."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from typing import Any

import orjson

from dicast.toolkit.ledger_lines.blocks import body_of, is_packed, lines_in, list_in

from .reading import Makers
from .sealing import ERASED
from .texts import keys_of


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


def lines_of(connection: sqlite3.Connection) -> Iterator[tuple[Sequence[Any], Makers]]:
    """Yield all lines, with the makers."""
    makers = Makers(connection)
    for first, size, body in connection.execute("SELECT first, size, body FROM blocks ORDER BY first"):
        try:
            for line in orjson.loads(list_in(size, body)):
                yield line, makers
        except (ValueError, LookupError, TypeError) as error:
            raise ValueError(f"the block from event {first}: {error}") from error
