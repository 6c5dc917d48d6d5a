"""Sentences on results, and reasons for missing figures."""

from __future__ import annotations
