"""Checks of JSON data that came from outside."""

from __future__ import annotations

from .._kernel.values.names import not_finite

__all__ = ["not_finite"]
