"""Scores of a run: read from records, and kept by criterion."""

from __future__ import annotations
