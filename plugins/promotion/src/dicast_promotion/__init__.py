"""Whether a candidate may take the place of what is in production, and what to improve next.

``dicast promotion`` and ``dicast priority`` are the commands; here are the rules by themselves.
"""

from __future__ import annotations

from .factors import Factors
from .gates import OVERALL, STATES, Evidence, Gate, Gates, Passage, Requirement, Shadow

__all__ = ["OVERALL", "STATES", "Evidence", "Factors", "Gate", "Gates", "Passage", "Requirement", "Shadow"]
