"""Test runners: their reports, and their lists of tests."""

from __future__ import annotations
