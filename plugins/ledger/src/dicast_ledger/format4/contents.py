"""The check of the contents, next to the lines that refer to them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any

from dicast.toolkit.ledger_lines.blocks import lines_in

from .sealing import ERASED
from .texts import KEY_BYTES, PLACES, Texts

Key = tuple[Any, Any]
"""A key of ``contents`` and its place."""


class _Fault(Exception):
    """A fault of a content."""


class Contents:
    """Walk over all contents in the order of their places, which is the order in which lines refer to them first."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._texts = Texts(connection)
        self._rows = self._checked()
        self._next: list[bytes] = []
        """Short keys of contents that no line has referred to yet, in their order."""
        self._fault: str | None = None
        self._damage: sqlite3.DatabaseError | None = None

    def absent(self, keys: Sequence[bytes]) -> int:
        """Return the number of *keys*, short keys of the contents of a block, whose content the ledger does not have."""
        unmet = set(keys)
        while unmet:
            count = len(unmet)
            while len(self._next) < count and (row := next(self._rows, None)) is not None:
                self._next += row
            front = self._next[:count]
            met = front if unmet.issuperset(front) else list(takewhile(unmet.__contains__, front))
            if not met:
                break
            unmet.difference_update(met)
            del self._next[: len(met)]
        if not unmet:
            return 0
        unmet -= self._texts.keys(unmet)
        return sum(key in unmet for key in keys)

    def fault(self) -> str | None:
        """Return the first fault of all contents: a content that differs from its digest, or a place without a content.

        :raises sqlite3.DatabaseError: if the file is damaged.
        """
        for _ in self._rows:
            pass
        if self._damage is not None:
            raise self._damage
        return self._fault

    def _checked(self) -> Iterator[list[bytes]]:
        """Yield the short keys of the contents of each row of ``texts``, until the first fault."""
        try:
            yield from self._keys_of_rows()
        except sqlite3.DatabaseError as error:
            self._damage = error
        except _Fault as fault:
            self._fault = str(fault)

    def _keys_of_rows(self) -> Iterator[list[bytes]]:
        stored = self._connection.execute("SELECT key, place FROM contents ORDER BY place")
        ahead: list[Key] = []
        for id_, size, body in self._connection.execute("SELECT id, size, body FROM texts ORDER BY id"):
            try:
                texts = lines_in(size, body)
            except (ValueError, TypeError) as error:
                raise _Fault(f"row {id_} of texts cannot be read: {error}") from error
            digests = [sha256(text).digest() for text in texts]
            keys = [digest[:KEY_BYTES] for digest in digests]
            if len(ahead) < len(texts):
                ahead += stored.fetchmany(len(texts) - len(ahead))
            places = range(id_ * PLACES, id_ * PLACES + len(texts))
            if ahead[: len(texts)] == list(zip(keys, places, strict=True)):
                del ahead[: len(texts)]
            else:
                keys = list(self._keys_at(ahead, places, texts, digests))
            yield keys
        if (left := ahead[0] if ahead else stored.fetchone()) is not None:
            raise _Fault(
                f"contents has the place {left[1]!r} for {left[0]!r}, where texts has no content with this digest"
            )

    def _keys_at(
        self, ahead: list[Key], places: Iterable[int], texts: Iterable[bytes], digests: Iterable[bytes]
    ) -> Iterator[bytes]:
        """Yield the short keys of the contents of a row that ``contents`` has at these places, and remove their rows from *ahead*."""
        for place, text, digest in zip(places, texts, digests, strict=True):
            key, key_place = ahead[0] if ahead else (None, None)
            if key_place == place and key in (digest[:KEY_BYTES], digest):
                del ahead[0]
                yield digest[:KEY_BYTES]
            elif key_place == place or (text != ERASED and not self._is_known(digest)):
                raise _Fault(
                    f"content {place % PLACES} in row {place // PLACES} of texts was changed: its digest is {digest.hex()}"
                )

    def _is_known(self, digest: bytes) -> bool:
        """Return True if ``contents`` has a place for the digest: two processes may store a content at the same time."""
        query = "SELECT 1 FROM contents WHERE key IN (?, ?)"
        return self._connection.execute(query, (digest[:KEY_BYTES], digest)).fetchone() is not None
