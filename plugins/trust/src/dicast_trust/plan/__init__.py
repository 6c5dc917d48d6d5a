"""``dicast plan``: forecast of a run's cost, interval width and labels."""

from __future__ import annotations
