"""How good the judged work was, and how far judges agree: ``dicast quality`` and ``dicast agreement``, readers of a ledger."""

from __future__ import annotations
