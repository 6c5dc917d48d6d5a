"""Improves a text by an evaluator's scores, and reports the gain on a held-back split."""

from __future__ import annotations
