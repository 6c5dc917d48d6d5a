"""Cheap checks of form: format, keywords, length."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .format import Format
from .keywords import Keywords
from .length import Length

__all__ = ["Format", "Keywords", "Length"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the three metrics."""
    return [Format, Keywords, Length]
