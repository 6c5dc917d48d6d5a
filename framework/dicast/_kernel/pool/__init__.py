"""Worker processes that metrics are asked in, and what becomes of a call whose worker dies."""

from __future__ import annotations

from .process import HEADER
from .sharing import Pool, kept

__all__ = ["HEADER", "Pool", "kept"]
