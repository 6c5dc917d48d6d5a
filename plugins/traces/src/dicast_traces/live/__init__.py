"""Traces that are still being written: judged as they grow."""

from __future__ import annotations
