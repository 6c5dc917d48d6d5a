"""A browser whose pages wait for as long as a busy machine needs: a wait ends once its condition holds, so a long limit costs nothing."""

from __future__ import annotations

from typing import Any

LIMIT = 200_000
"""The longest wait for a part of a page, in milliseconds."""


class PatientBrowser:
    """A browser of playwright with the limit ``LIMIT`` for each wait of its pages."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser

    def new_context(self, **options: Any) -> Any:
        """Open a context, whose pages share cookies and storage."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(LIMIT)
        return context

    def new_page(self, **options: Any) -> Any:
        """Open a page in a context of its own."""
        page = self._browser.new_page(**options)
        page.set_default_timeout(LIMIT)
        return page
