"""Reasons for figures that are null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..numbers.scale import TOO_LARGE


def with_reasons(figures: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return *figures* with ``reasons``, the causes of null figures by the name of the count or the test.

    Without *reasons*, the first null figure gets the reason that the scores are too large.
    """
    unknown = [name for name, figure in figures.items() if figure is None]
    causes = dict(reasons) or dict.fromkeys(unknown[:1], TOO_LARGE)
    return {**figures, **without_empty({"reasons": causes})}


def without_empty(items: Mapping[str, Any]) -> dict[str, Any]:
    """Return *items* without the empty values."""
    return {name: item for name, item in items.items() if item}


def too_few(needed: int, counts: Mapping[str, int]) -> dict[str, str]:
    """Return a reason for each of *counts* below *needed*."""
    return {name: f"{count} of the {needed} needed" for name, count in counts.items() if count < needed}
