"""Detection of verdicts that a model copied from the judged text by quoting it without escapes."""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cached_property

import attrs

_OPENING = re.compile(r"^<<<data ([0-9a-f]+)\n", re.MULTILINE)
_CLOSING = re.compile(r"\ndata ([0-9a-f]+)>>>$", re.MULTILINE)
_HEAD = re.compile(r"[0-9a-f]{12}(?= )")  # the word with which every message of a conversation begins
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([nrtbf])|(.))", re.DOTALL)
_QUOTES = str.maketrans(
    dict.fromkeys("'`\u00ab\u00b4\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033", '"')
)
_INVISIBLE = re.compile(r"[\\\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+")
_BLANKS = re.compile(r"\s+")
_FULL_STOPS = ".!?…。 "
_MOST = 64  # characters of a copied piece that are compared
_LAST_WORD = 8  # this many equal characters are hardly a coincidence


@attrs.define(slots=False)
class JudgedMessage:
    """The message with the judged text. It is analyzed only for replies whose form makes a copy possible."""

    message: str

    @cached_property
    def _views(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the message: unchanged, without JSON escapes, and without two levels of JSON escapes; all folded."""
        texts = tuple(_texts(self.message))
        plain = tuple(_unescaped(text) for text in texts)
        twice = tuple(_unescaped(text) for text in plain)
        return tuple(dict.fromkeys(tuple(_folded(text) for text in view) for view in (texts, plain, twice)))

    def holds(self, piece: str) -> bool:
        """Return True if *piece* occurs in the judged text: inside one text, or across the end of one text and the start of another."""
        return any(
            _spread(spelling, texts) or any(_places(spelling, texts))
            for spelling in _spelled(piece)
            for texts in self._views
        )

    def ends(self, quoted: str, piece: str, least: int) -> bool:
        """Return True if the judged text may have ended a string that contains *quoted*, with *piece* right after it.

        It has not if the word before *piece* differs in the judged text. A text that ends inside *piece* counts if it has at least
        *least* characters of *piece*, without blanks.
        """
        for spelling, quoted_spelling in zip(_spelled(piece), _spelled(quoted, keep_end=True), strict=True):
            for texts in self._views:
                cut = any(
                    text.endswith(spelling[:size]) for size in range(least, len(spelling)) for text in _closed(texts)
                )
                if (
                    cut
                    or _spread(spelling, texts)
                    or any(_follows(before, quoted_spelling) for before in _places(spelling, texts))
                ):
                    return True
        return False


def _texts(message: str) -> Iterator[str]:
    """Yield the fenced texts, and each message of a conversation by itself; the whole message if it has no fence."""
    for text in [*_fenced(message)] or [message]:
        yield text
        if head := _HEAD.match(text):
            yield from re.split(rf"^{head[0]} .*\n?", text, flags=re.MULTILINE)


def _fenced(message: str) -> Iterator[str]:
    """Yield the texts in fences, each up to the first closing line with the word of its opening line."""
    closings: dict[str, list[int]] = {}
    for match in _CLOSING.finditer(message):
        closings.setdefault(match[1], []).append(match.start())
    end = 0
    for match in _OPENING.finditer(message):
        ends = closings.get(match[1], [])
        number = bisect_left(ends, match.end())
        if match.start() >= end and number < len(ends):
            end = ends[number] + 1
            yield message[match.end() : ends[number]]


def _spelled(piece: str, *, keep_end: bool = False) -> tuple[str, str]:
    """Return *piece* unchanged and without escapes, both folded; with *keep_end*, blanks at the end become one blank."""
    both = []
    for text in (piece, _unescaped(piece)):
        folded = _folded(text).replace("\n", "")
        both.append((f"{folded} " if text[-1:].isspace() else folded) if keep_end else folded[:_MOST])
    return both[0], both[1]


def _unescaped(text: str) -> str:
    def plain(match: re.Match[str]) -> str:
        return chr(int(match[1], 16)) if match[1] else "\n" if match[2] else match[3]

    return _ESCAPE.sub(plain, text)


def _folded(text: str) -> str:
    """Return *text* without features that a copy may change: blanks except line breaks, backslashes, the shape of quotation marks, case."""
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_QUOTES).casefold()
    return _BLANKS.sub(lambda match: "\n" if set(match[0]) - {" ", "\t"} else "", _INVISIBLE.sub("", text))


def _closed(texts: Sequence[str]) -> list[str]:
    return [text[-2 * _MOST :].replace("\n", "") for text in texts]


def _spread(piece: str, texts: Sequence[str]) -> bool:
    """Return True if one text ends with the start of *piece*, and another starts with its rest."""
    starts, ends = [text[: 2 * _MOST].replace("\n", "") for text in texts], _closed(texts)
    return any(
        any(text.endswith(piece[:size]) for text in ends) and any(text.startswith(piece[size:]) for text in starts)
        for size in range(1, len(piece))
    )


def _places(piece: str, texts: Sequence[str]) -> Iterator[str]:
    """Yield the words before each occurrence of *piece*, or a line break for the start of a text or line."""
    pattern = re.compile("\n?".join(map(re.escape, piece)))
    for text in texts:
        for match in pattern.finditer(text):
            yield text[max(0, match.start() - _MOST) : match.start()] or "\n"


def _follows(before: str, quoted: str) -> bool:
    """Return True if *quoted* ends like a copy of *before*. If no word can be compared, it may be a copy."""
    if before.endswith("\n"):
        return True
    before, last = (
        before.replace("\n", "").rstrip(_FULL_STOPS),
        quoted if quoted.endswith(" ") else quoted.rstrip(_FULL_STOPS),
    )
    equal = 0
    while equal < min(len(before), len(last), _LAST_WORD) and before[-1 - equal] == last[-1 - equal]:
        equal += 1
    if equal in (len(before), len(last), _LAST_WORD):
        return True
    return not (_is_word(before[-1 - equal]) and _is_word(last[-1 - equal]))


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
