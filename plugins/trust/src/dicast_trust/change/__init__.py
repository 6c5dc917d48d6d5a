"""``dicast bisect`` and ``dicast bridge``: the effect of a change on scores, and the shift between two judges."""

from __future__ import annotations
