"""A hook for mkdocs: leaves out what stands behind a code block's language.

It is for ``tests/test_docs.py`` to read, and to Python-Markdown such a line begins no code block.
"""  # noqa: INP001

from __future__ import annotations

import re

INFO = re.compile(r"^```(\w+) .*$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Called by mkdocs with each page's text."""
    return INFO.sub(r"```\1", markdown)
