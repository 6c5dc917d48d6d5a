"""The sink of outcomes keeps the contract."""

from __future__ import annotations

from dicast.testing import SinkConformance


class TestOutcomes(SinkConformance):
    sink = "patterns/outcomes"
    options = {"path": "out/outcomes.db"}


class TestOneJudge(SinkConformance):
    sink = "patterns/outcomes"
    options = {"path": "outcomes.db", "judge": "turn", "min_confidence": 0.7}
