"""A judge made of judges, from cheap to dear."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .cascade import Cascade

__all__ = ["Cascade"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Offer ``hybrid/cascade``."""
    return [Cascade]
