"""The analytics API over ledgers and the dashboard: ``dicast serve``."""

from __future__ import annotations
