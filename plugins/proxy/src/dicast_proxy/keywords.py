"""Are the words there that must be, and none that must not?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from dicast import ConfigError, Score, Subject
from dicast.toolkit.json_values import MISSING, check_field, locate

from .content import texts
from .needles import Needle, expressions, literals, plain, utf8

_PASSED = Score(1.0)
_MAX_LISTED = 10


def _words(keywords: Iterable[str]) -> tuple[str, ...]:
    if isinstance(keywords, str):
        raise ConfigError(f"keywords are a list: write [{keywords}]")
    words = tuple(keywords)
    if "" in words:
        raise ConfigError("an empty keyword is found in every text; remove it")
    return words


def _check_expressions(
    metric: Keywords, attribute: attrs.Attribute[tuple[str, ...]], keywords: tuple[str, ...]
) -> None:
    if metric.regex:
        expressions(attribute.name, keywords, metric.case_sensitive, metric.whole_words)


@attrs.frozen
class Keywords:
    r"""The share of required keywords that the output has; 0 if it has a forbidden keyword.

    Forbidden keywords are searched first. Without required keywords the score is 1. In an object or list all its strings count.
    A letter with an accent is the same written as one character or as two (both are composed, NFC).

    With ``regex`` the keywords are regular expressions of RE2, whose time is proportional to the text for any
    expression. It has the syntax of Python's ``re`` without lookaround, backreferences, possessive repeats and ``(?x)``; ``$`` is
    the very end unless ``(?m)``, ``\z`` replaces ``\Z``, and ``\w \d \s \b`` know ASCII alone: ``\pL`` is any letter,
    ``\pN`` any digit, and ``whole_words`` any bounds of words.

    :param required: keywords that must occur; each has the same share of the score.
    :param forbidden: keywords that must not occur.
    :param case_sensitive: distinguish "TODO" from "todo". If false, "STRASSE" is "straße" too, but not in a regular expression.
    :param whole_words: "art" does not occur in "party": no letter, digit, accent or underscore of any script may be before
        or after it. Scripts without blanks between words have no such bounds.
    :param regex: the keywords are regular expressions. A wrong expression is refused when the pipeline is built.
    :param field: search only this place in the output, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); text is read as JSON to get there. A missing field is empty.
    """

    name = "keywords"
    tier = "proxy"
    needs_output = "always"

    required: tuple[str, ...] = attrs.field(default=(), converter=_words, validator=_check_expressions)
    forbidden: tuple[str, ...] = attrs.field(default=(), converter=_words, validator=_check_expressions)
    case_sensitive: bool = False
    whole_words: bool = False
    regex: bool = False
    field: str | None = attrs.field(default=None, validator=check_field)
    _required: tuple[Needle, ...] = attrs.field(init=False, eq=False, repr=False)
    _forbidden: tuple[Needle, ...] = attrs.field(init=False, eq=False, repr=False)

    @_required.default
    def _compile_required(self) -> tuple[Needle, ...]:
        return self._compile("required", self.required)

    @_forbidden.default
    def _compile_forbidden(self) -> tuple[Needle, ...]:
        return self._compile("forbidden", self.forbidden)

    def score(self, subject: Subject) -> Score:
        """Search the output of *subject*, or its field."""
        value = subject.output if self.field is None else locate(subject.output, self.field)
        searched = value if isinstance(value, str) else "\n".join(texts(value))
        text = utf8(searched) if self.regex else plain(searched, self.case_sensitive)
        is_forbidden = [needle.occurs(text) for needle in self._forbidden]
        if True in is_forbidden:
            forbidden = dict(zip(self.forbidden, is_forbidden, strict=True))
            return Score(
                0.0, details=f"has the forbidden {_listed_words(forbidden, True)}", signals={"forbidden": forbidden}
            )
        has_required = [needle.occurs(text) for needle in self._required]
        if False not in has_required:
            return _PASSED
        required = dict(zip(self.required, has_required, strict=True))
        forbidden = dict(zip(self.forbidden, is_forbidden, strict=True))
        signals = {"required": required} | ({"forbidden": forbidden} if forbidden else {})
        hits = list(required.values()).count(True)
        why = f"; the output has no field {self.field!r}" if value is MISSING else ""
        lacks = f"lacks {len(required) - hits} of {len(required)}: {_listed_words(required, False)}{why}"
        return Score(hits / len(required), details=lacks, signals=signals)

    def _compile(self, option: str, keywords: tuple[str, ...]) -> tuple[Needle, ...]:
        if self.regex:
            return expressions(option, keywords, self.case_sensitive, self.whole_words)
        return literals(keywords, self.case_sensitive, self.whole_words)


def _listed_words(occurs: Mapping[str, bool], which: bool) -> str:
    words = [repr(word) for word, occurrence in occurs.items() if occurrence is which]
    return ", ".join(words[:_MAX_LISTED]) + (
        f" and {len(words) - _MAX_LISTED} more" if len(words) > _MAX_LISTED else ""
    )
