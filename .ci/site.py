"""Hook of mkdocs that removes the options after the language of a code block.

The options are for ``tests/test_docs.py``; Python-Markdown does not recognize a code block with them.
"""  # noqa: INP001

from __future__ import annotations

import re

INFO = re.compile(r"^```(\w+) .*$", re.MULTILINE)


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the text of a page without the options of its code blocks."""
    return INFO.sub(r"```\1", markdown)
