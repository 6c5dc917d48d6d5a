"""Are the words there that must be, and none that must not?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs

from dicast import MISSING, ConfigError, Score, Subject, check_field, locate

from .content import texts

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
        forbidden = _occurrences(self._forbidden, text)
        if True in forbidden:
            return Score(0.0, details=f"has the forbidden {self.forbidden[forbidden.index(True)]!r}")
        required = _occurrences(self._required, text)
        return self._grade(required, value is MISSING) if False in required else _PASSED

    def _grade(self, occurs: list[bool], no_field: bool) -> Score:
        missing = [repr(keyword) for keyword, found in zip(self.required, occurs, strict=True) if not found]
        why = f"; the output has no field {self.field!r}" if no_field else ""
        lacks = f"lacks {len(missing)} of {len(occurs)}: {', '.join(missing)}{why}"
        return Score(occurs.count(True) / len(occurs), details=lacks)

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


def _occurrences(needles: tuple[Needle, ...], text: str) -> list[bool]:
    return [needle in text if isinstance(needle, str) else needle.search(text) is not None for needle in needles]
