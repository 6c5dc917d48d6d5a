"""Reader of the better of two labels from a plain-text reply."""

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

    The verdict of a reply is the first match in this list:

    1. its last line, if the line is a label and nothing else: the reply was asked to end with it;
    2. a statement ``LABEL is better`` (or ``is the better``): the statement that opens the reply, else the last one, because a
       reply gives its verdict either before its reasons or after them, and may report other opinions in between;
    3. a line with a label and nothing else (``Verdict:`` may precede it): the opening line, else the last one;
    4. a label, if the reply does not name the other label.

    Any other reply has no verdict. Labels are case-sensitive, and a label inside a longer word does not count.

    :raises ConfigError: if a label is blank, or both are equal.
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
        label = rf"(?<!\w)({'|'.join(re.escape(text) for text in longest_first)})(?!\w)"
        for name, pattern in {
            "_statement": rf"{label}{_MARKUP}\bis (?:the )?better\b",
            "_line": rf"^{_ANSWER}{label}[\s*_`\"'.!]*$",
            "_closing": rf"{_ANSWER}{label}[\s*_`\"'.!]*\Z",
            "_sentence": rf"{label}{_MARKUP}\bis (?:the )?better\b[^.!?\n\"\u201d\u00bb]*",
            "_label": label,
        }.items():
            object.__setattr__(self, name, re.compile(pattern, re.MULTILINE))

    def winner(self, reply: str) -> Side | None:
        """Return the output that *reply* names as the better one; None if it names neither."""
        text = reply.strip()
        if closing := self._closing.match(text, text.rfind("\n") + 1):
            return self._side(closing.group(1))
        for pattern in (self._statement, self._line):
            if matches := list(pattern.finditer(text)):
                opening = not text[: matches[0].start(1)].strip("*_`\"'#> \t\n")
                return self._side(matches[0 if opening else -1].group(1))
        return self._single_side(self._label.findall(text))

    def without_quotations(self, reply: str, texts: Iterable[str]) -> str:
        """Return *reply* without its quotations of the judged *texts*, which are not a verdict.

        A quotation is a whole text that contains a label, or any sentence that begins with a label and names the better output.
        """
        naming = [text for text in texts if self._label.search(text)]
        for text in naming:
            if text.strip() not in (self.first, self.second):
                reply = reply.replace(text.strip(), "")
        quotable = "\n".join(_without_markup(text) for text in naming)
        return self._sentence.sub(lambda match: "" if _without_markup(match[0]) in quotable else match[0], reply)

    def _single_side(self, named: Iterable[str]) -> Side | None:
        different = set(named)
        return self._side(different.pop()) if len(different) == 1 else None

    def _side(self, label: str) -> Side:
        return "first" if label == self.first else "second"


def _without_markup(text: str) -> str:
    """Return *text* without blanks and markup, which a quotation may change."""
    return re.sub(r"[\s*_`\"'#>]+", "", text)
