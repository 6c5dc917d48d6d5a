"""The chain over lines: ``digest = SHA-256(previous digest || SHA-256(line))``, with 32 zeros before the first line."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

START = bytes(32)
"""The digest before the first line."""

MARK_BYTES = 4
"""The bytes of the digest of a line that its block stores."""


def leaf_of(line: bytes) -> bytes:
    """Return the leaf of a line: its SHA-256."""
    return sha256(line).digest()


def chained(digest: bytes, leaves: Iterable[bytes]) -> tuple[bytes, bytes]:
    """Return the digest after *leaves*, and the marks of their lines. *digest* is the digest before them."""
    marks = bytearray()
    for leaf in leaves:
        digest = sha256(digest + leaf).digest()
        marks += digest[:MARK_BYTES]
    return digest, bytes(marks)


def chain_of(digest: bytes, lines: Iterable[bytes]) -> list[bytes]:
    """Return the digest after each of *lines*. *digest* is the digest before them."""
    digests, new = list[bytes](), sha256
    for line in lines:
        digest = new(digest + new(line).digest()).digest()
        digests.append(digest)
    return digests
