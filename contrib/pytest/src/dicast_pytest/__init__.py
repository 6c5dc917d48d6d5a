"""Pipelines and judges in pytest: pipeline files as tests, fixtures, and ``assert_pass_rate``."""

# Every run of pytest imports this where the distribution is installed: what is used is imported when it is used.
from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pass_rate import PassRate, assert_pass_rate

__all__ = ["PassRate", "assert_pass_rate"]


def __getattr__(name: str) -> object:
    """Import the names of ``__all__`` on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import pass_rate

    return getattr(pass_rate, name)
