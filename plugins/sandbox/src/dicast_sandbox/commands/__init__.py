"""Commands: their words, their detection in a workspace, and the programs that they need."""

from __future__ import annotations
