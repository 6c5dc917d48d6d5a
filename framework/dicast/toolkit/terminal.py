"""Output of commands: drawn by rich if standard output is a terminal, otherwise plain lines."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING, Any, TextIO

import click

from .._kernel.classes import frozen
from .printable import Printable, column_count, one_line, printable
from .text_table import WIDTH, TextTable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_GOOD, _BAD, _OPEN = "green", "bold red", "bold yellow"
_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("passed", "ok", "better"), _GOOD),
    **dict.fromkeys(("failed", "did not pass", "broken", "duplicate", "worse", "dead"), _BAD),
    **dict.fromkeys(("undecided", "blocked", "cannot tell", "stopped", "running", "open"), _OPEN),
}
"""Words with a color if they are a whole cell, or the result in a line."""
_IN_LINES = (
    (r"^\S.*  (?:in )?run \S+.*$", "bold"),
    (r"^[^\s:][^:]{,40}:(?= |$)", "bold"),
    (r"^    \S+/\S+(?= \()", "bold"),
    (r"^gate: (?P<word>passed|failed|undecided)(?=: |$)", None),
    (r"^ *(?:\S+: )?(?P<word>better|worse|cannot tell)\b", None),
    (r"^\S+ +\S+ \S+ +(?P<word>ok|blocked|broken|duplicate)$", None),
    (r"(?<=, )[\d,]+ failed(?=,|$)", _BAD),
    (r"^(?:(?:  )?NOT COMPARABLE|BROKEN|failed(?=: \d)|sink .* LOST [\d,]+)", _BAD),
    (r"^(?:warning|stopped)(?=:)", _OPEN),
    (r"^\S+: (?:[\d.]+(?: raw| \(raw \S+\))?|no value), (?P<word>passed|did not pass|open)(?=,)", None),
    (r"\[-[^\]]*-\]", "red"),
    (r"\{\+[^}]*\+\}", "green"),
)
"""Patterns of styled parts of a line; None is the style of its word."""

_WIDE = "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\U0001f300-\U0001faff\U00020000-\U0003fffd"
"""Wide characters, between which a row may end."""


@frozen
class Drawing:
    """A *table* for a terminal, with equivalent plain *lines* for other outputs; *marked* is the column of failures."""

    table: TextTable
    lines: Sequence[str]
    marked: str | None = None


@frozen
class Line:
    """A line that is wrapped on any output; as plain text at :data:`WIDTH`."""

    text: str


Part = str | Line | TextTable | Drawing
"""Printed parts: lines without terminal codes, and tables."""


def terminal(stream: Any) -> Printable | None:
    """Return *stream* if it is a terminal that supports styles, and plain lines were not requested; otherwise None.

    It escapes control codes. Write codes to its ``stream``, and escape untrusted text before writing it there.
    """
    if not isinstance(stream, Printable) or stream.plain or os.environ.get("TERM") in ("dumb", "unknown"):
        return None
    return stream if stream.isatty() else None


def has_color() -> bool:
    """Return True if colors are wanted; ``NO_COLOR`` turns them off."""
    return not os.environ.get("NO_COLOR")


def width_of(stream: TextIO) -> int:
    """Return the number of columns of the terminal; ``COLUMNS`` takes precedence."""
    named = os.environ.get("COLUMNS", "")
    try:
        return (
            int(named) if named.isdecimal() and int(named) else os.get_terminal_size(stream.fileno()).columns or WIDTH
        )
    except (OSError, ValueError):  # the stream has no size
        return WIDTH


def print_lines(parts: Iterable[Part]) -> None:
    """Print *parts*, lines and tables, to standard output: drawn on a terminal, otherwise as plain lines.

    Lines are colored by their content and wrapped at the terminal's width. Callers need not escape anything in them.
    """
    stream = terminal(sys.stdout) if has_color() else None
    if stream is None:
        click.echo(plain_lines(parts))
    else:
        click.echo(drawn(parts, width_of(stream.stream)), file=stream.stream, nl=False, color=True)


def print_wrapped(text: str, *, err: bool = False) -> None:
    """Print the lines of *text* to standard output or, with *err*, to standard error: wrapped at blanks on a terminal, otherwise unchanged."""
    stream = terminal(sys.stderr if err else sys.stdout)
    width = 0 if stream is None else width_of(stream.stream)
    click.echo("\n".join(folded(line, width) if width else line for line in text.split("\n")), err=err)


def plain_lines(parts: Iterable[Part]) -> str:
    """Return *parts* as lines."""
    return "\n".join(line for part in parts for line in _lines_of(part))


def _lines_of(part: Part) -> Iterable[str]:
    if isinstance(part, str):
        return (part,)
    if isinstance(part, Line):
        return (folded(part.text),)
    return part.lines() if isinstance(part, TextTable) else part.lines


def folded(line: str, width: int = WIDTH) -> str:
    """Return *line* wrapped at *width* columns, with further lines indented."""
    margin = " " * (len(line) - len(line.lstrip()) + 2)
    if column_count(line) == len(line):  # no wide characters
        return fill(line, width, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    return "\n".join(wrap_columns(line, width, margin))


def wrap_columns(line: str, width: int, margin: str = "") -> list[str]:
    """Return *line* in rows of at most *width* columns; further rows begin with *margin*. A row ends at a blank, or next to a wide character."""
    rows, row = list[str](), ""
    for piece in re.findall(rf"\s+|[{_WIDE}]|[^\s{_WIDE}]+", line):
        if row.strip() and not piece.isspace() and column_count(row + piece) > width:
            rows.append(row.rstrip())
            row = margin
        row += piece
    return [*rows, row.rstrip()]


def drawn(parts: Iterable[Part], width: int) -> str:
    """Return *parts* as drawn on a terminal of *width* columns. Only rich's codes are in it: codes in the text are escaped."""
    canvas = canvas_of(width)
    for part in parts:
        if isinstance(part, str | Line):
            text = part if isinstance(part, str) else part.text
            _draw_lines(printable(text).split("\n"), canvas)
        else:
            _draw_table(part if isinstance(part, Drawing) else Drawing(part, ()), canvas)
    return text_of(canvas)


