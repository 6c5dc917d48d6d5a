"""Values as texts for a reader."""

from __future__ import annotations

import orjson

MOST = 20_000
"""How many characters of a text are in a page."""


def shown(value: object, most: int = MOST) -> str | None:
    """*value* as text: a string as it is, nothing as None, any other JSON value as indented JSON; one that is long is cut, and says so."""
    if value is None:
        return None
    text = value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return (
        text
        if len(text) <= most
        else f"{text[:most]}… (cut here: {most:,} of {len(text):,} characters are in this page)"
    )
