"""Markdown in which untrusted text stays text: no markup, no HTML, no links, no mentions of users.

Sites turn ``@name``, addresses and ``#12`` into links after they parse Markdown. A backslash does not prevent these links; code does (GitHub
Flavored Markdown, and GitHub's "basic writing and formatting syntax"). So untrusted text is always in code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..toolkit.printable import first_words, one_line, printable

_RUNS = re.compile("`+")


def code(text: object, most: int = 300) -> str:
    """Return *text* as code on one line, cut to *most* characters; ``*empty*`` or ``*blank*`` for such a text."""
    line = one_line(str(text))
    if len(line) > most:
        line = f"{first_words(line, most)}… ({len(line):,} characters)"
    if not line.strip():
        return "*empty*" if not line else "*blank*"
    ticks = "`" * (_longest_run(line) + 1)
    room = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{ticks}{room}{line}{room}{ticks}"


def fenced(text: object, most: int = 2_000) -> str:
    """Return *text* as a code block, cut to *most* characters; its fence is longer than any run of backticks in it."""
    block = printable(str(text)).replace("\t", "    ")
    if len(block) > most:
        block = f"{block[:most]}…\n({len(block):,} characters)"
    fence = "`" * max(3, _longest_run(block) + 1)
    return f"{fence}text\n{block}\n{fence}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> Iterator[str]:
    """Yield the lines of a table whose cells are Markdown already. The columns with the heads *right* are right-aligned."""
    yield _row(heads)
    yield _row(["--:" if head in right else "---" for head in heads])
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_in_a_cell, cells))} |"


def _in_a_cell(cell: str) -> str:
    """Return *cell* with its bars escaped; a bar after a backslash cannot be escaped, and becomes a broken bar."""
    return cell.replace("\\|", "\\¦").replace("|", "\\|")


def _longest_run(text: str) -> int:
    return max(map(len, _RUNS.findall(text)), default=0)
