"""Whether a candidate may take the place of what is in production, and what to improve next: readers of a ledger."""

from __future__ import annotations
