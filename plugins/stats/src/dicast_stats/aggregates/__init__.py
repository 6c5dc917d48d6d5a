"""Aggregates: figures of one run."""

from __future__ import annotations
