"""A random order of subjects that depends on a seed only, for people who label them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

__all__ = ["in_random_order"]


def in_random_order(keys: Sequence[tuple[str, str]], seed: int) -> list[tuple[str, str]]:
    """Return *keys*, each the kind and the id of a subject, in the order of a keyed hash.

    It depends on the seed and the key only, not on the other keys.
    """
    return sorted(keys, key=lambda key: sha256(f"{seed}\n{key[0]}\n{key[1]}".encode()).digest())
