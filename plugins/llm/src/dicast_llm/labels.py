"""Reading which of two labels a plain-text reply names as the better one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import attrs

from dicast import ConfigError

Side = Literal["first", "second"]

_MARKUP = r"[ \t*_`\"'#>]*"
_ANSWER = rf"{_MARKUP}(?:[\w ]{{1,40}}:{_MARKUP})?"  # a line may say "Verdict:" before the label


@attrs.frozen
class Labels:
    """The two texts that name the first and the second output in a reply.

    A reply's verdict is, the first of these that it has:

    1. its last line, if that is a label and nothing else: so the reply was told to end;
    2. a statement ``LABEL is better`` (or ``is the better``): the one that the reply opens with, else the last one, because a
       reply gives its verdict either before its reasons or after them, and may report other opinions in between;
    3. a line with a label and nothing else (``Verdict:`` may stand before it): likewise the opening one, else the last;
    4. a label, if the reply does not name the other one.

    Anything else has no verdict. Letter case counts, and a label inside a longer word is none.

    :raises ConfigError: when a label is blank, or both are the same.
    """

    first: str
    second: str
    _statement: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)
    _line: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)
    _closing: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)
    _sentence: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)
    _label: re.Pattern[str] = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if not (self.first.strip() and self.second.strip()) or self.first == self.second:
            raise ConfigError(
                f"labels are two different texts that are not blank, not {self.first!r} and {self.second!r}"
            )
        longest_first = sorted((self.first, self.second), key=len, reverse=True)
        label = rf"(?<!\w)({'|'.join(re.escape(one) for one in longest_first)})(?!\w)"
        for name, pattern in {
            "_statement": rf"{label}{_MARKUP}\bis (?:the )?better\b",
            "_line": rf"^{_ANSWER}{label}[\s*_`\"'.!]*$",
            "_closing": rf"{_ANSWER}{label}[\s*_`\"'.!]*\Z",
            "_sentence": rf"{label}{_MARKUP}\bis (?:the )?better\b[^.!?\n\"\u201d\u00bb]*",
            "_label": label,
        }.items():
            object.__setattr__(self, name, re.compile(pattern, re.MULTILINE))

    def winner(self, reply: str) -> Side | None:
        """Which output *reply* names as the better one; None when it does not say so."""
        text = reply.strip()
        if closing := self._closing.match(text, text.rfind("\n") + 1):
            return self._side(closing.group(1))
        for pattern in (self._statement, self._line):
            if found := list(pattern.finditer(text)):
                opening = not text[: found[0].start(1)].strip("*_`\"'#> \t\n")
                return self._side(found[0 if opening else -1].group(1))
        return self._only(self._label.findall(text))

    def without_quotations(self, reply: str, texts: Iterable[str]) -> str:
        """*reply* without what it quotes of the judged *texts*, which is no verdict.

        That is a whole text that names a label, and from a label on any sentence that says which output is better.
        """
        naming = [text for text in texts if self._label.search(text)]
        for text in naming:
            if text.strip() not in (self.first, self.second):
                reply = reply.replace(text.strip(), "")
        quotable = "\n".join(_loose(text) for text in naming)
        return self._sentence.sub(lambda said: "" if _loose(said[0]) in quotable else said[0], reply)

    def _only(self, named: Iterable[str]) -> Side | None:
        different = set(named)
        return self._side(different.pop()) if len(different) == 1 else None

    def _side(self, label: str) -> Side:
        return "first" if label == self.first else "second"


def _loose(text: str) -> str:
    """*text* without what a quotation may change: blanks and markup."""
    return re.sub(r"[\s*_`\"'#>]+", "", text)
