"""Checks of JSON data that came from outside."""

from __future__ import annotations

from .._kernel.values.names import not_finite
from .json_values import marked_numbers

__all__ = ["marked_numbers", "not_finite"]
