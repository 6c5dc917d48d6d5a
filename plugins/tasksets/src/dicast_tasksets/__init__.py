"""Evaluation tasks from files."""

from __future__ import annotations
