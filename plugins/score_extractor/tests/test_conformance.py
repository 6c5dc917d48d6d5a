"""The extractor keeps the contract."""

from __future__ import annotations

from dicast.testing import Conformance


class TestScores(Conformance):
    kind = "extractor"
    extractor = "score_extractor/scores"
    options = {"key": "rating", "threshold": 3.5, "criteria": ["clarity", "depth"]}


class TestScoresByDefault(Conformance):
    kind = "extractor"
    extractor = "score_extractor/scores"
