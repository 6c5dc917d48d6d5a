"""Experiment loop that keeps the changes which improve a measured number, and discards the rest."""

from __future__ import annotations
