"""``trust/anytime``, the early stop of a run."""

from __future__ import annotations
