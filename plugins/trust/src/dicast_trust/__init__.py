"""How far verdicts can be trusted: calibrated cascades, plans, anytime-valid stops, judge cards."""

from __future__ import annotations
