"""Reasons for figures that are null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..numbers.scale import TOO_LARGE


def explained(figures: Mapping[str, Any], reasons: Mapping[str, str]) -> dict[str, Any]:
    """*figures*, and why some of them are null, by the count that is too small or the test that it is about."""
    unknown = [name for name, figure in figures.items() if figure is None]
    why = dict(reasons) or dict.fromkeys(unknown[:1], TOO_LARGE)
    return {**figures, **there({"reasons": why})}


def there(found: Mapping[str, Any]) -> dict[str, Any]:
    """Those of *found* that are not empty."""
    return {name: one for name, one in found.items() if one}


def few(needed: int, counts: Mapping[str, int]) -> dict[str, str]:
    """What to say of each of *counts* that is below *needed*."""
    return {name: f"{count} of the {needed} needed" for name, count in counts.items() if count < needed}
