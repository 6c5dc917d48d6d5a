"""The evaluators keep the contract."""

from __future__ import annotations

import sys

from dicast.testing import MetricConformance


class TestMetricLines(MetricConformance):
    metric = "evaluator/metric_lines"
    options = {
        "command": [sys.executable, "-c", "import sys; print(f'METRIC a={len(open(sys.argv[1]).read()) % 7}')"],
        "checks": "true",
        "direction": "higher",
    }
