"""Regular expressions of options, in the syntax of RE2: their time grows with the text alone."""

from __future__ import annotations

from typing import Protocol


class Expression(Protocol):
    """A compiled regular expression."""

    def search(self, text: str) -> object | None:
        """Return a match anywhere in *text*, else None."""
        ...


def compiled(pattern: str) -> Expression:
    """Return *pattern* as an expression; :func:`pattern_fault` reports the fault of a wrong pattern."""
    import re2  # type: ignore[import-untyped]  # here, since it is 1.6 MB and only some options need it

    options = re2.Options()
    options.log_errors = False
    expression: Expression = re2.compile(pattern, options)
    return expression


def pattern_fault(pattern: str) -> str | None:
    """Return the reason why *pattern* is no expression, with the fix; None if it is an expression."""
    import re2  # as above

    try:
        compiled(pattern)
    except (re2.error, UnicodeEncodeError) as error:
        reason = (
            error.args[0].decode(errors="replace") if isinstance(error, re2.error) else "it has half of a character"
        )
        unsupported = "RE2 reads it: without lookaround and backreferences, and with \\z for \\Z"
        return f"{pattern!r:.100} is not a regular expression: {reason} ({unsupported})"
    return None
