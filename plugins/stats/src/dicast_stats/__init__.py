"""Aggregates, comparisons and early stops."""

from __future__ import annotations
