"""Backend ``sandbox/docker``."""

from __future__ import annotations