def canvas_of(width: int) -> Console:
    """Return a rich console that draws into a text of *width* columns, in which markup is ordinary text."""
    from rich.console import Console  # the import takes 40 ms, and only a terminal needs it

    return Console(
        file=StringIO(),
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
        no_color=not has_color(),
        width=width,
        height=24,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def text_of(canvas: Console) -> str:
    """Return the text drawn on *canvas*."""
    return str(canvas.file.getvalue())  # type: ignore[attr-defined]  # it is a StringIO


def _draw_lines(lines: Iterable[str], canvas: Console) -> None:
    for line in lines:
        for text in _wrapped(line, canvas):
            canvas.print(text)


def _wrapped(line: str, canvas: Console) -> Iterator[Text]:
    """Return *line* with its styles, wrapped over as many lines as it needs; all but the first are indented."""
    from rich.text import Text

    text = Text(line)
    for style, start, stop in _styles(line):
        text.stylize(style, start, stop)
    if text.cell_len <= canvas.width:
        yield text
        return
    margin = Text(" " * min(len(line) - len(line.lstrip()) + 2, canvas.width // 2))
    for number, piece in enumerate(text.wrap(canvas, canvas.width - len(margin), overflow="fold")):
        piece.rstrip()
        yield margin + piece if number else piece


def _styles(line: str) -> Iterator[tuple[str, int, int]]:
    for pattern, style in _IN_LINES:
        for match in re.finditer(pattern, line):  # compiled when a line is drawn first
            yield (_WORDS[match["word"]], *match.span("word")) if style is None else (style, *match.span())


def _draw_table(drawing: Drawing, canvas: Console) -> None:
    """Draw a table whose columns fit next to each other; otherwise print its plain lines."""
    from rich.table import Table
    from rich.text import Text

    table = drawing.table
    if "" in (lines := [*table.lines(canvas.width)]):
        for before, line in zip(("", *lines), lines, strict=False):  # a block follows on an empty line, with its heads
            canvas.print(Text(line, style="" if before else "bold"))
        return
    grid = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for number, head in enumerate(table.columns):
        side: Any = "right" if table.on_the_right(number) else "left"
        grid.add_column(Text(one_line(head)), justify=side, no_wrap=head in table.uncut, overflow="fold")
    for row in table.cells():
        styles = (
            _BAD if head == drawing.marked else _WORDS.get(cell, "")
            for head, cell in zip(table.columns, row, strict=True)
        )
        grid.add_row(*(Text(cell, style=style) for cell, style in zip(row, styles, strict=True)))
    canvas.print(grid)
