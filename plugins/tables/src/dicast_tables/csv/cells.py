"""Cells that a spreadsheet does not read as formulas."""

from __future__ import annotations

import attrs

from dicast import ConfigError

BYTE_ORDER_MARK = "\ufeff"
_FORMULA_STARTS = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # the last four are the full-width = + - @
GUARDED_STARTS = _FORMULA_STARTS | {"'", BYTE_ORDER_MARK}
"""The first characters of the texts that :func:`add_guard` may change."""


def check_guard(_instance: object, _attribute: attrs.Attribute[str], guard: str) -> None:
    """Check that *guard* is one character that starts no formula.

    :raises ConfigError: if *guard* has another length, starts a formula itself or is a byte order mark.
    """
    if len(guard) != 1 or guard in _FORMULA_STARTS or guard == BYTE_ORDER_MARK:
        raise ConfigError(f'guard is {guard!r}; it is one character that starts no formula, such as "\'"')


def add_guard(text: str, guard: str) -> str:
    """Return *text* with *guard* before it if a spreadsheet would read it as a formula; any other text is unchanged.

    Guarded texts start with ``= + - @``, these in full width, a tab, a line end or an apostrophe. A byte order mark stays in front.
    """
    if text[:1] not in GUARDED_STARTS:
        return text
    body = text.lstrip(BYTE_ORDER_MARK)
    if body[:1] not in GUARDED_STARTS or body.startswith(guard):
        return text
    return f"{text[: len(text) - len(body)]}{guard}{body}"
