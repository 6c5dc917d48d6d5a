"""Code as a sequence of tokens, which has its syntax without its layout."""

from __future__ import annotations

from collections.abc import Hashable

PYTHON = "python"
"""The language whose code the running Python parses."""

Token = tuple[Hashable, int, int]
"""What a place of the syntax tree is; its line, from 1; and how many bytes of that line stand before it.

Two pieces of code have the same tree when they have the same sequence of whats.
"""


class Unparsable(Exception):
    """Code that does not parse, why, and at which *line*, and byte of it, where that is known."""

    def __init__(self, why: str, line: int | None = None, offset: int = 0) -> None:
        super().__init__(why)
        self.why, self.line, self.offset = why, line, offset


def column(text: str, line: int, offset: int) -> int:
    """Return the column, from 1, of the character after *offset* bytes in the *line* of *text*."""
    lines = text.split("\n", line)
    if not 0 < line <= len(lines):
        return offset + 1
    before = lines[line - 1][: offset + 1].encode(errors="surrogatepass")[:offset]
    return len(before.decode(errors="replace")) + 1
