"""``dicast calibrate``: thresholds of a judge or a cascade with a bounded error rate."""

from __future__ import annotations
