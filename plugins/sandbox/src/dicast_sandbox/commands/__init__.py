"""Commands: how a command is split, found and checked."""

from __future__ import annotations
