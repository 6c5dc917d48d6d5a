"""Cells that a spreadsheet does not take for formulas."""

from __future__ import annotations

import attrs

from dicast import ConfigError

BYTE_ORDER_MARK = "\ufeff"
_STARTS_FORMULA = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")  # the last four are the full-width = + - @
WATCHED = _STARTS_FORMULA | {"'", BYTE_ORDER_MARK}
"""The first characters of the texts that :func:`guarded` may change."""


def check_guard(_instance: object, _attribute: attrs.Attribute[str], guard: str) -> None:
    """Refuse a guard that guards nothing.

    :raises ConfigError: when *guard* is not one character, or one that starts a formula itself.
    """
    if len(guard) != 1 or guard in _STARTS_FORMULA or guard == BYTE_ORDER_MARK:
        raise ConfigError(f'guard is {guard!r}; it is one character that starts no formula, such as "\'"')


def guarded(text: str, guard: str) -> str:
    """*text* with *guard* before it when a spreadsheet would take it for a formula, as it is otherwise.

    That is text starting with ``= + - @``, these in full width, a tab, a line end or an apostrophe. A byte order mark stays in front.
    """
    if text[:1] not in WATCHED:
        return text
    body = text.lstrip(BYTE_ORDER_MARK)
    if body[:1] not in WATCHED or body.startswith(guard):
        return text
    return f"{text[: len(text) - len(body)]}{guard}{body}"
