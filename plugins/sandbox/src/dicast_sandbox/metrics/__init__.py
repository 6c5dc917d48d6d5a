"""Metrics that run a command on an output."""

from __future__ import annotations
