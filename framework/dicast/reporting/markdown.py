"""Markdown in which text of others stays text: no markup, no HTML, no link, no mention of a user.

Where a page is shown, names after ``@``, addresses and ``#12`` become links after Markdown is read, so a backslash does not keep
them from it; code does (GitHub Flavored Markdown, and GitHub's "basic writing and formatting syntax"). So text of others stands in code alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..toolkit.printable import one_line, printable

_RUNS = re.compile("`+")


def code(text: object, most: int = 300) -> str:
    """*text* in one line of code, cut to *most* characters; a word in italics where it is empty."""
    shown = one_line(str(text))
    if len(shown) > most:
        shown = f"{shown[:most]}… ({len(shown):,} characters)"
    if not shown.strip():
        return "*empty*" if not shown else "*blank*"
    ticks = "`" * (_longest_run(shown) + 1)
    room = " " if shown[0] in "` " or shown[-1] in "` " else ""
    return f"{ticks}{room}{shown}{room}{ticks}"


def fenced(text: object, most: int = 2_000) -> str:
    """*text* as a block of code, cut to *most* characters; its fence is longer than any run of backticks in it."""
    shown = printable(str(text)).replace("\t", "    ")
    if len(shown) > most:
        shown = f"{shown[:most]}…\n({len(shown):,} characters)"
    fence = "`" * max(3, _longest_run(shown) + 1)
    return f"{fence}text\n{shown}\n{fence}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> Iterator[str]:
    """The lines of a table whose cells are Markdown already; the columns *right* stand on the right."""
    yield _row(heads)
    yield _row(["--:" if head in right else "---" for head in heads])
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_in_a_cell, cells))} |"


def _in_a_cell(cell: str) -> str:
    """*cell* without a bar that ends it; behind a backslash there is no way to write one, and it is a broken bar."""
    return cell.replace("\\|", "\\¦").replace("|", "\\|")


def _longest_run(text: str) -> int:
    return max(map(len, _RUNS.findall(text)), default=0)
