"""Merkle trees as RFC 6962 defines them: one digest for many entries, and short proofs that an entry is one of them.

The hash of a leaf is ``SHA-256(0x00, entry)``, the hash of a node ``SHA-256(0x01, left, right)``. The left side of a node has the largest power of two of entries that is
smaller than their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256


def tree_root(entries: Sequence[bytes]) -> bytes:
    """Return the root of the tree over *entries*; without entries the SHA-256 of no bytes."""
    return _root([_leaf(entry) for entry in entries]) if entries else sha256(b"").digest()


def audit_path(entries: Sequence[bytes], index: int) -> list[bytes]:
    """Return the hashes from which the root follows together with the entry *index*, from the leaf to the root.

    :raises IndexError: if there is no such entry.
    """
    if not 0 <= index < len(entries):
        raise IndexError(f"there is no entry {index} among {len(entries)}")
    return _path([_leaf(entry) for entry in entries], index)


def root_of_path(entry: bytes, index: int, count: int, path: Sequence[bytes]) -> bytes:
    """Return the root of the tree over *count* entries, whose entry *index* is *entry* with the audit path *path*.

    :raises ValueError: if the path does not fit the index and the count.
    """
    if not 0 <= index < count:
        raise ValueError(f"there is no entry {index} among {count}")
    digest, rest, last = _leaf(entry), index, count - 1
    for other in path:
        if len(other) != sha256().digest_size or not last:
            raise ValueError("the audit path does not fit the number of entries")
        if rest % 2 or rest == last:
            digest = _node(other, digest)
            while not rest % 2 and rest:
                rest, last = rest // 2, last // 2
        else:
            digest = _node(digest, other)
        rest, last = rest // 2, last // 2
    if last:
        raise ValueError("the audit path does not fit the number of entries")
    return digest


def _leaf(entry: bytes) -> bytes:
    return sha256(b"\x00" + entry).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


def _split(count: int) -> int:
    """Return the largest power of two below *count*, which is 2 or more."""
    return 1 << (count - 1).bit_length() - 1


def _root(leaves: Sequence[bytes]) -> bytes:
    if len(leaves) == 1:
        return leaves[0]
    middle = _split(len(leaves))
    return _node(_root(leaves[:middle]), _root(leaves[middle:]))


def _path(leaves: Sequence[bytes], index: int) -> list[bytes]:
    if len(leaves) == 1:
        return []
    middle = _split(len(leaves))
    if index < middle:
        return [*_path(leaves[:middle], index), _root(leaves[middle:])]
    return [*_path(leaves[middle:], index - middle), _root(leaves[:middle])]
