"""Sets of metrics under one name."""

from __future__ import annotations

from dicast import Preset, hookimpl

from .defaults import DefaultProxy, DefaultTruth

__all__ = ["DefaultProxy", "DefaultTruth"]


@hookimpl
def dicast_presets() -> list[type[Preset]]:
    """Return the two presets."""
    return [DefaultProxy, DefaultTruth]
