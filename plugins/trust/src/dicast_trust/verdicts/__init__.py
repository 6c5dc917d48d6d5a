"""Verdicts of judges and of cascade stages, read from a ledger, and the rules that compare them with labels."""

from __future__ import annotations
