"""The command ``dicast compare``."""

from __future__ import annotations
