"""Nested figures as lines for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

CUT = 300
"""Number of characters of a text that are shown."""


def tree(name: str, content: object, depth: int = 0) -> Iterator[str]:
    """Yield *content* under its *name*: its words, its figures in one line, and its mappings below them."""
    margin = "  " * depth
    if not isinstance(content, Mapping):
        yield cut(f"{margin}{name}: {_figure(content)}")
    else:
        plain = {key: value for key, value in content.items() if not isinstance(value, Mapping)}
        words = plain.pop("words", None)
        mappings = {key: value for key, value in content.items() if isinstance(value, Mapping)}
        figures = ", ".join(f"{key} {_figure(value)}" for key, value in plain.items())
        if words is not None:
            yield cut(f"{margin}{name}: {words}")
            yield from [cut(f"{margin}  {figures}")] if figures else []
        else:
            yield cut(f"{margin}{name}" + (f": {figures}" if figures or not mappings else ""))
        for key, value in mappings.items():
            yield from tree(key, value, depth + 1)


def _figure(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, list | tuple):
        return f"[{', '.join(repr(item) if isinstance(item, str) else _figure(item) for item in value)}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def cut(text: str) -> str:
    """Return *text*, cut to :data:`CUT` characters."""
    return text if len(text) <= CUT else f"{text[:CUT]}… ({len(text):,} characters)"
