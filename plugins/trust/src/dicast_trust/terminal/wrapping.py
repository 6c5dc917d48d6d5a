"""Line wrapping of sentences for a terminal."""

from __future__ import annotations

from textwrap import wrap

WIDTH = 80
"""Columns of a line."""


def wrapped(text: str, width: int) -> list[str]:
    """Return *text* in lines of at most *width* characters; words are never broken."""
    return wrap(text, width, break_long_words=False, break_on_hyphens=False)
