"""Keeps the experiments that improve a measured number, and discards the others."""

from __future__ import annotations
