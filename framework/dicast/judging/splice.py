"""Whether what decides a verdict was copied from the judged text, by a model that quotes it without escaping it."""

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
_HEAD = re.compile(r"[0-9a-f]{12}(?= )")  # what every message of a conversation begins with, the same in all
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|([nrtbf])|(.))", re.DOTALL)
_QUOTES = str.maketrans(
    dict.fromkeys("'`\u00ab\u00b4\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033", '"')
)
_INVISIBLE = re.compile(r"[\\\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]+")
_BLANKS = re.compile(r"\s+")
_FULL_STOPS = ".!?…。 "
_MOST = 64  # characters of a copied piece that are compared
_LAST_WORD = 8  # as much of a word as is hardly the same by chance


@attrs.define(slots=False)
class JudgedMessage:
    """The message with the judged text; looked into only where a reply has the form that makes it necessary."""

    message: str

    @cached_property
    def _views(self) -> tuple[tuple[str, ...], ...]:
        """The texts of the message, once as they are, and once without the escapes of JSON."""
        texts = tuple(_texts(self.message))
        plain = tuple(_unescaped(text) for text in texts)
        twice = tuple(_unescaped(text) for text in plain)
        return tuple(dict.fromkeys(tuple(_folded(text) for text in each) for each in (texts, plain, twice)))

    def holds(self, piece: str) -> bool:
        """Whether *piece* stands in the judged text: as a whole, or begun at a text's end and ended at another's start."""
        return any(_spread(one, texts) or any(_places(one, texts)) for one in _spelled(piece) for texts in self._views)

    def ends(self, quoted: str, piece: str, least: int) -> bool:
        """Whether the judged text can have ended a string that has *quoted* in it, with *piece* right after.

        It has not where the word before *piece* is another one in the judged text. A text that breaks off in *piece*
        counts when it holds at least *least* characters of it, blanks not counted.
        """
        for one, said in zip(_spelled(piece), _spelled(quoted, keep_end=True), strict=True):
            for texts in self._views:
                cut = any(text.endswith(one[:size]) for size in range(least, len(one)) for text in _closed(texts))
                if cut or _spread(one, texts) or any(_follows(before, said) for before in _places(one, texts)):
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
    """*piece* as it is and without escapes, folded; with *keep_end* a blank at its end stays one."""
    both = []
    for text in (piece, _unescaped(piece)):
        folded = _folded(text).replace("\n", "")
        both.append((f"{folded} " if text[-1:].isspace() else folded) if keep_end else folded[:_MOST])
    return both[0], both[1]


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else "\n" if found[2] else found[3]

    return _ESCAPE.sub(plain, text)


def _folded(text: str) -> str:
    """*text* without what a copy may change: blanks but for line breaks, backslashes, quotation marks' shape, case."""
    text = unicodedata.normalize("NFKC", html.unescape(text)).translate(_QUOTES).casefold()
    return _BLANKS.sub(lambda found: "\n" if set(found[0]) - {" ", "\t"} else "", _INVISIBLE.sub("", text))


def _closed(texts: Sequence[str]) -> list[str]:
    return [text[-2 * _MOST :].replace("\n", "") for text in texts]


def _spread(piece: str, texts: Sequence[str]) -> bool:
    """Whether one text ends with the start of *piece*, and one starts with its rest."""
    starts, ends = [text[: 2 * _MOST].replace("\n", "") for text in texts], _closed(texts)
    return any(
        any(text.endswith(piece[:size]) for text in ends) and any(text.startswith(piece[size:]) for text in starts)
        for size in range(1, len(piece))
    )


def _places(piece: str, texts: Sequence[str]) -> Iterator[str]:
    """What stands before *piece* wherever it occurs: a mark for the start of a text or line, else the words there."""
    pattern = re.compile("\n?".join(map(re.escape, piece)))
    for text in texts:
        for found in pattern.finditer(text):
            yield text[max(0, found.start() - _MOST) : found.start()] or "\n"


def _follows(before: str, said: str) -> bool:
    """Whether what was *said* ends as a copy of *before* does; where no word can be compared, it may be one."""
    if before.endswith("\n"):
        return True
    before, last = (
        before.replace("\n", "").rstrip(_FULL_STOPS),
        said if said.endswith(" ") else said.rstrip(_FULL_STOPS),
    )
    same = 0
    while same < min(len(before), len(last), _LAST_WORD) and before[-1 - same] == last[-1 - same]:
        same += 1
    if same in (len(before), len(last), _LAST_WORD):
        return True
    return not (_is_word(before[-1 - same]) and _is_word(last[-1 - same]))


def _is_word(letter: str) -> bool:
    return letter.isalnum() or letter == "_"
