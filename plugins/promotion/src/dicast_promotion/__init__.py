"""Rules for replacing the version in production by a candidate, and for ranking modules by urgency.

The commands ``dicast promotion`` and ``dicast priority`` apply these rules.
"""

from __future__ import annotations

from .factors import Factors
from .gates import OVERALL, STATES, Evidence, Gate, Gates, Passage, Requirement, Shadow

__all__ = ["OVERALL", "STATES", "Evidence", "Factors", "Gate", "Gates", "Passage", "Requirement", "Shadow"]
