"""Regular expressions of RE2: their time is proportional to the length of the text."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """*pattern* in RE2's syntax, made ready; the last ones are kept, because the tasks of a set share theirs.

    :raises ValueError: when it is no such pattern: it has no look-around and no back-references.
    """
    import re2  # type: ignore[import-untyped]  # here, since most task sets have no patterns

    options = re2.Options()
    options.log_errors = False  # it would write to stderr
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from error


def occurs(pattern: str, text: str) -> bool:
    """Return True if *pattern* matches anywhere in *text*. A lone surrogate in *text* counts as a question mark."""
    try:
        return compiled(pattern).search(text) is not None
    except UnicodeEncodeError:
        return compiled(pattern).search(text.encode(errors="replace").decode()) is not None
