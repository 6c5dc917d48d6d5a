"""Results of a run as JUnit XML, which CI systems show as tests."""

from __future__ import annotations
