"""Pipelines and judges in pytest: dicast run as tests, fixtures, assert_pass_rate."""

from __future__ import annotations
