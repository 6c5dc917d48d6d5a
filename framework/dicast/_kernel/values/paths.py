"""Types of options that name files."""

from __future__ import annotations

from pathlib import Path
from typing import NewType

InputPath = NewType("InputPath", Path)
"""The path of a file that must exist when the pipeline is read, or ``-`` for stdin. A plain ``Path`` need not exist."""
