"""Sentences on a terminal."""

from __future__ import annotations

from textwrap import wrap

WIDTH = 80
"""How many columns a line has."""


def wrapped(text: str, width: int) -> list[str]:
    """*text* in lines of at most *width* characters; words are never broken."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)
