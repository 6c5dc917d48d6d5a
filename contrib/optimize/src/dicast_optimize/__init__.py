"""Optimizer that improves a text by an evaluator's scores, and reports the gain on a held-back split."""

from __future__ import annotations

from dicast import hookimpl

from .reflect import Reflect

__all__ = ["Reflect"]


@hookimpl
def dicast_tasks() -> list[type]:
    """Offer ``optimize/reflect``."""
    return [Reflect]
