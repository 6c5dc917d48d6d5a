"""Scores of a run: reading them from records, and columns by criterion."""

from __future__ import annotations
