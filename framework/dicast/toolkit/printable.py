"""Untrusted text on a terminal: characters that would control it, hide text or imitate a line of dicast become escapes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from itertools import accumulate
from typing import Any, TextIO

_STEERING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 and C1: ESC begins sequences that move the cursor, set the title, or answer for the user
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidi, invisible, line separators
    r"\ud800-\udfff\U000e0000-\U000e007f"
)
_ANYWHERE = re.compile(f"[{_STEERING}]")
_IN_A_LINE = re.compile(f"[\n\t{_STEERING}]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}

_CLEAR = "\r\x1b[K"
"""The code that moves to the beginning of the line and clears it."""

LONGEST_NAME = 60
"""The most characters of an id or another name that are shown."""


def printable(text: str) -> str:
    r"""Return *text* with escapes (``\u001b``) in place of control, bidi and invisible characters, except newlines and tabs.

    The escapes are JSON's, so a JSON document keeps its value.
    """
    return _ANYWHERE.sub(_escape, text)


def one_line(text: str) -> str:
    r"""Return *text* in one line, with escapes as in :func:`printable`: newlines and tabs are ``\n`` and ``\t``."""
    return _IN_A_LINE.sub(lambda match: _SHORT.get(match[0]) or _escape(match), text)


def column_count(text: str) -> int:
    """Return the most columns that *text* takes on a terminal: 2 for a wide character, such as a Chinese one, 1 for any other."""
    if text.isascii():
        return len(text)
    from unicodedata import east_asian_width  # most texts need no table of characters

    return len(text) + sum(east_asian_width(sign) in "WF" for sign in text)


def first_columns(text: str, most: int) -> str:
    """Return the beginning of *text* that takes at most *most* columns."""
    if text.isascii():
        return text[:most]
    ends = accumulate(map(column_count, text))
    return text[: sum(end <= most for end in ends)]


def first_words(text: str, most: int) -> str:
    """Return the beginning of *text* with at most *most* characters, which ends after a word unless that would leave out more than a half."""
    if len(text) <= most:
        return text
    words = text[: most + 1].rpartition(" ")[0].rstrip()
    return words if 2 * len(words) >= most else text[:most]


def short_name(text: object, longest: int = LONGEST_NAME) -> str:
    """Return an id or another name in one line, cut in the middle to *longest* columns: names often differ at their ends."""
    name = one_line(str(text))
    if column_count(name) <= longest:
        return name
    end = (longest - 1) // 2
    return f"{first_columns(name, longest - 1 - end)}…{first_columns(name[::-1], end)[::-1]}"


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


class Printable:
    """A stream for people: all text written to it becomes :func:`printable`. Bytes go to its ``buffer`` unchanged.

    With *plain* nothing is drawn, even if the *stream* is a terminal.
    """

    def __init__(self, stream: TextIO, *, plain: bool = False) -> None:
        self.stream, self.plain = stream, plain
        self._over = False

    def write(self, text: str) -> int:
        """Write *text*, and return the number of characters written."""
        self.clear()
        return self.stream.write(printable(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write *lines*, which have their ends."""
        self.clear()
        self.stream.writelines(map(printable, lines))

    def write_over(self, line: str) -> None:
        """Write a line to a terminal; the next output replaces it.

        :param line: it may have codes for the terminal; untrusted text in it must be escaped.
        """
        self.stream.write(_CLEAR + line)
        self.stream.flush()
        self._over = True

    def clear(self) -> None:
        """Clear the line of :meth:`write_over`, if there is one."""
        if self._over:
            self._over = False
            self.stream.write(_CLEAR)
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def printable_output(*, plain: bool = False) -> Iterator[None]:
    """Make all output of the process on stdout and stderr :func:`printable` while the block runs, with *plain* also without drawings."""
    with redirect_stdout(Printable(sys.stdout, plain=plain)), redirect_stderr(Printable(sys.stderr, plain=plain)):
        yield
