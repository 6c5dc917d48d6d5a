"""Comparisons of two runs over the same subjects."""

from __future__ import annotations
