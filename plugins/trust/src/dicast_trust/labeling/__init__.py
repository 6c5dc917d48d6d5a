"""The commands ``dicast label`` and ``dicast labels``."""

from __future__ import annotations
