"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table; every text is escaped, and its direction is isolated."""
    body = "".join(_row(row, "td") for row in rows)
    return f"<table><caption>{_text(caption)}</caption><thead>{_row(heads, 'th')}</thead><tbody>{body}</tbody></table>"


def _row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    return f"<bdi>{escape(text)}</bdi>"
