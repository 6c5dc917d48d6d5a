"""Backend ``sandbox/bubblewrap``."""

from __future__ import annotations
