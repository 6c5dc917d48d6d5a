"""The extractor ``extract/regex``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dicast import ConfigError, Record

from .content import as_number, as_text
from .places import check_into, extracted, scores_of


def _expression(pattern: str) -> Any:
    """Compile *pattern*.

    :raises ConfigError: with the fault of *pattern*.
    """
    import re2  # type: ignore[import-untyped]  # here, since it is 1.6 MB and only this extractor needs it

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = (
            error.args[0].decode(errors="replace") if isinstance(error, re2.error) else "it has half of a character"
        )
        unsupported = "RE2 reads it: without lookaround and backreferences, and with \\z for \\Z"
        raise ConfigError(f"{pattern!r:.100} is no regular expression: {reason} ({unsupported})") from error


def _check_pattern(extractor: Regex, attribute: attrs.Attribute[str], pattern: str) -> None:
    if not pattern:
        raise ConfigError("an empty pattern matches every text; write a pattern, as in 'Score: ([0-9.]+)'")
    _expression(pattern)


@attrs.frozen
class Regex:
    r"""Reads the match of a regular expression in a reply: its first group, or the whole match without a group.

    The first match counts. A number becomes a number, any other match stays text. Without a match, or if the group
    took no part, the value is missing: null. A reply that is no text is read as its JSON. Regular expressions have the syntax of RE2, whose time
    grows with the text alone: Python's syntax without lookaround, backreferences and possessive repeats, with ``\z`` for ``\Z``.

    :param pattern: the regular expression; begin it with ``(?i)`` to ignore case.
    :param into: the place of the values, a dotted path under ``metrics``: ``scores`` by default, and ``scores.CRITERION`` with a
        ``criterion``. Statistics read ``scores``.
    :param criterion: the criterion whose reply is read; its value is at ``into``. By default all are read, and their values are at
        ``into.CRITERION``; a task without criteria has the one criterion ``default``.
    """

    pattern: str = attrs.field(validator=_check_pattern)
    criterion: str | None = None
    into: str = attrs.field(default=scores_of, validator=check_into)
    _compiled: Any = attrs.field(init=False, eq=False, repr=False)

    @_compiled.default
    def _compile(self) -> Any:
        return _expression(self.pattern)

    @property
    def writes(self) -> tuple[str]:
        """The one place."""
        return (self.into,)

    def extract(self, record: Record) -> Mapping[str, object]:
        """Return the values in *record*, at their place."""
        return extracted(record, self.into, self.criterion, self._read)

    def _read(self, content: object) -> object:
        if content is None:
            return None
        match = self._compiled.search(as_text(content).encode(errors="replace"))
        part = match and match.group(min(1, self._compiled.groups))
        return None if part is None else as_number(part.decode())
