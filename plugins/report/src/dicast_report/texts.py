"""Values as texts for a reader."""

from __future__ import annotations

import orjson

MOST = 20_000
"""Longest text in a page, in characters."""


def as_text(value: object, most: int = MOST) -> str | None:
    """Return *value* as text: a string unchanged, None as None, any other JSON value indented.

    A longer text than *most* characters is cut and ends with a note.
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return (
        text
        if len(text) <= most
        else f"{text[:most]}… (cut here: {most:,} of {len(text):,} characters are in this page)"
    )
