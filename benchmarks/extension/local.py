"""The function that every extension calls."""

from __future__ import annotations


def politeness(text: str) -> float:
    """Return the share of two polite words in *text*."""
    return sum(word in text.casefold() for word in ("please", "thank")) / 2
