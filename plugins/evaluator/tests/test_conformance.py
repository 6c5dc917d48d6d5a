"""The evaluators keep the contract."""

from __future__ import annotations

import sys

from dicast.testing import MetricConformance


class TestMetricLines(MetricConformance):
    metric = "evaluator/metric_lines"
    options = {"command": [sys.executable, "-c", "print('METRIC a=8')"], "checks": "true", "direction": "higher"}
