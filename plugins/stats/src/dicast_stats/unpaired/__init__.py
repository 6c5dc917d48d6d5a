"""Comparisons of two runs over different subjects."""

from __future__ import annotations
