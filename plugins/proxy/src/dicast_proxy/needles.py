"""The search for keywords: literals, and regular expressions whose time is linear in the length of the text."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import attrs

from dicast import ConfigError

_WORD = r"\pL\pM\pN\p{Pc}"
_UNSUPPORTED = (
    "RE2 reads regular expressions here: without lookaround, backreferences and possessive repeats, and \\z for \\Z"
)


class Needle(Protocol):
    """The test of a keyword in a text, which was prepared by :func:`plain` or :func:`utf8`."""

    def occurs(self, text: Any) -> bool:
        """Return True if the keyword occurs in *text*."""
        ...


def utf8(text: str) -> bytes:
    """Return *text* for regular expressions. Lone surrogates, which are no characters, become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()


def plain(text: str, case_sensitive: bool) -> str:
    """*text* for literals, so that equal texts are equal strings: composed (NFC) and, unless case counts, with its case folded."""
    if text.isascii():
        return text if case_sensitive else text.lower()
    return unicodedata.normalize("NFC", text if case_sensitive else text.casefold())


@attrs.frozen
class Literal:
    """A piece of text."""

    needle: str

    def occurs(self, text: str) -> bool:
        """Return True if it is in *text*."""
        return self.needle in text


@attrs.frozen
class Word:
    """A piece of text with no letter, digit, accent or underscore before and after it."""

    needle: str
    _pattern: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)

    @_pattern.default
    def _compile(self) -> re.Pattern[str]:
        # Not \b: a keyword may begin or end with a character that is no part of a word, as in "C++".
        # The needle comes first, which is what the engine looks for quickly.
        needle = re.escape(self.needle)
        return re.compile(rf"{needle}(?<!\w{needle})(?!\w)")

    def occurs(self, text: str) -> bool:
        """Return True if it is in *text*."""
        match = self._pattern.search(text)
        while match and (_is_mark(text, match.start() - 1) or _is_mark(text, match.end())):
            match = self._pattern.search(text, match.end())
        return match is not None


@attrs.frozen
class Expression:
    """A regular expression in the syntax of RE2."""

    pattern: str
    case_sensitive: bool
    whole_words: bool
    _compiled: _Compiled = attrs.field(init=False, eq=False, repr=False)

    @_compiled.default
    def _compile(self) -> _Compiled:
        import re2  # type: ignore[import-untyped]  # here, since it is 1.6 MB and only these need it

        options = re2.Options()
        options.case_sensitive, options.log_errors, options.never_capture = self.case_sensitive, False, True
        alone: _Compiled = re2.compile(self.pattern, options)
        if not self.whole_words:
            return alone
        bounded = rf"(?:\A|[^{_WORD}])(?:%s)(?:\z|[^{_WORD}])"
        try:
            return re2.compile(bounded % self.pattern, options)  # type: ignore[no-any-return]  # it has no types
        except re2.error:
            return re2.compile(bounded % rf"{self.pattern}\E", options)  # type: ignore[no-any-return]  # as above; an open \Q

    def occurs(self, text: bytes) -> bool:
        """Return True if it matches anywhere in *text*."""
        return self._compiled.search(text) is not None


class _Compiled(Protocol):
    def search(self, text: bytes) -> object | None: ...


def expressions(
    option: str, patterns: Sequence[str], case_sensitive: bool, whole_words: bool
) -> tuple[Expression, ...]:
    """Return the *patterns* of the option *option*, compiled.

    :raises ConfigError: with each wrong pattern, and the place of its fault.
    """
    import re2  # as above

    compiled, wrong = [], []
    for index, pattern in enumerate(patterns):
        try:
            compiled.append(Expression(pattern, case_sensitive, whole_words))
        except re2.error as error:
            reason, _, fragment = bytes(error.args[0]).decode("utf-8", "replace").partition(": ")
            at = _position(pattern, fragment) + 1
            fault = f"{reason} {fragment!r:.40}" if fragment != pattern else reason
            wrong.append(f"{option}[{index}]: {pattern!r:.100} is wrong at character {at}: {fault}")
        except UnicodeEncodeError as error:
            wrong.append(f"{option}[{index}]: {pattern!r:.100} has no character at {error.start + 1}, but half of one")
    if wrong:
        raise ConfigError(f"{'; '.join(wrong)} ({_UNSUPPORTED})")
    return tuple(compiled)


def literals(keywords: Iterable[str], case_sensitive: bool, whole_words: bool) -> tuple[Needle, ...]:
    """Needles for *keywords* as they are written."""
    needles = (plain(keyword, case_sensitive) for keyword in keywords)
    return tuple(Word(keyword) if whole_words else Literal(keyword) for keyword in needles)


def _position(pattern: str, fragment: str) -> int:
    """Return the place in *pattern* of the *fragment* in RE2's error; for a bracket without a partner the fragment is the whole pattern."""
    if fragment != pattern:
        return max(0, pattern.find(fragment))
    try:
        with warnings.catch_warnings(action="ignore"):
            re.compile(pattern)
    except re.error as error:
        return error.pos or 0
    except RecursionError:
        return 0
    return 0


def _is_mark(text: str, at: int) -> bool:
    return 0 <= at < len(text) and unicodedata.category(text[at]).startswith("M")
