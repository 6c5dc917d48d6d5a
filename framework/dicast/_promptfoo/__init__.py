"""``dicast init --from promptfoo FILE``: a promptfoo configuration as a pipeline."""

from __future__ import annotations

from .takeover import taken_over

__all__ = ["taken_over"]
