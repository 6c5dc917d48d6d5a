"""Workspaces: the files that a program is run in."""

from __future__ import annotations
