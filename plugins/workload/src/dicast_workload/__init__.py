"""Runs of benchmark workloads."""

from __future__ import annotations
