"""A judge that asks other judges in order, from cheap to expensive."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .cascade import Cascade

__all__ = ["Cascade"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Return the judge ``hybrid/cascade``."""
    return [Cascade]
