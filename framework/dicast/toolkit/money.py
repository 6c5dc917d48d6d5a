"""Amounts of money as text for a reader."""

from __future__ import annotations

from .._toolkit.money import UNKNOWN, amount_text, amounts_text

__all__ = ["UNKNOWN", "amount_text", "amounts_text"]
