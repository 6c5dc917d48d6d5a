"""The check of a text for balanced brackets and quotation marks, in prose, Markdown or code of any language.

One regular expression finds the relevant characters and skips the rest. :class:`~dicast_proxy.Syntax` has the rules.
"""

from __future__ import annotations

import re

import attrs

_DEEPEST = 1_000_000
_CLOSES = {")": "(", "]": "[", "}": "{"}

# Python before 3.11.5 matches a possessive (?:…)*+ wrongly where what it repeats could backtrack; (?>…) inside keeps it from that.

# Words that lose their beginning ('tis, '90s), and one letter ('n, &'a str): an apostrophe before them opens nothing,
# unless what it opens is closed before the next blank ('d%').
_ELIDED = (
    r"(?!(?:(?<![(\[{=]')\w|(?i:\d\ds?|bout|cause|cos|coz|cuz|ello|em|ere|er|fraid|gainst|im|is|ll|neath|nother|ouse|re|round"
    r"|scuse|static|sup|til|till|tis|twas|tween|twere|twill|twixt|twould|un|ve|way))\b(?!['\\]))"
)
_PREFIXED = r"(?<=(?<!\w)[bfruBFRU]')(?!\((?!'))|(?<=(?<!\w)[bfrBFR]{2}')"  # as in Python; f'(x) is a derivative
_IN_WORD = r"'(?<=\w')(?=\w)(?<!(?<!\w)[bfruBFRU]')(?<!(?<!\w)[bfrBFR]{2}')"
_TEXT = rf"(?:(?>[^'\\\n]|\\[^\n]|{_IN_WORD}))*+"  # on one line
_BEFORE = r"(?<![\w&<)\]}.!?]')"  # after these an apostrophe closes, is part of a word, or is a lifetime of Rust
# The first character is there already. What is only skipped has no name. No branch looks far ahead twice, so the time is linear.
_SINGLE = rf"""(?<=')(?:
    ''(?:(?>[^'\\]++|\\.|'(?!'')))*+\'\'\'
  | (?!'')(?:{_BEFORE}{_ELIDED}|{_PREFIXED}){_TEXT}'(?!\w)
  | {_BEFORE}[^\s'\\]++'(?!\w)
  | (?P<triple>'')
  | (?P<opening>{_BEFORE}{_ELIDED}(?=[^\s']))
  | (?P<closing>(?<=\S')(?!\w)))
"""
# Speech of several paragraphs opens each of them, and closes the last. A mark after a digit is one of inches.
_DOUBLE = r"""(?<=")(?:
    ""(?:(?>[^"\\]++|\\.|"(?!"")))*+\"\"\"
  | (?<=\d")
  | (?!"")(?:(?>[^"\\\n]++|\\.|\n[ \t\r]*+\n[ \t]*+"(?=\w)|\n))*+"
  | (?P<double>(?:"")?))
"""
# As in Markdown: as many close as opened, and a backslash is nothing in between. Or as on old terminals: `so'.
_BACKTICKS = r"""(?<=`)(?P<more>`*+)(?:
    [^`]++(?:(?>(?!`(?P=more)(?!`))`++[^`]++))*+`(?P=more)(?!`)
  | (?<!```)(?=[^`'\n]*')
  | (?P<backtick>))
"""
_BRACKET = r"(?P<bracket>(?<=[()\[\]{}]))"
_ESCAPED = r"(?<=\\)."

# Brackets that need no partner, such as in "1) this" and in a smiley.
_LOOSE = re.compile(
    r"(?<!\S)(?:(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{2,4})(?P<listed>\))(?=[ \t]+\S)|[:;]-?(?P<smile>[()\[\]])(?![^\s.,!?]))"
)
_LOOK = 4


@attrs.frozen
class Fault:
    """A fault with its place: a line and a column, both from 1, the column in characters."""

    message: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.message}"


@attrs.frozen
class Scanner:
    """Looks for the first bracket, or mark, that has no partner."""

    _tokens: re.Pattern[str]

    @classmethod
    def of(cls, brackets: bool, quotes: bool) -> Scanner:
        """Return a scanner for the requested checks. Brackets inside quotation marks count only if quotes are not checked."""
        branches = [*[_BRACKET] * brackets, *[_DOUBLE, _SINGLE, _BACKTICKS] * quotes, _ESCAPED]
        first = r"\\" + r"()\[\]{}" * brackets + "\"'`" * quotes
        return cls(re.compile(rf"[{first}](?:{'|'.join(branches)})", re.VERBOSE | re.DOTALL))

    def fault(self, text: str) -> Fault | None:
        """Return the first fault of *text*: a bracket that closes nothing or the wrong bracket, or a mark without an end.
        Without such a fault, the first bracket or apostrophe that stays open.
        """
        fault = self._scan(text)
        if fault is None:
            return None
        message, at = fault
        return Fault(message, *position(text, at))

    def _scan(self, text: str) -> tuple[str, int] | None:
        opened: list[int] = []
        single = -1
        for match in self._tokens.finditer(text):
            kind = match.lastgroup
            if kind is None or kind == "more":
                continue
            at = match.start()
            if kind == "bracket":
                if (fault := _match_bracket(text, at, opened)) is not None:
                    return fault
            elif kind == "opening":
                single = at if single < 0 else single
            elif kind == "closing":
                single = -1
            else:
                return f"{match[0][:3]} is never closed", at
        return _left_open(text, opened, single)


def position(text: str, at: int) -> tuple[int, int]:
    """Return the line and column, from 1, of the character *at* in *text*."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def _match_bracket(text: str, at: int, opened: list[int]) -> tuple[str, int] | None:
    """Open or close the bracket *at*, and return its fault, if any."""
    opening = _CLOSES.get(text[at])
    if opening is None:
        opened.append(at)
        return None if len(opened) <= _DEEPEST else (f"{text[at]} is inside {_DEEPEST:,} others", at)
    if opened and text[opened[-1]] == opening:
        opened.pop()
        return None
    if _is_loose(text, at):
        return None
    while opened and _is_loose(text, opened[-1]):
        opened.pop()
    if not opened:
        return f"{text[at]} closes nothing", at
    if text[opened[-1]] == opening:
        opened.pop()
        return None
    line, column = position(text, opened[-1])
    return f"{text[at]} closes {text[opened[-1]]} of line {line}, column {column}", at


def _left_open(text: str, opened: list[int], single: int) -> tuple[str, int] | None:
    left = next((at for at in opened if not _is_loose(text, at)), -1)
    places = [at for at in (left, single) if at >= 0]
    return (f"{text[min(places)]} is never closed", min(places)) if places else None


def _is_loose(text: str, at: int) -> bool:
    matches = (_LOOSE.match(text, start) for start in range(max(0, at - _LOOK), at))
    return any(match and at in (match.start("listed"), match.start("smile")) for match in matches)
