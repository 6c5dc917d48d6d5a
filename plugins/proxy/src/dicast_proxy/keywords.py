"""Are the words there that must be, and none that must not?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from dicast import MISSING, ConfigError, Score, Subject

from .content import texts
from .field import check_field, locate

_PASSED = Score(1.0)
Needle = str | re.Pattern[str]


def _words(given: Iterable[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ConfigError(f"keywords are a list: write [{given}]")
    words = tuple(given)
    if "" in words:
        raise ConfigError("an empty keyword is found in every text; remove it")
    return words


@attrs.frozen
class Keywords:
    """The share of required keywords that the output has; 0 when it has a forbidden one.

    Forbidden ones are looked for first. With nothing required the score is 1. In an object or list all its strings count.

    :param required: keywords that must be there; each has the same share of the score.
    :param forbidden: keywords that must not.
    :param case_sensitive: tell "TODO" from "todo".
    :param whole_words: "art" is not found in "party".
    :param regex: the keywords are regular expressions, in the syntax of Python's ``re``.
    :param field: look only at this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); text is read as JSON to get there. A missing field is empty.
    """

    name = "keywords"
    tier = "proxy"

    required: tuple[str, ...] = attrs.field(default=(), converter=_words)
    forbidden: tuple[str, ...] = attrs.field(default=(), converter=_words)
    case_sensitive: bool = False
    whole_words: bool = False
    regex: bool = False
    field: str | None = attrs.field(default=None, validator=check_field)
    _required: tuple[Needle, ...] = attrs.field(init=False, eq=False, repr=False)
    _forbidden: tuple[Needle, ...] = attrs.field(init=False, eq=False, repr=False)
    _fold: bool = attrs.field(init=False, eq=False, repr=False)

    @_required.default
    def _compile_required(self) -> tuple[Needle, ...]:
        return tuple(self._compile(keyword) for keyword in self.required)

    @_forbidden.default
    def _compile_forbidden(self) -> tuple[Needle, ...]:
        return tuple(self._compile(keyword) for keyword in self.forbidden)

    @_fold.default
    def _folds(self) -> bool:
        return not (self.case_sensitive or self.whole_words or self.regex)

    def score(self, subject: Subject) -> Score:
        """Search the output of *subject*, or its field."""
        value = subject.output if self.field is None else locate(subject.output, self.field)
        text = value if isinstance(value, str) else "\n".join(texts(value))
        if self._fold:
            text = text.casefold()
        for keyword, needle in zip(self.forbidden, self._forbidden, strict=True):
            if _occurs(needle, text):
                return Score(0.0, details=f"has the forbidden {keyword!r}")
        missing = [
            keyword for keyword, needle in zip(self.required, self._required, strict=True) if not _occurs(needle, text)
        ]
        return self._grade(missing, value is MISSING) if missing else _PASSED

    def _grade(self, missing: list[str], no_field: bool) -> Score:
        total = len(self.required)
        why = f"; the output has no field {self.field!r}" if no_field else ""
        lacks = ", ".join(map(repr, missing))
        return Score((total - len(missing)) / total, details=f"lacks {len(missing)} of {total}: {lacks}{why}")

    def _compile(self, keyword: str) -> Needle:
        if not (self.regex or self.whole_words):
            return keyword if self.case_sensitive else keyword.casefold()
        pattern = keyword if self.regex else re.escape(keyword)
        flags = 0 if self.case_sensitive else re.IGNORECASE
        try:
            plain = re.compile(pattern, flags)
            # Not \b: a keyword may begin or end with a character that is no part of a word, as in "C++".
            return re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", flags) if self.whole_words else plain
        except re.error as error:
            raise ConfigError(f"keyword {keyword!r} is not a regular expression: {error}") from error


def _occurs(needle: Needle, text: str) -> bool:
    return needle in text if isinstance(needle, str) else needle.search(text) is not None
