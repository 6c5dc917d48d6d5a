"""Early stops: conditions that end a run."""

from __future__ import annotations
