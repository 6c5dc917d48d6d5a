"""The comparison keeps the contract."""

from __future__ import annotations

from dicast.testing import MetricConformance


class TestMatch(MetricConformance):
    metric = "diff/match"


class TestExactMatch(MetricConformance):
    metric = "diff/match"
    options = {"strictness": "exact", "field": "answer"}
