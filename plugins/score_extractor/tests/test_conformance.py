"""The extractor keeps the contract."""

from __future__ import annotations

from dicast.testing import ExtractorConformance


class TestScores(ExtractorConformance):
    extractor = "score_extractor/scores"
    options = {"key": "rating", "threshold": 3.5, "criteria": ["clarity", "depth"]}


class TestScoresByDefault(ExtractorConformance):
    extractor = "score_extractor/scores"
