"""Between values and plain data: the JSON form of the value types, and components built from the pipeline file."""

from __future__ import annotations

from . import hints
from .builder import Builder, Built
from .describe import describe
from .faults import Fault, Invalid, Part, Path, shown
from .values import structure, unstructure

__all__ = [
    "Builder",
    "Built",
    "Fault",
    "Invalid",
    "Part",
    "Path",
    "describe",
    "hints",
    "shown",
    "structure",
    "unstructure",
]
